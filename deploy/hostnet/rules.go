package hostnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// settleTable makes the kernel have t. Where its chains and sets are there already only
// rules and addresses change: a packet that is under way then meets either the former
// rules of a chain or the new ones. While a table stands in the place of another, there
// are two chains at each hook for a moment, and a packet may pass the new one before it
// counts and the former one after it did.
func (h *Host) settleTable(t *table, old Found) error {
	if t == nil || len(old.Other) > 0 || !sameLines(frame(old.lines), frame(t.lines())) {
		return h.replaceTable(t, old)
	}
	var b batch
	changed := slices.DeleteFunc(slices.Clone(t.chains), func(c chain) bool {
		return slices.Equal(rulesOf(old.lines, c.name), rulesOf(t.lines(), c.name))
	})
	for _, c := range changed {
		b.add(unix.NFT_MSG_DELRULE, 0, func(a attrs) {
			a.String(unix.NFTA_RULE_TABLE, tableName)
			a.String(unix.NFTA_RULE_CHAIN, c.name)
		})
	}
	for _, s := range t.sets {
		b.addresses(s, old)
	}
	b.rules(changed)
	return explained("the nft table cannot be changed", h.commit(&b))
}

// addresses makes a set have those that it should.
func (b *batch) addresses(s set, old Found) {
	if s.timeout {
		return // who is held stays
	}
	there := addrsIn(old.lines, s.name)
	var more, fewer []element
	for _, a := range s.addrs {
		if !slices.Contains(there, a) {
			more = append(more, element{key: a.AsSlice()})
		}
	}
	for _, a := range there {
		if !slices.Contains(s.addrs, a) {
			fewer = append(fewer, element{key: a.AsSlice()})
		}
	}
	b.changeElements(unix.NFT_MSG_DELSETELEM, s.name, 0, fewer)
	b.changeElements(unix.NFT_MSG_NEWSETELEM, s.name, 0, more)
}

// frame is what cannot change without another table: all lines but those of rules and of
// addresses.
func frame(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return strings.HasPrefix(line, "rule ") || strings.Contains(line, " has ")
	})
}

// rulesOf are the lines of a chain's rules, in their order.
func rulesOf(lines []string, chain string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return !strings.HasPrefix(line, "rule ") || !strings.Contains(line, " of chain "+chain+" is ")
	})
}

// addrsIn are the addresses that a set has by its lines.
func addrsIn(lines []string, set string) []netip.Addr {
	var list []netip.Addr
	for _, line := range lines {
		rest, ok := strings.CutPrefix(line, fmt.Sprintf("set %s has ", set))
		if a, err := netip.ParseAddr(rest); ok && err == nil {
			list = append(list, a)
		}
	}
	return list
}
