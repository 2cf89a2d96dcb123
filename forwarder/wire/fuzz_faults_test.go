package wire_test

import (
	"bytes"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// FuzzNoAmplification answers any bytes at all as a server would whose servers
// are out of reach. No reply goes to a response, none is larger than any client
// can take or than the question and our own OPT make it, and each is sound.
func FuzzNoAmplification(f *testing.F) {
	for _, seed := range append(seedQueries(), seedReplies(f)...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		q, fault := wire.ParseQuery(msg)
		if isReply := len(msg) >= 12 && msg[2]&0x80 != 0; (len(msg) < 12 || isReply) != (fault == wire.Ignore) {
			t.Fatalf("fault %d for % x", fault, msg)
		}
		if fault == wire.Ignore {
			return
		}
		rcode := []wire.RCode{
			wire.Sound: wire.ServFail, wire.Malformed: wire.FormErr,
			wire.UnknownOpcode: wire.NotImp, wire.UnknownVersion: wire.BadVers,
		}[fault]
		const room = wire.OPTLen + wire.EDELen
		got := wire.AppendError(nil, &q, rcode, 1232, wire.EDENoReachable)
		if len(got) > wire.MinUDPSize || len(got) > len(msg)+room {
			t.Fatalf("%d bytes for a query of %d", len(got), len(msg))
		}
		m := parsed(t, got)
		if !m.Response || m.Id != q.ID || m.Rcode != int(rcode) || m.Opcode != int(msg[2]>>3&15) {
			t.Fatalf("got %s for % x", m.MsgHdr.String(), msg)
		}
		if len(m.Answer)+len(m.Ns) != 0 || (m.IsEdns0() != nil) != q.EDNS || len(m.Question) == 1 != q.HasQuestion() {
			t.Fatalf("got %v for % x", m, msg)
		}
		if !bytes.Equal(q.Question(), got[12:12+len(q.Question())]) {
			t.Fatalf("question % x, want % x", got[12:], q.Question())
		}
		if fault == wire.Sound {
			checkUpstream(t, &q)
		}
	})
}

// checkUpstream checks that of a client's bytes only the question goes on.
func checkUpstream(t *testing.T, q *wire.Query) {
	t.Helper()
	up := wire.AppendQuery(nil, q, 0x1234, 1232)
	m := parsed(t, up)
	o := m.IsEdns0()
	if len(up) != 12+len(q.Question())+wire.OPTLen || m.Response || m.Id != 0x1234 || m.Opcode != dns.OpcodeQuery ||
		!m.AuthenticatedData || m.RecursionDesired != q.RD() || m.CheckingDisabled != q.CD() || o == nil || o.Do() != q.DO {
		t.Fatalf("sent %v", m)
	}
	if again, fault := wire.ParseQuery(up); fault != wire.Sound || !bytes.Equal(again.AppendKey(nil), q.AppendKey(nil)) {
		t.Fatalf("fault %d, another key for % x", fault, up)
	}
	up[2] |= 0x80
	if asked := wire.AppendQuery(nil, q, 0x1234, 1232); !wire.Matches(up, asked) {
		t.Fatalf("the echo of % x does not match", asked)
	}
}
