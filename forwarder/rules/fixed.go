package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Answer is given to every question that fits, whatever servers would say.
type Answer struct {
	// Below are names; those and all below them fit. Default every name.
	Below []string
	// Match is a regular expression that the name, in lower case and with a
	// final dot, fits besides. Default none.
	Match string
	// Types of the questions that fit. Default all.
	Types []uint16
	// RCode is the response code, 0 (no error) to 15. Default 0.
	RCode int
	// Records are the answer: TTL, type and data as in a zone file, such as
	// "60 A 192.0.2.1". Their owner is the name asked for. A question gets those
	// of its type and aliases; without any, it gets "no such record". Default
	// none.
	Records []string
}

// fixed is an Answer at work.
type fixed struct {
	below   []top
	match   *regexp.Regexp
	types   []wire.Type
	rcode   wire.RCode
	records []record
}

// top is a name that is answered with all below it.
type top struct {
	name []byte // folded wire form
	text string // with a final dot
}

type record struct {
	kind wire.Type
	ttl  uint32
	data []byte
}

func newFixed(a Answer) (f fixed, err error) {
	var errs []error
	for _, text := range a.Below {
		name, ok := wire.AppendName(nil, strings.ToLower(text))
		if !ok {
			errs = append(errs, fmt.Errorf("answers: %q is not a domain name; write labels of 1 to 63 bytes with dots between", text))
		}
		f.below = append(f.below, top{name, string(wire.AppendText(nil, name))})
	}
	if a.Match != "" {
		if f.match, err = regexp.Compile(a.Match); err != nil {
			errs = append(errs, fmt.Errorf("answers: %w; write it in the syntax of Go's regexp", err))
		}
	}
	for _, t := range a.Types {
		f.types = append(f.types, wire.Type(t))
	}
	if a.RCode < 0 || a.RCode > 15 || a.RCode != 0 && a.Records != nil {
		errs = append(errs, fmt.Errorf("answers: response code %d needs to be 0 to 15, and 0 beside records", a.RCode))
	}
	f.rcode = wire.RCode(a.RCode)
	for _, text := range a.Records {
		r, err := newRecord(text)
		f.records, errs = append(f.records, r), append(errs, err)
	}
	return f, errors.Join(errs...)
}

func newRecord(text string) (record, error) {
	rr, err := dns.NewRR(". " + text)
	const maxTTL = 1<<31 - 1 // RFC 2181 section 8
	if err != nil || rr == nil || rr.Header().Class != dns.ClassINET || rr.Header().Ttl > maxTTL {
		return record{}, fmt.Errorf(`answers: %q is no record; write TTL (at most 2147483647), type and data such as "60 A 192.0.2.1"`, text)
	}
	buf := make([]byte, dns.Len(rr))
	end, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		return record{}, fmt.Errorf("answers: record %q: %w", text, err)
	}
	const head = 11 // owner ".", type, class, TTL, length
	return record{wire.Type(rr.Header().Rrtype), rr.Header().Ttl, buf[head:end]}, nil
}

// fits reports whether a question for a folded name gets the answer, and below
// which of its names that is; "" for an answer to every name.
func (f *fixed) fits(name []byte, t wire.Type) (zone string, ok bool) {
	if f.types != nil && !slices.Contains(f.types, t) {
		return "", false
	}
	if f.below != nil {
		if zone, ok = f.longest(name); !ok {
			return "", false
		}
	}
	if f.match == nil {
		return zone, true
	}
	var buf [4 * wire.MaxName]byte // \DDD for each byte
	return zone, f.match.Match(wire.AppendText(buf[:0], name))
}

// longest is the longest name that a folded one is, or lies below.
func (f *fixed) longest(name []byte) (zone string, ok bool) {
	size := 0
	for i := range f.below {
		if top := &f.below[i]; len(top.name) > size && fitsBelow(name, top.name) {
			zone, size = top.text, len(top.name)
		}
	}
	return zone, size > 0
}

func (f *fixed) append(dst []byte, q *wire.Query, apex int) []byte {
	start := len(dst)
	dst = wire.AppendAnswerHead(dst, q, f.rcode)
	if f.rcode != wire.NoError && f.rcode != wire.NXDomain {
		wire.ClearClaims(dst[start:])
		return dst
	}
	found := false
	for i := range f.records {
		if r := &f.records[i]; r.kind == q.Type || r.kind == wire.TypeCNAME || q.Type == wire.TypeANY {
			dst = wire.AppendAnswerOf(dst, start, q, r.kind, r.ttl, r.data)
			found = true
		}
	}
	if !found {
		return wire.AppendSOA(dst, start, q, apex, nothingTTL)
	}
	return dst
}
