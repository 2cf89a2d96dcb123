package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/caddy/caddyfile"
	"github.com/miekg/dns"
)

// corefileBlock is one server block.
type corefileBlock struct {
	statement // where it begins, for mistakes

	zones    []string
	listen   []netip.AddrPort
	cached   bool
	forwards []forwardStatement
	access   []accessRule // in their order
	denied   int          // answers that acl made
	goesOn   *statement   // a rewrite continue, until another rewrite is there
	// apply changes every route of the block, in order.
	apply []func(r *RouteConfig)
}

func (c *corefile) readBlock(found caddyfile.ServerBlock) {
	b := &corefileBlock{}
	var all []statement
	for _, name := range sortedKeys(found.Tokens) {
		r := statementReader{tokens: found.Tokens[name], expand: c.expand, shown: c.shown}
		all = append(all, r.list()...)
	}
	c.noteImports(found)
	b.file, b.line = c.whereBlock(found.Keys)
	slices.SortStableFunc(all, func(a, b statement) int { return a.line - b.line })
	ports := c.keys(b, found.Keys)
	var binds []*statement
	for i := range all {
		if all[i].name() == "bind" {
			binds = append(binds, &all[i])
		}
	}
	c.bind(b, binds, ports)
	for i := range all {
		c.readDirective(b, &all[i])
	}
	c.uncached(b)
	c.rulesOnly(b, all)
	c.blocks = append(c.blocks, b)
}

// noteImports keeps the names of the files that the block came from.
func (c *corefile) noteImports(found caddyfile.ServerBlock) {
	for _, tokens := range found.Tokens {
		for _, t := range tokens {
			if t.File != "" && !slices.Contains(c.config.Imports, t.File) {
				c.config.Imports = append(c.config.Imports, t.File)
			}
		}
	}
	slices.Sort(c.config.Imports)
}

// whereBlock is the line of the block's first key. The parser does not tell; it leaves
// out blocks whose keys are nothing.
func (c *corefile) whereBlock(keys []string) (file string, line int) {
	for len(c.starts) > 0 && len(keys) > 0 {
		first := c.starts[0]
		c.starts = c.starts[1:]
		if strings.TrimSuffix(withVariables(first.Text), ",") == keys[0] {
			return c.shown(first.File), first.Line
		}
	}
	return "", 1
}

// keys reads the zones of a block, and gives its ports.
func (c *corefile) keys(b *corefileBlock, keys []string) (ports []uint16) {
	type served struct {
		zone string
		port uint16
	}
	asked := map[served]bool{}
	for _, key := range keys {
		text := key
		if scheme, rest, ok := strings.Cut(key, "://"); ok {
			if text = rest; scheme != "dns" {
				c.wrong(&b.statement, fmt.Sprintf("the block serves %s, which is not spoken here", scheme+"://"), "serve plain DNS, or put a server that speaks it in front")
				continue
			}
		}
		zone, port, ok := c.splitPort(b, text)
		if !ok {
			continue
		}
		zones, why := zonesOf(zone)
		if why != "" {
			c.wrong(&b.statement, fmt.Sprintf("%q is no zone: %s", cut(key), why), `write a name such as cluster.local, a network such as 10.0.0.0/8, or "."`)
		}
		for _, zone := range zones {
			asked[served{zone, port}] = true
		}
		ports = append(ports, without([]uint16{port}, ports)...)
		b.zones = append(b.zones, without(zones, b.zones)...)
	}
	if len(asked) < len(b.zones)*len(ports) {
		c.note(&b.statement, "the block gives its zones different ports", fmt.Sprintf("each zone is answered at all of them: %s", strings.Trim(fmt.Sprint(ports), "[]")))
	}
	return ports
}

func (c *corefile) splitPort(b *corefileBlock, text string) (zone string, port uint16, ok bool) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return text, c.options.Port, true
	}
	n, err := strconv.ParseUint(text[at+1:], 10, 16)
	if err != nil {
		c.wrong(&b.statement, fmt.Sprintf("%q has no port behind the colon", cut(text)), "write a number from 1 to 65535")
		return "", 0, false
	}
	return text[:at], uint16(n), true
}

// zonesOf are the zones that a key stands for: a network is its reverse zones.
func zonesOf(text string) (zones []string, why string) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return reverseZones(prefix)
	}
	switch {
	case strings.HasPrefix(text, "__PILLAR__"):
		return nil, "the placeholder is replaced by whoever installs, not here"
	case text == "" || strings.ContainsAny(text, ` /*\`):
		return nil, "it is no domain name"
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return nil, "it has characters that no query has; names in other scripts begin with xn--"
	}
	if _, ok := dns.IsDomainName(text); !ok {
		return nil, "it is no domain name"
	}
	return []string{dns.CanonicalName(text)}, ""
}

// maxReverse bounds the zones of one network.
const maxReverse = 64

// reverseZones are the zones of the names of a network's addresses. The labels of
// these names are 8 bits of IPv4 and 4 of IPv6.
func reverseZones(prefix netip.Prefix) (zones []string, why string) {
	label := 4
	if prefix.Addr().Is4() {
		label = 8
	}
	labels := (prefix.Bits() + label - 1) / label
	count := 1 << (labels*label - prefix.Bits())
	if labels == 0 || count > maxReverse {
		return nil, "the network is too large for one"
	}
	total := prefix.Addr().BitLen() / label
	first := prefix.Masked().Addr().AsSlice()
	for n := range count {
		ip := slices.Clone(first)
		addBits(ip, labels*label, n)
		address, _ := netip.AddrFromSlice(ip)
		name, err := dns.ReverseAddr(address.String())
		if err != nil {
			return nil, err.Error()
		}
		zones = append(zones, strings.Join(dns.SplitDomainName(name)[total-labels:], ".")+".")
	}
	return zones, ""
}

// addBits adds n to the number that the first bits of ip are.
func addBits(ip []byte, bits, n int) {
	if bits%8 == 4 {
		n <<= 4
	}
	for at := (bits+7)/8 - 1; at >= 0 && n > 0; at-- {
		n += int(ip[at])
		ip[at] = byte(n)
		n >>= 8
	}
}

// bind finds the addresses of a block. Without a bind it is served on all.
func (c *corefile) bind(b *corefileBlock, binds []*statement, ports []uint16) {
	var ips []netip.Addr
	before := len(c.list)
	for _, s := range binds {
		var except []netip.Addr
		for i := range s.block {
			if s.block[i].name() != "except" {
				c.unknownOption(&s.block[i], "bind", "except")
				continue
			}
			except = append(except, c.bindAddresses(s, s.block[i].args())...)
		}
		ips = append(ips, without(c.bindAddresses(s, s.args()), except)...)
	}
	switch {
	case len(binds) == 0 && c.options.IPv6:
		ips = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	case len(binds) == 0:
		ips = []netip.Addr{netip.IPv4Unspecified()}
	case len(ips) == 0 && len(c.list) == before: // otherwise said already
		c.wrong(binds[0], "bind names no address", "name one, or say with -localip what the placeholders stand for")
	}
	for _, ip := range ips {
		for _, port := range ports {
			b.listen = append(b.listen, without([]netip.AddrPort{netip.AddrPortFrom(ip, port)}, b.listen)...)
		}
	}
}

// bindAddresses reads addresses and names of interfaces.
func (c *corefile) bindAddresses(s *statement, words []word) (ips []netip.Addr) {
	for _, w := range words {
		if ip, err := netip.ParseAddr(w.text); err == nil {
			ips = append(ips, ip.Unmap())
			continue
		}
		found := interfaceAddresses(w.text)
		if len(found) == 0 {
			c.wrong(s, fmt.Sprintf("bind names %q, which is neither an address nor an interface of this machine with one", cut(w.text)), "write an IP address")
		}
		ips = append(ips, found...)
	}
	return ips
}

func interfaceAddresses(name string) (ips []netip.Addr) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil
	}
	addresses, _ := link.Addrs() // none is what the caller reports
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			ip := prefix.Addr().Unmap()
			if ip.IsLinkLocalUnicast() && ip.Is6() {
				ip = ip.WithZone(name)
			}
			ips = append(ips, ip)
		}
	}
	return ips
}

// compareBlocks looks for zones that are in two blocks, and collects the addresses.
// nodens serves every zone on each of them.
func (c *corefile) compareBlocks() {
	first := map[string]*corefileBlock{}
	for _, b := range c.blocks {
		for _, zone := range b.zones {
			if other := first[zone]; other != nil {
				c.wrong(&b.statement, fmt.Sprintf("the zone %q is in two blocks", zone),
					fmt.Sprintf("keep it in one (the first is on line %d): what is answered does not depend on the address that is asked", other.line))
				continue
			}
			first[zone] = b
		}
		c.config.Listen = append(c.config.Listen, without(b.listen, c.config.Listen)...)
	}
	for _, b := range c.blocks {
		if also := without(c.config.Listen, b.listen); len(also) > 0 && len(b.listen) > 0 {
			c.note(&b.statement, fmt.Sprintf("the block for %s is not bound to every address that is served", strings.Join(b.zones, " ")),
				fmt.Sprintf("it is answered at %s too", addressList(also)))
		}
	}
}

func addressList(list []netip.AddrPort) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, " ")
}

// uncached makes what a block without a cache keeps as short as it can be.
func (c *corefile) uncached(b *corefileBlock) {
	if b.cached || len(b.forwards) == 0 {
		return
	}
	c.note(&b.statement, fmt.Sprintf("the block for %s has no cache", strings.Join(b.zones, " ")), "answers are kept for 1s all the same, so that identical queries are asked once")
	b.apply = append(b.apply, func(r *RouteConfig) {
		r.Cache.MaxTTL, r.Cache.MaxNegativeTTL, r.Cache.MinTTL, r.Cache.ServFailTTL, r.Cache.Prefetch = time.Second, time.Second, 0, time.Second, 0
	})
}

// rulesOnly makes a route of the zones that no forward is for. As in CoreDNS, what
// the rules of the block do not answer there is SERVFAIL, and REFUSED where none of its
// directives has to do with queries.
func (c *corefile) rulesOnly(b *corefileBlock, all []statement) {
	var zones []string
	for _, zone := range b.zones {
		if !slices.ContainsFunc(b.forwards, func(f forwardStatement) bool { return dns.IsSubDomain(f.from, zone) }) {
			zones = append(zones, zone)
		}
	}
	if len(zones) == 0 {
		return
	}
	r := defaultRoute(false)
	r.Zones, r.RulesOnly = zones, true
	becomes := "queries for it get SERVFAIL"
	switch {
	case !slices.ContainsFunc(all, func(s statement) bool { return !slices.Contains(aside(), s.name()) }):
		becomes = "queries for it are REFUSED"
		r.Rules.Answers = []AnswerConfig{{RCode: dns.RcodeRefused}}
	case slices.ContainsFunc(all, func(s statement) bool { return s.name() == "hosts" && s.option("fallthrough") == nil }):
		becomes = "what its hosts and templates do not answer does not exist"
	case slices.ContainsFunc(all, func(s statement) bool { return s.name() == "hosts" || s.name() == "template" }):
		becomes = "what its hosts and templates do not answer is SERVFAIL"
	}
	c.note(&b.statement, fmt.Sprintf("the block forwards %s to nobody", strings.Join(zones, " ")), becomes)
	b.forwards = append(b.forwards, forwardStatement{statement: &b.statement, route: r})
}

// boundedTTLs brings the TTLs of answers made here between bounds, as CoreDNS's cache does,
// which stands before the directives that make them.
func boundedTTLs(r RulesConfig, low, high time.Duration) RulesConfig {
	if r.Hosts.given() {
		r.Hosts.TTL = min(max(r.Hosts.TTL, low), high)
	}
	r.Answers = slices.Clone(r.Answers)
	for i := range r.Answers {
		a := &r.Answers[i]
		a.Records = slices.Clone(a.Records)
		for at, record := range a.Records {
			text, rest, _ := strings.Cut(record, " ")
			if n, err := strconv.ParseUint(text, 10, 31); err == nil {
				ttl := min(max(time.Duration(n)*time.Second, low), high)
				a.Records[at] = fmt.Sprintf("%d %s", ttl/time.Second, rest)
			}
		}
	}
	return r
}

// routes are the block's forwards with what the block says about all of them.
func (b *corefileBlock) routes() (routes []RouteConfig) {
	for _, f := range b.forwards {
		if len(f.route.Zones) == 0 {
			continue
		}
		r := f.route
		for _, change := range b.apply {
			change(&r)
		}
		r.Cache.MinTTL = min(r.Cache.MinTTL, r.Cache.MaxTTL)
		if b.cached {
			r.Rules = boundedTTLs(r.Rules, r.Cache.MinTTL, r.Cache.MaxTTL)
		}
		if r.RulesOnly { // nothing is kept or asked
			r.Cache = defaultRoute(false).Cache
		}
		routes = append(routes, r)
	}
	return routes
}
