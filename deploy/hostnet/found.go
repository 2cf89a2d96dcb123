package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

var (
	// ErrForeign says that a link or an address belongs to somebody else.
	ErrForeign = errors.New("it belongs to somebody else")
	// ErrLink says that the link or its addresses cannot be made what they should be.
	ErrLink = errors.New("the link is not what it should be")
	// ErrNoTable says that our table is not there: apply first.
	ErrNoTable = errors.New("the nft table is missing")
)

// linkError is an ErrLink that says what it is in its own words.
type linkError struct{ error }

func (e linkError) Is(target error) bool { return target == ErrLink }
func (e linkError) Unwrap() error        { return e.error }

// Found is what the host looks like now.
type Found struct {
	// Link is the link of the name that was asked for.
	Link Link
	// Table is whether a table of this layout is there, intact or not.
	Table bool
	// Other lists our tables of other layouts.
	Other []string
	// Held is what the sets hold.
	Held []Hold
	// Counts is what the table counted.
	Counts Counts
	// Elsewhere lists the links that hold further addresses, by address.
	Elsewhere map[netip.Addr][]string
	// Leftovers lists rules and links of node-cache, which disable a fallback of
	// TCP: a sentence each.
	Leftovers []string
	// LeftAt lists the addresses of these.
	LeftAt []netip.Addr
	// Unread lists chains in which leftovers could not be looked for, and rules of
	// iptables-legacy that are such leftovers, a sentence each.
	Unread []string

	lines []string // as table.lines
}

// Link is a link with addresses.
type Link struct {
	Name  string
	Kind  string // "": there is none
	Up    bool
	Ours  bool // made or adopted by us, or of a kind that we may adopt
	Addrs []netip.Addr
}

// tables lists all tables of ours.
func (f Found) tables() []string {
	if f.Table {
		return append([]string{tableName}, f.Other...)
	}
	return f.Other
}

// Missing says how the host differs from s, a sentence each, or nil where it does
// not. What the sets hold and what was counted does not matter.
func (f Found) Missing(s State) []string {
	s = s.filled()
	out := f.tableMissing(build(s).lines())
	for _, name := range f.Other {
		out = append(out, "table "+name+": of another layout")
	}
	return append(out, f.Link.missing(s)...)
}

func (f Found) tableMissing(want []string) []string {
	switch {
	case f.Table && want == nil:
		return []string{"table " + tableName + ": not wanted"}
	case !f.Table && want != nil:
		return []string{"table " + tableName + ": missing"}
	}
	var out []string
	for _, line := range want {
		if !slices.Contains(f.lines, line) {
			out = append(out, "table "+tableName+": missing: "+line)
		}
	}
	for _, line := range f.lines {
		if !slices.Contains(want, line) {
			out = append(out, "table "+tableName+": not wanted: "+line)
		}
	}
	return out
}

func (l Link) missing(s State) []string {
	if s.Mode == None {
		if l.Kind != "" && l.Ours {
			return []string{"link " + l.Name + ": not wanted"}
		}
		return nil
	}
	if l.Kind == "" {
		return []string{"link " + s.Link + ": missing"}
	}
	var out []string
	if !l.Up {
		out = append(out, "link "+l.Name+": down")
	}
	for _, a := range s.listen() {
		if !slices.Contains(l.Addrs, a) {
			out = append(out, fmt.Sprintf("link %s: missing: address %v", l.Name, a))
		}
	}
	for _, a := range l.Addrs {
		if !slices.Contains(s.listen(), a) {
			out = append(out, fmt.Sprintf("link %s: not wanted: address %v", l.Name, a))
		}
	}
	return out
}

// ipvsLink holds every cluster address where kube-proxy uses IPVS.
const ipvsLink = "kube-ipvs0"

// refuse names what would break the node if s were applied.
func (f Found) refuse(s State) error {
	if s.Mode == None {
		return nil
	}
	for _, a := range s.listen() {
		if slices.Contains(f.Elsewhere[a], ipvsLink) {
			return fmt.Errorf("address %v is on %s, so kube-proxy uses IPVS: use mode link-local: %w", a, ipvsLink, ErrForeign)
		}
	}
	return nil
}

// oddities names what s can live with.
func (f Found) oddities(s State) []string {
	var out []string
	for _, a := range s.listen() {
		if links := f.Elsewhere[a]; len(links) > 0 {
			out = append(out, fmt.Sprintf("address %v is on link %s as well", a, strings.Join(links, ", ")))
		}
	}
	for _, list := range []struct {
		name    string
		targets []netip.AddrPort
	}{{"UDP", s.Fallback.UDP}, {"TCP", s.Fallback.TCP}} {
		for _, fam := range families() {
			if len(fam.addrs(s.Own)) > 0 && len(fam.targets(list.targets)) == 0 {
				out = append(out, fmt.Sprintf("no fallback for %s over IPv%s: no target is known", list.name, fam.digit))
			}
		}
	}
	return out
}

func sameLines(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
