package main

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/rules"
)

// ruleDirectives are those that change what the names of a block are answered with.
func ruleDirectives() map[string]directive {
	return map[string]directive{
		"acl": readACL, "hosts": readHosts, "template": readTemplate, "rewrite": readRewrite, "dns64": readDNS64,
	}
}

func (b *corefileBlock) addRule(change func(r *RulesConfig)) {
	b.apply = append(b.apply, func(route *RouteConfig) { change(&route.Rules) })
}

// readHosts reads hosts [FILE [ZONES...]] { lines, ttl, no_reverse, reload, fallthrough }.
func readHosts(c *corefile, b *corefileBlock, s *statement) {
	h := HostsConfig{TTL: time.Hour, Reverse: true, Only: true}
	args := s.texts()
	if len(args) > 0 {
		h.File = args[0]
	}
	if len(args) > 1 {
		c.note(s, "hosts is for some zones only", "its names are answered whatever their zone; give the zones a block of their own")
	}
	for i := range s.block {
		c.hostsOption(&s.block[i], &h)
	}
	if h.File == "" { // entries stand beside it
		h.File = "/etc/hosts"
	}
	if h.Only {
		c.note(s, "hosts is without fallthrough", "names of the block that are not in the list do not exist, where CoreDNS says SERVFAIL")
	}
	b.addRule(func(r *RulesConfig) { r.Hosts = h })
}

func (c *corefile) hostsOption(s *statement, h *HostsConfig) {
	args := s.texts()
	switch s.name() {
	case "fallthrough":
		if h.Only = false; len(args) > 0 {
			c.note(s, "fallthrough is for some zones only", "it holds for all names of the block")
		}
	case "no_reverse":
		h.Reverse = false
	case "reload":
	case "ttl":
		n, err := strconv.Atoi(strings.Join(args, " "))
		if err != nil || n < 0 || n > 86400 {
			c.wrong(s, fmt.Sprintf("ttl is %q", cut(strings.Join(args, " "))), "write a number of seconds up to 86400")
			return
		}
		h.TTL = time.Duration(n) * time.Second
	default:
		line := strings.Join(append([]string{s.name()}, args...), " ")
		if rules.NewHosts(rules.HostsConfig{}).Update([]byte(line)) != nil {
			c.wrong(s, fmt.Sprintf("hosts has %q, which is not an address and its names", cut(line)), "write such as 192.0.2.1 db.example")
			return
		}
		h.Entries = append(h.Entries, line)
	}
}

// readTemplate takes those that answer the same to every question that fits: what is
// computed from a name has no equivalent.
func readTemplate(c *corefile, b *corefileBlock, s *statement) {
	var a AnswerConfig
	args := s.texts()
	if len(args) < 2 || !slices.Contains([]string{"IN", "ANY"}, strings.ToUpper(args[0])) {
		c.wrong(s, fmt.Sprintf("template is for %q", cut(strings.Join(args, " "))), "write template IN TYPE [ZONES]")
		return
	}
	if name := strings.ToUpper(args[1]); name != "ANY" {
		kind, known := dns.StringToType[name]
		if !known {
			c.wrong(s, fmt.Sprintf("template is for the type %q, which there is not", cut(args[1])), "write one such as A or AAAA")
			return
		}
		a.Types = []uint16{kind}
	}
	for _, name := range args[2:] {
		zones, why := zonesOf(name)
		if why != "" {
			c.wrong(s, fmt.Sprintf("template is for %q: %s", cut(name), why), "write a zone")
			return
		}
		if zones[0] != "." {
			a.Below = append(a.Below, zones...)
		}
	}
	fixed := true
	for i := range s.block {
		fixed = c.templateOption(&s.block[i], &a) && fixed
	}
	if !fixed {
		c.wrong(s, "template computes its answer, which has no equivalent", "write fixed records, an rcode, or leave its zone to another server")
		return
	}
	b.addRule(func(r *RulesConfig) { r.Answers = append(slices.Clone(r.Answers), a) })
}

// templateOption reads one line of a template; it says false for what is computed.
func (c *corefile) templateOption(s *statement, a *AnswerConfig) bool {
	text := strings.Join(s.texts(), " ")
	switch s.name() {
	case "match":
		if a.Match != "" {
			return false // several
		}
		a.Match = text
		_, err := regexp.Compile(text)
		if err != nil {
			c.wrong(s, "match is no regular expression: "+err.Error(), "write it as Go's regexp takes it")
		}
	case "rcode":
		code, known := dns.StringToRcode[strings.ToUpper(text)]
		if !known || code > 15 {
			c.wrong(s, fmt.Sprintf("rcode is %q", cut(text)), "write NOERROR, NXDOMAIN or another with its name")
		}
		a.RCode = code
	case "answer":
		record, fixed := fixedRecord(text)
		if !fixed {
			return false
		}
		a.Records = append(a.Records, record)
	case "authority", "additional", "fallthrough", "ederror", "upstream":
		// An SOA record is made for those who look at it; names that do not fit go on.
	default:
		c.unknownOption(s, "template", "match", "rcode", "answer", "authority", "additional", "fallthrough")
	}
	return true
}

// fixedRecord is what a template for one record gives to every name, without the
// name itself and the class.
func fixedRecord(text string) (record string, fixed bool) {
	rest, ok := strings.CutPrefix(strings.Join(strings.Fields(text), " "), "{{ .Name }} ")
	if !ok || strings.Contains(rest, "{{") {
		return "", false
	}
	words := slices.DeleteFunc(strings.Fields(rest), func(w string) bool { return w == "IN" })
	record = strings.Join(words, " ")
	_, err := rules.New(rules.Config{Answers: []rules.Answer{{Records: []string{record}}}})
	return record, err == nil
}

// readRewrite takes names for names, exactly or by their end. CoreDNS shows the name
// that was asked for in the answer only where it is told to; nodens always does.
func readRewrite(c *corefile, b *corefileBlock, s *statement) {
	args := s.texts()
	if b.goesOn != nil {
		c.wrong(b.goesOn, "rewrite continue goes on to the rewrites behind it, which has no equivalent", "write stop, and what both come to as one rewrite")
		b.goesOn = nil
	}
	if len(args) > 0 && (args[0] == "stop" || args[0] == "continue") {
		if args[0] == "continue" {
			b.goesOn = s
		}
		args = args[1:]
	}
	if len(args) == 0 && len(s.block) > 0 {
		c.wrong(s, fmt.Sprintf("rewrite { %s ... } has no equivalent, and answers would differ without it", s.block[0].name()), "write each on its own as rewrite name [exact | suffix] FROM TO")
		return
	}
	if len(args) < 3 || args[0] != "name" {
		c.wrong(s, fmt.Sprintf("rewrite %s has no equivalent, and answers would differ without it", cut(strings.Join(args, " "))), "write rewrite name [exact | suffix] FROM TO")
		return
	}
	how, from, to := "exact", args[1], args[2]
	if slices.Contains([]string{"exact", "prefix", "suffix", "substring", "regex"}, args[1]) && len(args) > 3 {
		how, from, to = args[1], args[2], args[3]
	}
	r, ok := rewriteOf(how, from, to)
	if !ok {
		c.wrong(s, fmt.Sprintf("rewrite name %s has no equivalent, and answers would differ without it", how), "write rewrite name [exact | suffix] FROM TO")
		return
	}
	c.compareEnd(b, s, &r, from)
	b.addRule(func(rules *RulesConfig) { rules.Rewrite = append(slices.Clone(rules.Rewrite), r) })
}

// compareEnd looks for names that CoreDNS, for which the end is one of letters, and nodens,
// for which it is whole labels, rewrite differently.
func (c *corefile) compareEnd(b *corefileBlock, s *statement, r *RewriteConfig, from string) {
	switch {
	case !r.Suffix:
	case strings.HasPrefix(from, "."):
		c.note(s, fmt.Sprintf("rewrite name suffix takes %s itself, too", r.From), "CoreDNS rewrites only the names below it")
	case slices.ContainsFunc(b.zones, func(zone string) bool { return !dns.IsSubDomain(r.From, zone) }):
		c.wrong(s, fmt.Sprintf("rewrite name suffix %s also fits names in which it begins inside a label, which has no equivalent", cut(from)),
			"write a dot before both ends, and rewrite name exact for the name itself")
	}
}

// rewriteOf is names for names, or ends of names for ends. Ends that are no whole
// labels have no equivalent.
func rewriteOf(how, from, to string) (r RewriteConfig, ok bool) {
	if how == "suffix" {
		if strings.HasPrefix(from, ".") != strings.HasPrefix(to, ".") {
			return r, false
		}
		from, to = strings.TrimPrefix(from, "."), strings.TrimPrefix(to, ".")
	}
	_, goodFrom := dns.IsDomainName(from)
	_, goodTo := dns.IsDomainName(to)
	r = RewriteConfig{From: dns.CanonicalName(from), To: dns.CanonicalName(to), Suffix: how == "suffix"}
	return r, goodFrom && goodTo && (how == "exact" || r.Suffix)
}

// readDNS64 reads dns64 [PREFIX] { prefix, translate_all, allow_ipv4 }.
func readDNS64(c *corefile, b *corefileBlock, s *statement) {
	d, text := DNS64Config{}, "64:ff9b::/96"
	if args := s.texts(); len(args) == 1 {
		text = args[0]
	}
	for i := range s.block {
		switch o := &s.block[i]; o.name() {
		case "prefix":
			text = strings.Join(o.texts(), " ")
		case "translate_all":
			d.All = true
		case "allow_ipv4":
			c.note(o, "allow_ipv4 is always so", "clients over IPv4 get addresses made, too")
		default:
			c.unknownOption(o, "dns64", "prefix", "translate_all", "allow_ipv4")
		}
	}
	prefix, err := netip.ParsePrefix(text)
	if err == nil {
		_, err = rules.New(rules.Config{DNS64: prefix})
	}
	if err != nil {
		c.wrong(s, fmt.Sprintf("dns64 has the prefix %q, which is none for IPv4 addresses", cut(text)), "write one of 32, 40, 48, 56, 64 or 96 bits, such as 64:ff9b::/96")
		return
	}
	d.Prefix = prefix
	b.addRule(func(r *RulesConfig) { r.DNS64 = d })
}

// allDirectives are those that have an equivalent.
func allDirectives() map[string]directive {
	all := directives()
	maps.Copy(all, ruleDirectives())
	return all
}
