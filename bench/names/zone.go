package names

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// Class tells what kind of name was asked for; the TTL hangs on it.
type Class uint8

// The classes, with the TTL of their records in seconds.
const (
	Missing  Class = iota // no such name: 5
	Bare                  // exists without records (a namespace, the domain): 5
	Headless              // a service that answers with a pod's address: 5
	Service               // a service with a cluster address: 30
	External              // a name outside the cluster: 60
	Stable                // a name outside the cluster that seldom changes: 300
	Wild                  // any name below WildSuffix: 300
	NumClass              // the number of classes
)

// String gives the class's name in lower case.
func (c Class) String() string {
	return [...]string{"missing", "bare", "headless", "service", "external", "stable", "wild"}[c]
}

// NegativeTTL is the TTL of every negative answer and the minimum field of its
// SOA, in seconds, unless the configuration says otherwise.
const NegativeTTL = 5

// WildSuffix is the domain below which every name exists, with addresses made
// from the name itself.
const WildSuffix = "wild.test"

// Response codes that a Zone answers with.
const (
	NoError  uint8 = 0
	NXDomain uint8 = 3
)

// Answer is what the zone says about a name and type. RCode 0 with an invalid
// Addr is NODATA.
type Answer struct {
	RCode uint8
	Class Class
	TTL   uint32     // seconds, of the address record or of the negative answer
	Addr  netip.Addr // the one address of the record
	// Open says that the name is a real cluster's and its addresses are not
	// known here (a headless service): the rest is a guess.
	Open bool
}

// entry is one existing name.
type entry struct {
	class  Class
	open   bool
	v4, v6 netip.Addr
}

// Zone holds every name of a cluster and of the world around it. It never
// changes after it was made.
type Zone struct {
	domain  []byte // wire form, folded
	wild    []byte
	ttl     uint32           // of everything, 0: by class
	entries map[string]entry // by folded wire name

	services []target
	external []target
	pods     [][]byte // for each namespace with pods: namespace.svc.domain
}

// target is something that pods look up.
type target struct {
	name []byte // full wire name
}

// NewZone builds the zone that cfg describes.
func NewZone(cfg Config) (*Zone, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	z := &Zone{ttl: cfg.TTL, entries: make(map[string]entry, cfg.Services+cfg.External+cfg.Namespaces+8)}
	var err error
	if z.domain, err = Wire(strings.ToLower(cfg.Domain)); err != nil {
		return nil, err
	}
	if z.wild, err = Wire(WildSuffix); err != nil {
		return nil, err
	}
	if err := z.addCluster(cfg); err != nil {
		return nil, err
	}
	if err := z.addExternal(cfg); err != nil {
		return nil, err
	}
	return z, nil
}

// Answer says what the zone holds for a wire-form name of any case. Types other
// than A and AAAA are NODATA where the name exists. It allocates nothing.
func (z *Zone) Answer(name []byte, qtype uint16) Answer {
	var buf [maxName]byte
	folded := fold(&buf, name)
	e, ok := z.entries[string(folded)]
	switch {
	case !ok && isBelow(folded, z.wild):
		e = wildEntry(folded)
	case !ok:
		return Answer{RCode: NXDomain, Class: Missing, TTL: z.seconds(Missing)}
	}
	a := Answer{Class: e.class, TTL: z.seconds(Missing), Open: e.open}
	switch qtype {
	case TypeA:
		a.Addr = e.v4
	case TypeAAAA:
		a.Addr = e.v6
	}
	if a.Addr.IsValid() {
		a.TTL = z.seconds(e.class)
	}
	return a
}

// Authority gives the length of the suffix of name that is the zone a negative
// answer's SOA belongs to: the cluster's domain, or else the last label. Whether
// it is the cluster's is the second result.
func (z *Zone) Authority(name []byte) (suffix int, cluster bool) {
	var buf [maxName]byte
	folded := fold(&buf, name)
	if bytes.Equal(folded, z.domain) || isBelow(folded, z.domain) {
		return len(z.domain), true
	}
	last := 0
	for i := 0; i < len(name) && name[i] != 0; i += int(name[i]) + 1 {
		last = i
	}
	return len(name) - last, false
}

// seconds is the TTL of a class; that of Missing is every negative answer's.
func (z *Zone) seconds(c Class) uint32 {
	if z.ttl > 0 {
		return z.ttl
	}
	switch c {
	case Headless:
		return 5
	case Service:
		return 30
	case External:
		return 60
	case Stable, Wild:
		return 300
	case Missing, Bare, NumClass:
	}
	return NegativeTTL
}

// isBelow tells whether folded ends in suffix at a label's edge.
func isBelow(folded, suffix []byte) bool {
	cut := len(folded) - len(suffix)
	if cut <= 0 || !bytes.Equal(folded[cut:], suffix) {
		return false
	}
	i := 0
	for i < cut {
		i += int(folded[i]) + 1
	}
	return i == cut
}

// wildEntry makes addresses from the name (FNV-1a), so that a reply for another
// name cannot pass for the right one.
func wildEntry(folded []byte) entry {
	h := uint64(14695981039346656037)
	for _, c := range folded {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return entry{class: Wild, v4: address4(198<<24|18<<16, 15, uint32(h^h>>32)), v6: address6(0xffff, h)}
}

// address4 puts the low bits of n behind a prefix of the given length.
func address4(prefix uint32, bits int, n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], prefix|n&(1<<(32-bits)-1))
	return netip.AddrFrom4(b)
}

// address6 is an address of the documentation prefix: a number for the kind of
// name, and the name's number.
func address6(kind uint16, n uint64) netip.Addr {
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint16(b[4:], kind)
	binary.BigEndian.PutUint64(b[8:], n)
	return netip.AddrFrom16(b)
}

func (z *Zone) add(text string, e entry) ([]byte, error) {
	wire, err := Wire(text)
	if err != nil {
		return nil, err
	}
	if _, ok := z.entries[string(wire)]; ok {
		return nil, fmt.Errorf("names: %s is made twice", text)
	}
	z.entries[string(wire)] = e
	return wire, nil
}
