package rules

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// HostsConfig is how a hosts list is answered with.
type HostsConfig struct {
	// TTL of the answers, in whole seconds. At least 0.
	TTL time.Duration
	// Reverse answers also which names an address has.
	Reverse bool
	// Only says that no other names exist; otherwise servers are asked for them.
	Only bool
}

// Hosts is a list of names with addresses, which can be replaced while it is in
// use.
type Hosts struct {
	cfg  HostsConfig
	list atomic.Pointer[hostList]
}

// hostList never changes once it is in use. Names are folded wire form.
type hostList struct {
	byName    map[string]*host
	byAddress map[string][][]byte // by the reverse name: data of PTR records
}

// host is data of A and AAAA records.
type host struct{ v4, v6 [][]byte }

// recordSet is the data of a name's records of one type.
type recordSet struct {
	kind wire.Type
	data [][]byte
}

// NewHosts makes an empty list.
func NewHosts(cfg HostsConfig) *Hosts {
	h := &Hosts{cfg: cfg}
	h.list.Store(&hostList{})
	return h
}

// Len is the number of names.
func (h *Hosts) Len() int { return len(h.list.Load().byName) }

// maxHostMistakes is how many lines are named that cannot be read.
const maxHostMistakes = 10

// Update replaces the list by the lines of texts in the format of a hosts file:
// an address and its names, with # before a comment. Lines that cannot be read
// are left out; the error names the first of them.
func (h *Hosts) Update(texts ...[]byte) error {
	next := &hostList{byName: map[string]*host{}, byAddress: map[string][][]byte{}}
	var errs []error
	for _, text := range texts {
		lines := bufio.NewScanner(bytes.NewReader(text))
		for n := 1; lines.Scan(); n++ {
			line, _, _ := strings.Cut(lines.Text(), "#")
			if err := next.add(strings.Fields(line)); err != nil && len(errs) < maxHostMistakes {
				errs = append(errs, fmt.Errorf("line %d: %w", n, err))
			}
		}
		errs = append(errs, lines.Err())
	}
	h.list.Store(next)
	return errors.Join(errs...)
}

// add takes the words of one line.
func (l *hostList) add(words []string) error {
	if len(words) == 0 {
		return nil
	}
	ip, err := netip.ParseAddr(words[0])
	if err != nil || len(words) == 1 {
		return fmt.Errorf("%q is not an address and its names; write 192.0.2.1 db.example", strings.Join(words, " "))
	}
	ip = ip.Unmap().WithZone("")
	reverse, err := dns.ReverseAddr(ip.String())
	if err != nil {
		return err
	}
	from, _ := wire.AppendName(nil, reverse)
	for _, word := range words[1:] {
		name, ok := wire.AppendName(nil, strings.ToLower(word))
		if !ok {
			return fmt.Errorf("%q is not a name; write labels of 1 to 63 bytes with dots between", word)
		}
		l.put(name, ip)
		l.byAddress[string(from)] = appendNew(l.byAddress[string(from)], name)
	}
	return nil
}

func (l *hostList) put(name []byte, ip netip.Addr) {
	h := l.byName[string(name)]
	if h == nil {
		h = &host{}
		l.byName[string(name)] = h
	}
	if ip.Is4() {
		h.v4 = appendNew(h.v4, ip.AsSlice())
	} else {
		h.v6 = appendNew(h.v6, ip.AsSlice())
	}
}

// appendNew appends data that the list does not have yet.
func appendNew(list [][]byte, data []byte) [][]byte {
	for _, old := range list {
		if bytes.Equal(old, data) {
			return list
		}
	}
	return append(list, data)
}

// knows reports whether questions for a name are answered.
func (h *Hosts) knows(name []byte) bool {
	list := h.list.Load()
	_, isAddress := list.byAddress[string(name)]
	_, isName := list.byName[string(name)]
	return h.cfg.Only || isName || isAddress && h.cfg.Reverse
}

// answer answers a question for a name, or with Only for any.
func (h *Hosts) answer(dst []byte, q *wire.Query, name []byte, apex int, turn uint16) ([]byte, bool) {
	list := h.list.Load()
	var has [2]recordSet
	names, isAddress := list.byAddress[string(name)]
	of, isName := list.byName[string(name)]
	switch {
	case isAddress && h.cfg.Reverse:
		has[0] = recordSet{wire.TypePTR, names}
	case isName:
		has = [2]recordSet{{wire.TypeA, of.v4}, {wire.TypeAAAA, of.v6}}
	case h.cfg.Only:
		return appendNothing(dst, q, wire.NXDomain, apex), true
	default:
		return nil, false
	}
	start := len(dst)
	dst = wire.AppendAnswerHead(dst, q, wire.NoError)
	found := false
	for _, s := range has {
		if q.Type == s.kind || q.Type == wire.TypeANY {
			dst = h.appendSet(dst, start, q, s, turn)
			found = found || len(s.data) > 0
		}
	}
	if !found {
		dst = wire.AppendSOA(dst, start, q, apex, nothingTTL)
	}
	return dst, true
}

// appendSet appends the records of one type, another first for each turn.
func (h *Hosts) appendSet(dst []byte, start int, q *wire.Query, s recordSet, turn uint16) []byte {
	for i := range s.data {
		dst = wire.AppendAnswerOf(dst, start, q, s.kind, uint32(h.cfg.TTL/time.Second), s.data[(i+int(turn))%len(s.data)])
	}
	return dst
}
