package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// forwardStatement is one forward of a block.
type forwardStatement struct {
	*statement
	from   string
	except []string
	route  RouteConfig
	// collapses says that force_tcp does not count, see readForward.
	collapses bool
}

// corefileRoute is a route before its block is read: what CoreDNS does where a
// Corefile says nothing, and beyond that what changes no answer.
func corefileRoute(cluster bool) RouteConfig {
	r := defaultRoute(cluster)
	r.Cache.MaxTTL, r.Cache.MaxNegativeTTL, r.Cache.MinTTL = time.Hour, 30*time.Minute, 5*time.Second
	// An expired answer then stands in for an error only, not for a slow answer.
	r.Cache.StaleWait = r.Timeout
	return r
}

func readForward(c *corefile, b *corefileBlock, s *statement) {
	args := s.args()
	if len(args) < 2 {
		c.wrong(s, "forward names no server", "write forward . SERVER, or /etc/resolv.conf for its nameservers")
		return
	}
	from, why := zonesOf(args[0].text)
	if why != "" {
		c.wrong(s, fmt.Sprintf("forward is for %q: %s", cut(args[0].text), why), `write a zone, mostly "."`)
		return
	}
	f := forwardStatement{statement: s, from: from[0]}
	t := c.targets(s, args[1:])
	f.route = corefileRoute(t.service != "")
	// As in node-cache, servers of the ConfigMap kube-dns are asked over UDP
	// where force_tcp is all that is said of those they take the place of.
	f.collapses = len(c.kube.Upstreams) > 0 && len(s.block) == 1 &&
		slices.ContainsFunc(args, func(w word) bool { return w.placeholder == upstreamPlaceholder })
	c.setTargets(&f, t)
	c.forwardOptions(&f)
	c.setCertificates(&f)
	c.placeForward(b, f)
}

// placeForward gives a forward those zones of its block that it is for. As in
// CoreDNS the first one that a name is in decides.
func (c *corefile) placeForward(b *corefileBlock, f forwardStatement) {
	for _, zone := range b.zones {
		switch {
		case dns.IsSubDomain(f.from, zone):
		case dns.IsSubDomain(zone, f.from):
			zone = f.from
		default:
			continue
		}
		hidden := slices.ContainsFunc(b.forwards, func(other forwardStatement) bool {
			return dns.IsSubDomain(other.from, zone) && !slices.ContainsFunc(other.except, func(e string) bool { return dns.IsSubDomain(e, zone) })
		})
		if !hidden && !slices.Contains(f.route.Zones, zone) {
			f.route.Zones = append(f.route.Zones, zone)
		}
	}
	if len(f.route.Zones) == 0 && len(b.zones) > 0 {
		c.note(f.statement, fmt.Sprintf("forward %s is never reached in this block", f.from), "it is left out")
	}
	b.forwards = append(b.forwards, f)
	c.deny(b, &f)
}

// deny keeps names that are not to be forwarded from being so.
func (c *corefile) deny(b *corefileBlock, f *forwardStatement) {
	for _, name := range f.except {
		if name == "." || slices.Contains(c.config.Local.Deny, name) {
			continue
		}
		c.config.Local.Deny = append(c.config.Local.Deny, name)
		c.note(f.statement, fmt.Sprintf("except keeps %s from being forwarded", name), "unless another block or forward has it, it is answered with NXDOMAIN, where CoreDNS says SERVFAIL")
	}
}

// setTargets makes the route ask t.
func (c *corefile) setTargets(f *forwardStatement, t targets) {
	r := &f.route
	r.Note = t.note
	switch {
	case t.service != "":
		r.Topology.Namespace, r.Topology.Service, _ = strings.Cut(t.service, "/")
		if t.clusterIP.IsValid() {
			r.Topology.ClusterIP = []netip.AddrPort{t.clusterIP}
		}
	case len(t.files) == 1 && len(t.servers) == 0:
		r.ResolvConf = t.files[0]
	default:
		r.Servers = c.usable(f.statement, t)
		if len(t.overTLS) > 0 {
			r.TLSNames = t.overTLS
		}
	}
}

// maxForward is how many servers CoreDNS takes in one forward.
const maxForward = 15

// usable are the servers of t, those of its files as they are now.
func (c *corefile) usable(s *statement, t targets) []netip.AddrPort {
	servers := slices.Clone(t.servers)
	for i, path := range t.files {
		data, err := readFile(path)
		if err != nil {
			c.wrong(s, fmt.Sprintf("forward names the file %s, which cannot be read: %v", path, err), "name a file like resolv.conf")
			continue
		}
		c.note(s, fmt.Sprintf("forward names %s beside other servers", path), "its nameservers are read now; a change of the file counts with the next reload")
		at := t.places[i] + len(servers) - len(t.servers) // those of earlier files stand before
		servers = slices.Insert(servers, at, nameservers(data)...)
	}
	var list []netip.AddrPort
	for _, server := range servers {
		if why := unusable(server); why != "" {
			c.wrong(s, fmt.Sprintf("forward names %s, %s", server, why), "write the address of a DNS server")
			continue
		}
		if !slices.Contains(list, server) {
			list = append(list, server)
			c.servers = append(c.servers, serverLine{address: server, path: s.file, line: s.line})
		}
	}
	if len(list) > maxForward {
		c.wrong(s, fmt.Sprintf("forward names %d servers", len(list)), fmt.Sprintf("keep at most %d", maxForward))
	}
	return list
}

// forwardOption reads one option of forward.
type forwardOption func(c *corefile, f *forwardStatement, s *statement)

// forwardOptions are all of them. nil: what it says is always so, or is done by
// means that adapt, such as connections and health checks.
func forwardOptions() map[string]forwardOption {
	return map[string]forwardOption{
		"except": func(c *corefile, f *forwardStatement, s *statement) {
			for _, name := range s.texts() {
				zones, why := zonesOf(name)
				if why != "" {
					c.wrong(s, fmt.Sprintf("except names %q: %s", cut(name), why), "write a zone")
				}
				f.except = append(f.except, zones...)
			}
		},
		"force_tcp":                        func(_ *corefile, f *forwardStatement, s *statement) { f.route.ForceTCP = true },
		"policy":                           readPolicy,
		"health_check":                     readHealthCheck,
		"tls":                              readForwardTLS,
		"tls_servername":                   nil, // read by setCertificates
		"prefer_udp":                       nil,
		"max_fails":                        nil,
		"expire":                           nil,
		"max_age":                          nil,
		"max_idle_conns":                   nil,
		"max_connect_attempts":             nil,
		"read_timeout":                     nil,
		"failfast_all_unhealthy_upstreams": nil,
		"failover":                         nil,
		"max_concurrent": func(c *corefile, f *forwardStatement, s *statement) {
			c.note(s, "max_concurrent bounds one forward", "the bound of every route is limits.upstreamInFlight, above which clients get SERVFAIL, not REFUSED")
		},
		"next": func(c *corefile, f *forwardStatement, s *statement) {
			c.wrong(s, "next sends a query on after an answer, which has no equivalent", "remove it, and name all servers in one forward")
		},
	}
}

func (c *corefile) forwardOptions(f *forwardStatement) {
	known, arguments := forwardOptions(), forwardArguments()
	for i := range f.block {
		s := &f.block[i]
		read, ok := known[s.name()]
		switch {
		case !ok:
			c.unknownOption(s, "forward", sortedKeys(known)...)
		case !c.check(s, arguments[s.name()]):
		case s.name() == "force_tcp" && f.collapses:
		case read != nil:
			read(c, f, s)
		}
	}
}

func readPolicy(c *corefile, f *forwardStatement, s *statement) {
	switch text := strings.Join(s.texts(), " "); text {
	case "random", "sequential":
		f.route.Choose = text
	case "round_robin":
		f.route.Choose = "random"
		c.note(s, "policy round_robin has no equivalent", "servers are chosen at random, which spreads the same")
	default:
		c.wrong(s, fmt.Sprintf("policy is %q", cut(text)), "write random, round_robin or sequential")
	}
}

// readHealthCheck takes the name that is asked for; when, is decided by what
// becomes of queries.
func readHealthCheck(c *corefile, f *forwardStatement, s *statement) {
	args := s.texts()
	at := slices.Index(args, "domain")
	if at < 0 || at+1 == len(args) {
		return
	}
	if _, ok := dns.IsDomainName(args[at+1]); !ok {
		c.wrong(s, fmt.Sprintf("health_check asks for %q, which is no domain name", cut(args[at+1])), "write a name")
		return
	}
	f.route.Probe = dns.CanonicalName(args[at+1])
}

func readForwardTLS(c *corefile, _ *forwardStatement, s *statement) {
	if len(s.args()) > 0 {
		c.wrong(s, "tls names files: authorities and certificates of one's own have no equivalent", "leave the arguments out: the authorities of the system count")
	}
}

// setCertificates fills in the names in the certificates of servers that are asked
// over TLS: their own, that of tls_servername, or as in CoreDNS their address.
func (c *corefile) setCertificates(f *forwardStatement) {
	name := ""
	if s := f.option("tls_servername"); s != nil && len(s.args()) == 1 {
		name = s.args()[0].text
	}
	for server, own := range f.route.TLSNames {
		switch {
		case own != "":
		case name != "":
			f.route.TLSNames[server] = name
		default:
			f.route.TLSNames[server] = server.Addr().String()
		}
	}
}
