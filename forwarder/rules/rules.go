package rules

import (
	"errors"
	"net/netip"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Config is the rules of one route. The zero value changes nothing.
type Config struct {
	// Rewrite asks for names under other names. The first that fits a name
	// counts; what follows then sees the other name.
	Rewrite []Rewrite
	// Answers are fixed. The first that fits counts.
	Answers []Answer
	// FilterAAAA answers questions for IPv6 addresses with "no such record".
	FilterAAAA bool
	// Hosts gives the addresses of names, and the names of addresses. Default
	// none.
	Hosts *Hosts
	// DNS64 is the prefix of the IPv6 addresses that are made of IPv4 ones for
	// names without IPv6 addresses (RFC 6147), of 32, 40, 48, 56, 64 or 96 bits
	// (RFC 6052 section 2.2). Default none.
	DNS64 netip.Prefix
	// DNS64All makes them also for names with IPv6 addresses. Default false.
	DNS64All bool
	// Only answers with SERVFAIL what nothing above answers: there are no
	// servers.
	Only bool
}

// Set is the rules of one route at work. It is safe for concurrent use.
type Set struct {
	rewrites []rewrite
	answers  []fixed
	noAAAA   bool
	hosts    *Hosts
	dns64    *dns64
	only     bool
}

// New makes a Set, nil when there are no rules. Its error names every mistake.
func New(cfg Config) (*Set, error) {
	s := &Set{noAAAA: cfg.FilterAAAA, hosts: cfg.Hosts, only: cfg.Only}
	var errs []error
	for _, r := range cfg.Rewrite {
		made, err := newRewrite(r)
		s.rewrites, errs = append(s.rewrites, made), append(errs, err)
	}
	for _, a := range cfg.Answers {
		made, err := newFixed(a)
		s.answers, errs = append(s.answers, made), append(errs, err)
	}
	if cfg.DNS64.IsValid() {
		made, err := newDNS64(cfg.DNS64, cfg.DNS64All)
		s.dns64, errs = made, append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if s.rewrites == nil && s.answers == nil && !s.noAAAA && s.hosts == nil && s.dns64 == nil && !s.only {
		return nil, nil
	}
	return s, nil
}

// By is which rule answers a question.
type By struct {
	// Fixed is false for what a hosts list answers, and for what no rule does.
	Fixed bool
	// Zone is one of the Set's Zones, the longest of the fixed answer that the name
	// is in; "" when the answer is for every name of the route.
	Zone string
}

// Local answers a question of class IN that needs no server. name is the
// question's name in lower case, apex how many bytes of it are the name of its
// zone, and turn, any number, which of several addresses comes first. The reply,
// without OPT, is made in dst's memory; ok is false when a server must be asked.
func (s *Set) Local(dst []byte, q *wire.Query, name []byte, apex int, turn uint16) (reply []byte, by By, ok bool) {
	var buf [wire.MaxName]byte
	if _, other, ok := s.rename(buf[:0], name); ok {
		name = other
	}
	for i := range s.answers {
		if zone, fits := s.answers[i].fits(name, q.Type); fits {
			return s.answers[i].append(dst[:0], q, apex), By{Fixed: true, Zone: zone}, true
		}
	}
	if s.noAAAA && q.Type == wire.TypeAAAA {
		return appendNothing(dst[:0], q, wire.NoError, apex), By{Fixed: true}, true
	}
	if s.hosts != nil {
		reply, ok = s.hosts.answer(dst[:0], q, name, apex, turn)
	}
	if !ok && s.only {
		reply, ok = appendFailure(dst[:0], q), true
	}
	return reply, By{}, ok
}

// Zones are the names that fixed answers are given below, with a final dot.
func (s *Set) Zones() []string {
	var list []string
	for i := range s.answers {
		for _, top := range s.answers[i].below {
			list = append(list, top.text)
		}
	}
	return list
}

// Renames reports whether names are asked for under other names, so that a name
// says nothing of those below it.
func (s *Set) Renames() bool { return s.rewrites != nil }

// Knows reports whether Local answers the questions of a type for a folded name.
func (s *Set) Knows(name []byte, t wire.Type) bool {
	var buf [wire.MaxName]byte
	if _, other, ok := s.rename(buf[:0], name); ok {
		name = other
	}
	for i := range s.answers {
		if _, fits := s.answers[i].fits(name, t); fits {
			return true
		}
	}
	return s.only || s.noAAAA && t == wire.TypeAAAA || s.hosts != nil && s.hosts.knows(name)
}

// nothingTTL is how long clients may keep that there is nothing, in seconds.
const nothingTTL = 60

// appendNothing appends a reply without answers.
func appendNothing(dst []byte, q *wire.Query, rcode wire.RCode, apex int) []byte {
	start := len(dst)
	dst = wire.AppendAnswerHead(dst, q, rcode)
	return wire.AppendSOA(dst, start, q, apex, nothingTTL)
}

// appendFailure appends the reply to what nobody answers.
func appendFailure(dst []byte, q *wire.Query) []byte {
	start := len(dst)
	dst = wire.AppendAnswerHead(dst, q, wire.ServFail)
	wire.ClearClaims(dst[start:])
	return dst
}

// fitsBelow reports whether a folded name is, or lies below, another.
func fitsBelow(name, top []byte) bool {
	for len(name) > len(top) {
		name = name[1+name[0]:]
	}
	return string(name) == string(top)
}
