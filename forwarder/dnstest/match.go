package dnstest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// mismatch says in which of the ways that count a message differs from the
// entry; "" when it matches.
func (e *Entry) mismatch(m *dns.Msg) string {
	for _, word := range e.Match {
		if fault := e.differs(word, m); fault != "" {
			return word + ": " + fault
		}
	}
	return ""
}

func (e *Entry) differs(word string, m *dns.Msg) string {
	word, value, _ := strings.Cut(word, "=")
	h, want := &m.MsgHdr, &e.Msg.MsgHdr
	switch word {
	case "opcode":
		return differ(want.Opcode, h.Opcode)
	case "rcode":
		return differ(want.Rcode, h.Rcode)
	case "qtype":
		return differ(asked(e.Msg).Qtype, asked(m).Qtype)
	case "qname":
		return differ(lower(asked(e.Msg).Name), lower(asked(m).Name))
	case "subdomain":
		return differ(true, dns.IsSubDomain(asked(e.Msg).Name, asked(m).Name))
	case "question":
		return e.sameQuestion(m)
	case "answer":
		return sameRecords(e.Msg.Answer, m.Answer)
	case "all", "all_noedns":
		return e.sameMessage(m, word == "all")
	case "ttl":
		return differ(ttls(e.Msg), ttls(m))
	case "AD":
		return differ(true, h.AuthenticatedData)
	case "CD":
		return differ(true, h.CheckingDisabled)
	case "RD":
		return differ(true, h.RecursionDesired)
	case "DO":
		return differ(true, wantsDNSSEC(m))
	case "noedns":
		return differ(true, m.IsEdns0() == nil)
	case "ede":
		code, ok := Extended(m)
		if ok && value == "any" {
			return ""
		}
		return differ(value, strconv.Itoa(int(code)))
	case "UDP", "TCP":
		return "" // a group is not told which
	}
	return "the word is not understood"
}

func (e *Entry) sameQuestion(m *dns.Msg) string {
	want, got := asked(e.Msg), asked(m)
	want.Name, got.Name = lower(want.Name), lower(got.Name)
	return differ(want, got)
}

// sameMessage compares everything but TTLs and ID. The files of a resolver may
// expect RA to be unset, because their servers leave it unset; a forwarder
// always sets it.
func (e *Entry) sameMessage(m *dns.Msg, withEDNS bool) string {
	want, got := e.Msg.MsgHdr, m.MsgHdr
	want.Id, want.RecursionAvailable = got.Id, want.Response
	faults := []string{
		differ(want, got), e.sameQuestion(m),
		sameRecords(e.Msg.Answer, m.Answer), sameRecords(e.Msg.Ns, m.Ns), sameRecords(e.Msg.Extra, m.Extra),
	}
	if withEDNS {
		faults = append(faults, differ(e.DO, wantsDNSSEC(m)))
	}
	return strings.TrimSpace(strings.Join(faults, " "))
}

func differ[T any](want, got T) string {
	if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
		return fmt.Sprintf("want %s, got %s", w, g)
	}
	return ""
}

// sameRecords compares two sections, apart from order, TTLs and OPT.
func sameRecords(want, got []dns.RR) string { return differ(texts(want, false), texts(got, false)) }

func ttls(m *dns.Msg) []string {
	return slices.Concat(texts(m.Answer, true), texts(m.Ns, true), texts(m.Extra, true))
}

func texts(section []dns.RR, withTTL bool) []string {
	var out []string
	for _, rr := range section {
		if rr.Header().Rrtype == dns.TypeOPT {
			continue
		}
		rr = dns.Copy(rr)
		if !withTTL {
			rr.Header().Ttl = 0
		}
		out = append(out, lower(rr.String()))
	}
	slices.Sort(out)
	return out
}

func asked(m *dns.Msg) dns.Question {
	if len(m.Question) == 0 {
		return dns.Question{}
	}
	return m.Question[0]
}

func wantsDNSSEC(m *dns.Msg) bool {
	opt := m.IsEdns0()
	return opt != nil && opt.Do()
}

func lower(s string) string { return strings.ToLower(s) }
