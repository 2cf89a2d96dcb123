package main

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"go.yaml.in/yaml/v3"

	"github.com/nodens-dns/nodens/forwarder/rules"
)

// RulesConfig changes what the names of a route are answered with. What comes
// first below is looked at first.
type RulesConfig struct {
	// Rewrite asks the route's servers for names under other names; the first
	// that fits a name counts, and what follows here sees the other name. At most
	// 1000. Default none.
	Rewrite []RewriteConfig
	// Answers are fixed; the first that fits counts. At most 1000. Default none.
	Answers []AnswerConfig
	// FilterAAAA answers questions for IPv6 addresses with "no such record".
	// Default false.
	FilterAAAA bool
	// Hosts are names with addresses.
	Hosts HostsConfig
	// DNS64 makes IPv6 addresses of IPv4 ones.
	DNS64 DNS64Config
}

// RewriteConfig asks for names under other names. Once read, both are in lower case
// with a final dot.
type RewriteConfig struct {
	// From is the client's name; only one of it and Suffix is written.
	From string
	// To is the name that servers are asked for.
	To string
	// Suffix stands in place of name: that name itself and all names below it are
	// asked for with their end replaced by what stands under to.
	Suffix bool
}

// AnswerConfig is a fixed answer for the questions that fit all of Below, Match
// and Types.
type AnswerConfig struct {
	// Below are names; those and all below them fit. Default every name of the
	// route.
	Below []string
	// Match is a regular expression for the name, in lower case and with a final
	// dot. Default none.
	Match string
	// Types of the questions. Default all.
	Types []uint16
	// RCode is the name of a response code, such as NXDOMAIN or REFUSED. Default
	// NOERROR.
	RCode int
	// Records are TTL, type and data, such as "60 A 192.0.2.1". Default none: "no
	// such record".
	Records []string
}

// HostsConfig is names with addresses.
type HostsConfig struct {
	// Entries are lines of a hosts file. Default none.
	Entries []string
	// File is one that is followed while it changes. Default none.
	File string
	// TTL of the answers, 0 to 24 h, default 1 h.
	TTL time.Duration
	// Reverse answers also which names an address has, where the route has the
	// zones of reverse names. Default true.
	Reverse bool
	// Only says that no other names exist. Default false: servers are asked.
	Only bool
}

// given says that there are hosts.
func (h *HostsConfig) given() bool { return h.Entries != nil || h.File != "" }

// DNS64Config makes IPv6 addresses of IPv4 ones.
type DNS64Config struct {
	// Prefix of the addresses made, of 32, 40, 48, 56, 64 or 96 bits. The
	// well-known one, 64:ff9b::/96, stands for addresses of the Internet alone: of
	// private ones nothing is made. Default none: nothing is made.
	Prefix netip.Prefix
	// All makes them also for names with IPv6 addresses. Default false.
	All bool
}

const maxRules = 1000

// ruleFields reads the rules of a route, which stand among its other keys.
func (f *configFile) ruleFields(r *RulesConfig) fields {
	return fields{
		"rewrite":    func(path string, n *yaml.Node) { f.rewrites(path, n, &r.Rewrite) },
		"answers":    func(path string, n *yaml.Node) { f.answers(path, n, &r.Answers) },
		"filterAAAA": f.flag(&r.FilterAAAA),
		"hosts":      func(path string, n *yaml.Node) { f.hosts(path, n, &r.Hosts) },
		"dns64":      func(path string, n *yaml.Node) { f.dns64(path, n, &r.DNS64) },
	}
}

func (f *configFile) rewrites(path string, n *yaml.Node, to *[]RewriteConfig) {
	f.list(path, n, "rewrites such as {name: a.example, to: b.example}", func(path string, n *yaml.Node) {
		var r RewriteConfig
		var suffix string
		f.object(path, n, fields{
			"name":   func(path string, n *yaml.Node) { f.name(path, n, &r.From) },
			"suffix": func(path string, n *yaml.Node) { f.name(path, n, &suffix) },
			"to":     func(path string, n *yaml.Node) { f.name(path, n, &r.To) },
		}, "to")
		switch {
		case r.To == "": // said already
		case r.From == "" == (suffix == ""):
			f.add(n.Line, path+" has not one of name and suffix", "write name for one name, or suffix for a name and all below it")
		case suffix != "":
			r.From, r.Suffix = suffix, true
		}
		if r.To != "" && r.From == r.To {
			f.add(n.Line, fmt.Sprintf("%s asks for %s under its own name", path, r.To), "remove it, or write another name")
		}
		*to = append(*to, r)
	})
	f.atMost(path, n, len(*to), maxRules)
}

func (f *configFile) atMost(path string, n *yaml.Node, length, most int) {
	if length > most {
		f.add(n.Line, fmt.Sprintf("%s has %d elements", path, length), fmt.Sprintf("keep at most %d", most))
	}
}

func (f *configFile) answers(path string, n *yaml.Node, to *[]AnswerConfig) {
	f.list(path, n, "answers such as {below: [a.example], rcode: NXDOMAIN}", func(path string, n *yaml.Node) {
		var a AnswerConfig
		f.object(path, n, f.answerFields(&a))
		if a.RCode != dns.RcodeSuccess && a.Records != nil {
			f.add(n.Line, path+" has both records and an rcode that forbids them", "keep one of them")
		}
		f.compareRecords(path, n.Line, &a)
		*to = append(*to, a)
	})
	f.atMost(path, n, len(*to), maxRules)
}

// compareRecords looks for records that cannot stand together: an alias is alone at its
// name (RFC 2181 section 10.1), and what no question gets is a slip.
func (f *configFile) compareRecords(path string, line int, a *AnswerConfig) {
	for i, text := range a.Records {
		rr, err := dns.NewRR(". " + text)
		if err != nil || rr == nil {
			continue // said already
		}
		is, name := rr.Header().Rrtype, dns.TypeToString[rr.Header().Rrtype]
		switch {
		case is == dns.TypeCNAME && len(a.Records) > 1:
			f.add(line, fmt.Sprintf("%s.records[%d] is an alias beside other records", path, i), "keep the alias alone, or leave it out")
		case a.Types == nil, is == dns.TypeCNAME, slices.Contains(a.Types, is), slices.Contains(a.Types, dns.TypeANY):
		default:
			f.add(line, fmt.Sprintf("%s.records[%d] is a record of type %s, which no question of its types gets", path, i, name), "add "+name+" to types, or leave the record out")
		}
	}
}

func (f *configFile) answerFields(a *AnswerConfig) fields {
	return fields{
		"below": func(path string, n *yaml.Node) {
			f.list(path, n, "names", func(path string, n *yaml.Node) {
				var name string
				f.name(path, n, &name)
				a.Below = append(a.Below, name)
			})
		},
		"match": func(path string, n *yaml.Node) {
			if !f.text(path, n, &a.Match) {
				return
			}
			if _, err := regexp.Compile(a.Match); err != nil {
				f.add(n.Line, fmt.Sprintf("%s is no regular expression: %v", path, err), "write it as Go's regexp takes it")
			}
		},
		"types": func(path string, n *yaml.Node) {
			f.list(path, n, "types such as AAAA", func(path string, n *yaml.Node) {
				if t, ok := dns.StringToType[strings.ToUpper(n.Value)]; ok {
					a.Types = append(a.Types, t)
					return
				}
				f.add(n.Line, fmt.Sprintf("%s is %q, which is no type", path, cut(n.Value)), "write one such as A, AAAA or SRV")
			})
		},
		"rcode": func(path string, n *yaml.Node) {
			code, ok := dns.StringToRcode[strings.ToUpper(n.Value)]
			if !ok || code > 15 {
				f.add(n.Line, fmt.Sprintf("%s is %q, which is no response code", path, cut(n.Value)), "write NOERROR, NXDOMAIN, SERVFAIL, REFUSED or another with its name")
			}
			a.RCode = code
		},
		"records": func(path string, n *yaml.Node) { f.records(path, n, &a.Records) },
	}
}

func (f *configFile) records(path string, n *yaml.Node, to *[]string) {
	f.list(path, n, `records such as "60 A 192.0.2.1"`, func(path string, n *yaml.Node) {
		var text string
		if !f.text(path, n, &text) {
			return
		}
		if _, err := rules.New(rules.Config{Answers: []rules.Answer{{Records: []string{text}}}}); err != nil {
			f.add(n.Line, fmt.Sprintf("%s is %q, which is no record", path, cut(text)), `write TTL, type and data, such as "60 A 192.0.2.1", with a TTL of at most 2147483647`)
		}
		*to = append(*to, text)
	})
}

func (f *configFile) hosts(path string, n *yaml.Node, h *HostsConfig) {
	f.object(path, n, f.hostsFields(h))
	if n.Kind == yaml.MappingNode && !h.given() {
		f.add(n.Line, path+" has neither entries nor a file", "add one")
	}
}

func (f *configFile) hostsFields(h *HostsConfig) fields {
	return fields{
		"entries": func(path string, n *yaml.Node) {
			f.list(path, n, `lines such as "192.0.2.1 db.example"`, func(path string, n *yaml.Node) {
				var line string
				if !f.text(path, n, &line) {
					return
				}
				if rules.NewHosts(rules.HostsConfig{}).Update([]byte(line)) != nil || strings.Contains(line, "\n") {
					f.add(n.Line, fmt.Sprintf("%s is %q, which is not an address and its names", path, cut(line)), "write such as 192.0.2.1 db.example")
				}
				h.Entries = append(h.Entries, line)
			})
		},
		"file":    f.to(&h.File),
		"ttl":     f.time(&h.TTL, 0, 24*time.Hour),
		"reverse": f.flag(&h.Reverse),
		"only":    f.flag(&h.Only),
	}
}

func (f *configFile) dns64(path string, n *yaml.Node, d *DNS64Config) {
	f.object(path, n, f.dns64Fields(d), "prefix")
}

func (f *configFile) dns64Fields(d *DNS64Config) fields {
	return fields{
		"prefix": func(path string, n *yaml.Node) {
			prefix, err := netip.ParsePrefix(n.Value)
			if err == nil {
				_, err = rules.New(rules.Config{DNS64: prefix})
			}
			if err != nil {
				f.add(n.Line, fmt.Sprintf("%s is %q, which is no prefix for IPv4 addresses", path, cut(n.Value)), `write one of 32, 40, 48, 56, 64 or 96 bits, such as "64:ff9b::/96"`)
				return
			}
			if prefix != prefix.Masked() {
				f.add(n.Line, fmt.Sprintf("%s is %s, which has bits behind its length", path, prefix), fmt.Sprintf("write %s", prefix.Masked()))
			}
			d.Prefix = prefix
		},
		"all": f.flag(&d.All),
	}
}

// rulesOf are the rules of a route at work. hosts is nil without any; only says that
// there are no servers.
func rulesOf(c *RulesConfig, hosts *rules.Hosts, only bool) (*rules.Set, error) {
	config := rules.Config{Only: only, FilterAAAA: c.FilterAAAA, Hosts: hosts, DNS64: c.DNS64.Prefix, DNS64All: c.DNS64.All}
	for _, r := range c.Rewrite {
		config.Rewrite = append(config.Rewrite, rules.Rewrite(r))
	}
	for _, a := range c.Answers {
		config.Answers = append(config.Answers, rules.Answer(a))
	}
	return rules.New(config)
}

// sameData says that servers' answers that were kept under o are those that n
// would make.
func (c *RulesConfig) sameData(o *RulesConfig) bool {
	return slices.Equal(c.Rewrite, o.Rewrite) && c.DNS64 == o.DNS64
}
