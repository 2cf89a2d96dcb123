package forwarder_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// outcomes are the response codes that packets deserve.
var outcomes = map[dnstest.Outcome]int{
	dnstest.BareError: dns.RcodeFormatError,
	dnstest.FormErr:   dns.RcodeFormatError,
	dnstest.NotImp:    dns.RcodeNotImplemented,
	dnstest.BadVers:   dns.RcodeBadVers,
	dnstest.Refused:   dns.RcodeRefused,
	dnstest.Fine:      dns.RcodeSuccess,
}

func TestHostilePackets(t *testing.T) {
	for _, p := range dnstest.HostilePackets() {
		for _, proto := range []forwarder.Proto{forwarder.UDP, forwarder.TCP} {
			t.Run(p.Name, func(t *testing.T) {
				r := newRig(t, dnstest.Addresses(1))
				for _, way := range []string{"first", "second"} {
					reply, _ := r.ask(p.Bytes, proto)
					if p.Outcome == dnstest.Ignored {
						if reply != nil {
							t.Errorf("%s: answered", way)
						}
						continue
					}
					checkOutcome(t, p, dnstest.Unpack(t, reply))
				}
				if asked := r.server.Asked() > 0; asked != (p.Outcome == dnstest.Fine) {
					t.Errorf("servers asked: %v", asked)
				}
				for _, q := range r.server.Seen() {
					if len(q.Question) != 1 || len(q.Extra) != 1 || len(q.IsEdns0().Option) != 0 || q.Len() > len(p.Bytes)+wire.OPTLen {
						t.Errorf("the servers got %v", q)
					}
				}
			})
		}
	}
}

func checkOutcome(t *testing.T, p dnstest.Packet, m *dns.Msg) {
	t.Helper()
	if m.Rcode != outcomes[p.Outcome] || !m.Response || !m.RecursionAvailable || m.Zero || m.Id != 0x1234 {
		t.Errorf("reply %v", m)
	}
	if m.Opcode != int(p.Bytes[2]>>3&15) {
		t.Errorf("opcode %d", m.Opcode)
	}
	withQuestion := p.Outcome != dnstest.BareError && p.Outcome != dnstest.NotImp
	if withQuestion != (len(m.Question) == 1) && p.Outcome != dnstest.NotImp {
		t.Errorf("questions in the reply: %v", m.Question)
	}
	if opt := m.IsEdns0(); opt != nil && (opt.Version() != 0 || len(opt.Option) > 0 && p.Outcome != dnstest.Refused || opt.Hdr.Ttl&0x7fff != 0) {
		t.Errorf("OPT %v", opt)
	}
	if p.Outcome == dnstest.BadVers && m.IsEdns0() == nil {
		t.Error("BADVERS without OPT")
	}
}

func TestHostileReplies(t *testing.T) {
	for _, p := range dnstest.HostileReplies() {
		t.Run(p.Name, func(t *testing.T) {
			r := newRig(t, nil)
			r.server.ScriptBytes(func([]byte) []byte { return bytes.Clone(p.Bytes) })
			start := time.Now()
			got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
			if got.Rcode != dns.RcodeServerFailure || r.server.Asked() != 1 {
				t.Errorf("asked %d times, got %v", r.server.Asked(), got)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("took %v", took)
			}
			r.turn(5 * time.Second)
			r.server.Script(dnstest.Addresses(1))
			if got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); len(got.Answer) != 1 {
				t.Errorf("later: %v", got)
			}
		})
	}
}

// TestMutatedReplies has servers that say nonsense: other names go on working.
func TestMutatedReplies(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	r := newRig(t, nil)
	query := dnstest.Pack(t, dnstest.Question("a.test.", dns.TypeA))
	sane := dnstest.Pack(t, dnstest.Records(t, 0,
		"a.test. 5 IN CNAME b.test.", "b.test. 5 IN A 10.0.0.1", "b.test. 5 IN AAAA ::1", "---",
		"test. 5 IN NS ns.test.", "---", "ns.test. 5 IN A 10.0.0.2")(dnstest.Question("a.test.", dns.TypeA)))
	for i := range 20_000 {
		r.server.ScriptBytes(func([]byte) []byte {
			b := bytes.Clone(sane)
			for range 1 + rnd.IntN(4) {
				b[2+rnd.IntN(len(b)-2)] = byte(rnd.Uint32())
			}
			return b
		})
		for _, proto := range []forwarder.Proto{forwarder.UDP, forwarder.TCP} {
			reply, _ := r.ask(query, proto) // its records may be of types nobody can read
			if _, err := wire.ParseReply(reply); err != nil || !wire.Matches(reply, query) {
				t.Fatalf("round %d: % x: %v", i, reply, err)
			}
		}
		r.turn(time.Hour)
	}
}
