package rules

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Rewrite asks for one name, or for all names that end alike, under another. The
// servers of the route are asked all the same, and their answers are told under
// the name that the client asked for.
type Rewrite struct {
	// From is the client's name, To the one to ask for.
	From, To string
	// Suffix takes both for the ends of names: of From itself and all below it.
	Suffix bool
}

// rewrite is a Rewrite at work.
type rewrite struct {
	from, to         []byte // folded wire form
	fromText, toText string
	suffix           bool
}

func newRewrite(r Rewrite) (rewrite, error) {
	w := rewrite{suffix: r.Suffix, fromText: dns.CanonicalName(r.From), toText: dns.CanonicalName(r.To)}
	var fromGood, toGood bool
	w.from, fromGood = wire.AppendName(nil, strings.ToLower(r.From))
	w.to, toGood = wire.AppendName(nil, strings.ToLower(r.To))
	if !fromGood || !toGood {
		return w, fmt.Errorf("rewrite: %q to %q needs two domain names; write labels of 1 to 63 bytes with dots between", r.From, r.To)
	}
	return w, nil
}

// fits reports whether a folded name is rewritten.
func (w *rewrite) fits(name []byte) bool {
	if w.suffix {
		return fitsBelow(name, w.from) && len(name)-len(w.from)+len(w.to) <= wire.MaxName
	}
	return bytes.Equal(name, w.from)
}

// rename gives the name that is asked for in place of a folded one, and the rule
// that says so. The other name is made in dst's memory.
func (s *Set) rename(dst, name []byte) (w *rewrite, other []byte, ok bool) {
	for i := range s.rewrites {
		if w = &s.rewrites[i]; w.fits(name) {
			dst = append(dst, name[:len(name)-len(w.from)]...)
			return w, append(dst, w.to...), true
		}
	}
	return nil, nil, false
}

// Renamed is the name that the servers are asked for in place of a folded one; ok
// is false when they are asked for the name itself.
func (s *Set) Renamed(name []byte) (other []byte, ok bool) {
	_, other, ok = s.rename(nil, name)
	return other, ok
}

// back turns a reply to the other name into one to the name that was asked for.
// Names in the data are turned back too, where a client that asks for them will
// be led to the same place again. Signatures do not survive it, nor does any
// claim that the data is authentic.
func (s *Set) back(w *rewrite, r *wire.Reply, q *wire.Query) (wire.Reply, error) {
	var m dns.Msg
	if err := m.Unpack(r.Msg); err != nil {
		return wire.Reply{}, err
	}
	t := turn{set: s, rule: w, asked: string(wire.AppendText(nil, q.Name()))}
	m.Question[0].Name = t.asked
	m.Answer, m.Ns, m.Extra = t.all(m.Answer), t.all(m.Ns), t.all(m.Extra)
	if len(m.Answer) == 0 {
		t.raise(m.Ns)
	}
	m.AuthenticatedData = false
	return packed(&m, r)
}

// packed is a reply made of a message, which was made of the reply from.
func packed(m *dns.Msg, from *wire.Reply) (wire.Reply, error) {
	m.Compress = true
	msg, err := m.Pack()
	if err != nil {
		return wire.Reply{}, err
	}
	made, err := wire.ParseReply(msg)
	made.Via, made.Made = from.Via, from.Made
	return made, err
}

// turn turns the names of one reply back.
type turn struct {
	set   *Set
	rule  *rewrite
	asked string
}

func (t *turn) all(records []dns.RR) []dns.RR {
	kept := records[:0]
	for _, rr := range records {
		switch rr.Header().Rrtype {
		case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3:
			continue
		}
		rr.Header().Name = t.name(rr.Header().Name)
		t.data(rr)
		kept = append(kept, rr)
	}
	return kept
}

// data turns the names back that a client will ask for next.
func (t *turn) data(rr dns.RR) {
	switch rr := rr.(type) {
	case *dns.CNAME:
		rr.Target = t.name(rr.Target)
	case *dns.DNAME:
		rr.Target = t.name(rr.Target)
	case *dns.SRV:
		rr.Target = t.name(rr.Target)
	case *dns.MX:
		rr.Mx = t.name(rr.Mx)
	case *dns.SVCB:
		rr.Target = t.name(rr.Target)
	case *dns.HTTPS:
		rr.Target = t.name(rr.Target)
	}
}

// name turns one name back, if the rule is the one that led to it.
func (t *turn) name(name string) string {
	w := t.rule
	if !w.suffix {
		if dns.CanonicalName(name) == w.toText {
			return t.asked
		}
		return name
	}
	if !dns.IsSubDomain(w.toText, name) {
		return name
	}
	labels := dns.Split(name)
	own := len(labels) - dns.CountLabel(w.toText)
	head := name
	if own < len(labels) {
		head = name[:labels[own]]
	}
	other := strings.TrimSuffix(head+w.fromText, ".") + "."
	key, ok := wire.AppendName(nil, strings.ToLower(other))
	if !ok {
		return name // longer than a name may be, or with bytes that need escapes
	}
	if led, _, ok := t.set.rename(nil, key); !ok || led != w {
		return name // the client would be led elsewhere
	}
	if strings.EqualFold(other, t.asked) {
		return t.asked
	}
	return other
}

// raise moves the zone of a "no such name" above the name asked for, where
// clients look for it, if it is not there already.
func (t *turn) raise(authority []dns.RR) {
	for _, rr := range authority {
		if soa, ok := rr.(*dns.SOA); ok && !dns.IsSubDomain(soa.Hdr.Name, t.asked) {
			soa.Hdr.Name = t.rule.fromText
		}
	}
}
