package forwarder

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Search spares questions to the servers of a route that knows a cluster's names.
// Clients there try every name with the ends of a search list first, as in
// www.example.com.shop.svc.cluster.local, then with svc.cluster.local and
// cluster.local, and only then as it is.
type Search struct {
	// Domain is the cluster's, as "cluster.local.", in a zone of the route.
	// Default none: nothing is spared.
	Domain string
	// Prefetch asks for the following names of the list as soon as one of them is
	// asked for, so that the client finds them answered.
	Prefetch bool
	// Cut takes "no such name" for all names below (RFC 8020), inside the domain
	// and the zone only: elsewhere such an answer may be meant for that one name.
	Cut bool
	// Strict says that directly below the domain there is nothing but what
	// Kubernetes puts there. All other names do not exist as long as some name of
	// the domain was denied a moment ago.
	Strict bool
}

// search is a Search at work.
type search struct {
	Search
	domain []byte // folded wire form
	labels labels
	// denial is the last "no such name" of the domain.
	denial atomic.Pointer[cache.Entry]
}

// newSearch makes a search of c. Where rules rename names, one name's denial says
// nothing of another.
func newSearch(c Search, renamed bool) (*search, error) {
	if c.Domain == "" {
		return nil, nil
	}
	c.Cut, c.Strict = c.Cut && !renamed, c.Strict && !renamed
	name, ok := wire.AppendName(nil, strings.ToLower(c.Domain))
	if !ok || len(name) == 1 {
		return nil, fmt.Errorf("routes: search domain %q is not the domain of a cluster; write such as cluster.local", c.Domain)
	}
	return &search{Search: c, domain: name, labels: labels{seed: maphash.MakeSeed()}}, nil
}

// spot is where a folded name lies in the domain: the offsets of its labels
// before the domain, of which there are n.
type spot struct {
	at [maxSpot + 1]uint8 // the last is that of the domain
	n  int
}

// maxSpot is how many labels before the domain are looked at.
const maxSpot = 16

// locate finds a name in the domain; false for the domain itself, names elsewhere
// and names too long to be one of a search list.
func (s *search) locate(name []byte) (p spot, ok bool) {
	off := 0
	for len(name)-off > len(s.domain) {
		if p.n == maxSpot {
			return p, false
		}
		p.at[p.n] = uint8(off)
		p.n++
		off += 1 + int(name[off])
	}
	p.at[p.n] = uint8(off)
	return p, p.n > 0 && string(name[off:]) == string(s.domain)
}

// label is label i of the name that p is of.
func (p *spot) label(name []byte, i int) []byte { return name[p.at[i]+1 : p.at[i+1]] }

// level is the line of the search list that a name ends in.
type level uint8

const (
	inNamespace level = iota // shop.svc.cluster.local
	inServices               // svc.cluster.local
	inDomain                 // cluster.local
)

// candidate is a name that looks made with a search list.
type candidate struct {
	head  []byte // what the client looks for: labels, without the root
	count int    // of them
	last  []byte // of them
	level level
	ahead bool // the names after it are to be asked for
}

// read takes a folded name apart. false for names that the cluster itself has by
// that form, or that were found to be of that kind.
func (s *search) read(name []byte) (c candidate, ok bool) {
	p, ok := s.locate(name)
	if !ok {
		return c, false
	}
	c.count, c.level = p.n, inDomain
	switch string(p.label(name, p.n-1)) {
	case "svc":
		c.count, c.level = s.inServices(name, &p)
	case "pod", "dns", "dns-version":
		return c, false
	}
	if c.count < 2 || name[1] == '_' {
		return c, false
	}
	c.head, c.last = name[:p.at[c.count]], p.label(name, c.count-1)
	return c, s.labels.has(isNamespace, c.last) || s.labels.has(isOutside, c.last) || !s.labels.has(isHost, c.last)
}

// inServices tells how many labels before svc are the client's, and whether the
// one behind them is a namespace: not if it is the end of a client's name.
func (s *search) inServices(name []byte, p *spot) (int, level) {
	before := p.n - 1
	if before == 0 {
		return 0, inServices
	}
	end := p.label(name, before-1)
	if (s.labels.has(isOutside, end) || s.labels.has(isEnd, end)) && !s.labels.has(isNamespace, end) {
		return before, inServices
	}
	return before - 1, inNamespace
}

// top is the offset of the highest name above p's that says something of it: below
// svc.cluster.local, or below the domain; 0 when that is the name itself.
func (s *search) top(name []byte, p *spot) int {
	i := p.n - 1
	if i > 0 && string(p.label(name, i)) == "svc" {
		i--
	}
	return int(p.at[i])
}

// foreign reports whether a name lies where Kubernetes has nothing.
func (s *search) foreign(name []byte) bool {
	p, ok := s.locate(name)
	if !ok {
		return false
	}
	switch top := p.label(name, p.n-1); string(top) {
	case "svc", "pod", "dns", "dns-version":
		return false
	default:
		return top[0] != '_'
	}
}

// learn takes note of a name that exists, with records of the type asked for or
// without: it says what kind of name its labels belong to.
func (s *search) learn(name []byte, kind cache.Kind) {
	if p, ok := s.locate(name); ok {
		n := p.n - 1 // before svc
		if string(p.label(name, n)) != "svc" || n == 0 {
			return
		}
		s.labels.add(isNamespace, p.label(name, n-1))
		if n > 1 {
			s.labels.add(isHost, p.label(name, n-2))
		}
		return
	}
	if kind != cache.Positive {
		return
	}
	for len(name) > 1 {
		next := name[1+name[0]:]
		if len(next) == 1 {
			s.labels.add(isOutside, name[1:1+name[0]])
		}
		name = next
	}
}
