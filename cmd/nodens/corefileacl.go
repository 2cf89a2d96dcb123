package main

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// accessRule says what becomes of the queries of some clients.
type accessRule struct {
	*statement
	action string
	nets   []netip.Prefix
}

// everybody are the networks that every client is in.
func everybody() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
}

// readACL reads acl [ZONES...] { ACTION [type TYPES] [net NETWORKS] }. Rules for networks
// become the lists of clients, which hold for every name; those for types, an answer of
// the block.
func readACL(c *corefile, b *corefileBlock, s *statement) {
	for _, zone := range b.zones {
		whole := slices.ContainsFunc(s.texts(), func(z string) bool { return dns.IsSubDomain(dns.CanonicalName(z), zone) })
		if len(s.args()) > 0 && !whole {
			c.wrong(s, fmt.Sprintf("acl is for a part of %s only, which has no equivalent", zone), "give these names a block of their own")
			return
		}
	}
	for i := range s.block {
		c.accessRule(b, &s.block[i])
	}
}

func (c *corefile) accessRule(b *corefileBlock, s *statement) {
	if !slices.Contains([]string{"allow", "block", "drop", "filter"}, s.name()) {
		c.unknownOption(s, "acl", "allow", "block", "drop", "filter")
		return
	}
	types, nets, ok := c.accessArguments(s)
	switch {
	case !ok:
	case len(types) > 0:
		c.accessByType(b, s, types, len(nets) > 0)
	case s.name() != "allow" && slices.ContainsFunc(b.access, func(r accessRule) bool { return r.action != "allow" && r.action != s.name() }):
		c.wrong(s, "acl blocks some clients and drops others, which has no equivalent", "write one of both for all")
	case s.name() == "filter":
		c.wrong(s, "acl filter for networks has no equivalent: a client may ask or not", "write block or drop, or name types")
	case len(nets) == 0:
		b.access = append(b.access, accessRule{s, s.name(), everybody()})
	default:
		b.access = append(b.access, accessRule{s, s.name(), nets})
	}
}

// accessArguments reads what stands behind the action. Nothing is everything, and so is *.
func (c *corefile) accessArguments(s *statement) (types []uint16, nets []netip.Prefix, ok bool) {
	section := ""
	all := map[string]bool{}
	for _, text := range s.texts() {
		word := strings.ToLower(text)
		kind, known := dns.StringToType[strings.ToUpper(text)]
		net, isNet := netOf(text)
		switch {
		case word == "type" || word == "net":
			section = word
		case section != "" && text == "*":
			all[section] = true
		case section == "type" && known:
			types = append(types, kind)
		case section == "net" && isNet:
			nets = append(nets, net)
		default:
			c.wrong(s, fmt.Sprintf("acl %s has %q, which is no part of it", s.name(), cut(text)), "write "+s.name()+" [type TYPES] [net NETWORKS]")
			return nil, nil, false
		}
	}
	if all["type"] {
		types = nil
	}
	if all["net"] {
		nets = nil
	}
	return types, nets, true
}

// netOf reads a network, or an address, which is one of its own.
func netOf(text string) (netip.Prefix, bool) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err == nil && !p.Addr().Is4In6()
}

// accessByType makes an answer for some types of questions, whoever asks.
func (c *corefile) accessByType(b *corefileBlock, s *statement, types []uint16, narrow bool) {
	a := AnswerConfig{Types: types}
	allowed := slices.ContainsFunc(b.access, func(r accessRule) bool { return r.action == "allow" })
	switch {
	case narrow || allowed:
		c.wrong(s, "acl is for some types and some clients, which has no equivalent", "let it hold for all clients, or for all types")
		return
	case s.name() == "block":
		a.RCode = dns.RcodeRefused
	case s.name() != "filter":
		c.wrong(s, fmt.Sprintf("acl %s for types has no equivalent", s.name()), "write block or filter")
		return
	}
	at := b.denied // in their order, and before the answers of templates
	b.denied++
	b.addRule(func(r *RulesConfig) { r.Answers = slices.Insert(slices.Clone(r.Answers), at, a) })
}

// accessLists are what the rules of a block come to: the first that an address is in
// decides there, the longest prefix here, which is the same without those that an earlier
// one hides.
func (b *corefileBlock) accessLists() (c ClientsConfig) {
	var seen []netip.Prefix
	for _, r := range append(slices.Clone(b.access), accessRule{action: "allow", nets: everybody()}) {
		list := &c.Deny
		if r.action == "allow" {
			list = &c.Allow
		}
		for _, net := range r.nets {
			if slices.ContainsFunc(seen, func(s netip.Prefix) bool { return s.Bits() <= net.Bits() && s.Contains(net.Addr()) }) {
				continue
			}
			seen, *list = append(seen, net), append(*list, net)
			if r.action == "drop" {
				c.Denied = "drop"
			}
		}
	}
	if len(c.Deny) == 0 {
		return ClientsConfig{}
	}
	c.Allow, c.Deny = spared(c.Allow, c.Deny)
	return c
}

// spared leaves out what holds without being said: who is in no list may ask unless one
// says who may.
func spared(allow, deny []netip.Prefix) (_, _ []netip.Prefix) {
	if others := without(allow, everybody()); len(others) == 0 && len(allow) == len(everybody()) {
		return nil, deny
	} else if len(others) == len(allow) && len(allow) > 0 {
		return allow, without(deny, everybody())
	}
	return allow, deny
}

// compareAccess takes over the lists of the blocks, which have to be the same: one holds
// for every name.
func (c *corefile) compareAccess() {
	at := slices.IndexFunc(c.blocks, func(b *corefileBlock) bool { return len(b.access) > 0 })
	if at < 0 {
		return
	}
	first := c.blocks[at]
	lists := first.accessLists()
	for _, b := range c.blocks {
		if reflect.DeepEqual(b.accessLists(), lists) {
			continue
		}
		s := append(b.access, first.access[0])[0].statement
		c.wrong(s, fmt.Sprintf("acl differs between the blocks for %s and %s: a client may ask for every name or for none", strings.Join(first.zones, " "), strings.Join(b.zones, " ")),
			"write the same acl into every block, as a snippet that each imports for example")
		return
	}
	for what, list := range map[string][]netip.Prefix{"allows": lists.Allow, "blocks": lists.Deny} {
		if len(list) > maxPrefixes {
			c.wrong(first.access[0].statement, fmt.Sprintf("acl %s %d networks", what, len(list)), fmt.Sprintf("name at most %d", maxPrefixes))
		}
	}
	to := &c.config.Clients
	to.Allow, to.Deny = lists.Allow, lists.Deny
	if lists.Denied != "" {
		to.Denied = lists.Denied
	}
}
