package hostnet

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"

	"github.com/google/nftables"
)

// layout is the version of the table's shape. A table of another layout is replaced
// in the same transaction.
const (
	layout      = "1"
	tablePrefix = "nodens_v"
	tableName   = tablePrefix + layout
)

// A table is the whole of what we ask of nftables.
type table struct {
	name     string
	sets     []set
	counters []string
	chains   []chain
}

// A set holds addresses of one family, for good or with a timeout each.
type set struct {
	name    string
	family  family
	timeout bool
	addrs   []netip.Addr
}

type chain struct {
	name  string
	hook  *hook // nil: only reached from other chains
	rules []rule
}

// hook is where the kernel enters a chain.
type hook struct {
	kind     nftables.ChainType
	name     string
	number   *nftables.ChainHook
	priority int32
}

type rule []term

func (r rule) String() string {
	words := make([]string, 0, len(r))
	for _, t := range r {
		words = append(words, t.text)
	}
	return strings.Join(words, " ")
}

// tag tells rules apart that were read back.
func (r rule) tag() string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(r.String())) // a hash never fails
	return fmt.Sprintf("%016x", sum.Sum64())
}

// Priorities. Before connection tracking is before raw (-300) too, so that nobody
// decides earlier; before kube-proxy is before dstnat (-100) and srcnat (100).
const (
	beforeTracking = -305
	beforeDstnat   = -110
	beforeSrcnat   = 95
)

func filterHook(name string, number *nftables.ChainHook) *hook {
	return &hook{kind: nftables.ChainTypeFilter, name: name, number: number, priority: beforeTracking}
}

func natHook(name string, number *nftables.ChainHook, priority int32) *hook {
	return &hook{kind: nftables.ChainTypeNAT, name: name, number: number, priority: priority}
}

// build draws the table for a state that is filled and valid, or nil for mode none.
func build(s State) *table {
	if s.Mode == None {
		return nil
	}
	b := builder{State: s}
	for _, f := range families() {
		if len(f.addrs(s.listen())) > 0 {
			b.families = append(b.families, f)
		}
	}
	t := &table{name: tableName}
	for _, f := range b.families {
		t.sets = append(t.sets, b.sets(f)...)
		t.counters = append(t.counters, counterName(udp(), f), counterName(tcp(), f))
	}
	t.chains = b.chains()
	return t
}

func counterName(p proto, f family) string { return "fallback_" + p.name + f.digit }

// lines lists the table as facts that can be compared with those read back.
func (t *table) lines() []string {
	if t == nil {
		return nil
	}
	lines := []string{"table " + t.name}
	for _, s := range t.sets {
		lines = append(lines, "set "+s.name)
		for _, a := range s.addrs {
			lines = append(lines, fmt.Sprintf("set %s has %s", s.name, a))
		}
	}
	for _, c := range t.counters {
		lines = append(lines, "counter "+c)
	}
	for _, c := range t.chains {
		lines = append(lines, c.line())
		for i, r := range c.rules {
			lines = append(lines, ruleLine(c.name, i, r.tag()))
		}
	}
	return lines
}

func (c chain) line() string {
	if c.hook == nil {
		return "chain " + c.name
	}
	return fmt.Sprintf("chain %s at %s %d", c.name, c.hook.kind, c.hook.priority)
}

func ruleLine(chain string, i int, tag string) string {
	return fmt.Sprintf("rule %d of chain %s is %s", i, chain, tag)
}
