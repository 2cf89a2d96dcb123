package main

import (
	"fmt"
	"net/netip"

	"go.yaml.in/yaml/v3"
)

const (
	maxPrefixes = 64
	maxRate     = 1_000_000
	// burstSeconds is how many seconds' worth of queries a client may ask at
	// once, unless the file says otherwise.
	burstSeconds = 2
)

func (f *configFile) clients() fields {
	c := &f.config.Clients
	f.prefixes = map[netip.Prefix]int{}
	return fields{
		"allow":            f.prefixList(&c.Allow, f.prefixes),
		"deny":             f.prefixList(&c.Deny, f.prefixes),
		"denied":           f.word(&c.Denied, "refuse", "drop"),
		"queriesPerSecond": f.number(&c.QueriesPerSecond, 0, maxRate),
		"burst":            f.noted(&f.burstLine, f.number(&c.Burst, 1, maxRate)),
		"missesInFlight":   f.number(&c.MissesInFlight, 0, 65536),
		"unlimited":        f.prefixList(&c.Unlimited, map[netip.Prefix]int{}),
		"ipv4Prefix":       f.number(&c.IPv4Prefix, 8, 32),
		"ipv6Prefix":       f.number(&c.IPv6Prefix, 16, 128),
	}
}

// prefixList reads prefixes, none of which is among those seen.
func (f *configFile) prefixList(to *[]netip.Prefix, seen map[netip.Prefix]int) reader {
	return func(path string, n *yaml.Node) {
		f.list(path, n, "prefixes", func(path string, n *yaml.Node) {
			p, ok := f.prefix(path, n)
			switch {
			case !ok:
			case seen[p] != 0:
				f.add(n.Line, fmt.Sprintf("%s repeats %s", path, p), fmt.Sprintf("keep it in one place (the first is on line %d)", seen[p]))
			default:
				seen[p] = n.Line
				*to = append(*to, p)
			}
		})
		if len(*to) > maxPrefixes {
			f.add(n.Line, fmt.Sprintf("%s has %d prefixes", path, len(*to)), fmt.Sprintf("keep at most %d", maxPrefixes))
		}
	}
}

// prefix reads ADDRESS/BITS, or an address, which is the prefix of itself.
func (f *configFile) prefix(path string, n *yaml.Node) (netip.Prefix, bool) {
	if ip, err := netip.ParseAddr(n.Value); err == nil && n.Kind == yaml.ScalarNode && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), true
	}
	p, err := netip.ParsePrefix(n.Value)
	switch {
	case err != nil || n.Kind != yaml.ScalarNode || p.Addr().Is4In6():
		f.wrongKind(path, n, `a prefix such as 10.0.0.0/8 or "2001:db8::/32", or an address`)
		return p, false
	case p != p.Masked():
		f.add(n.Line, fmt.Sprintf("%s is %s, which has bits behind its length", path, p), fmt.Sprintf("write %s", p.Masked()))
		return p, false
	}
	return p, true
}

// compareBounds looks for bounds without effect.
func (f *configFile) compareBounds() {
	l := &f.config.Limits
	if f.burstLine > 0 && f.config.Clients.QueriesPerSecond == 0 {
		f.add(f.burstLine, "clients.burst is of no effect without a rate", "add queriesPerSecond, or remove burst")
	}
	switch {
	case f.upstreamLine == 0:
		l.UpstreamInFlight = min(l.UpstreamInFlight, max(l.MissesInFlight/2, 16))
	case l.UpstreamInFlight > l.MissesInFlight:
		f.add(f.upstreamLine, fmt.Sprintf("limits.upstreamInFlight is %d, more than missesInFlight (%d), so that one route may take the room of all", l.UpstreamInFlight, l.MissesInFlight), "lower it, or raise missesInFlight")
	}
}
