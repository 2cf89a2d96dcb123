package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

func TestOwnAnswer(t *testing.T) {
	q := sound(t, join(header(rd|cd|ad, 1, 0, 0, 0), question("A.test", dns.TypeA)))
	got := wire.AppendAnswerHead([]byte("xy"), q, wire.NoError)
	got = wire.AppendAnswer(got, 2, q, 60, []byte{192, 0, 2, 1})
	got = wire.AppendAnswer(got, 2, q, 60, []byte{192, 0, 2, 1})
	want := join([]byte("xy"), header(qr|aa|ra|rd|cd, 1, 2, 0, 0), question("A.test", dns.TypeA), a(60), a(60))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOwnNegativeAnswer(t *testing.T) {
	q := sound(t, query("x.zone.test", dns.TypeA))
	for apex, owner := range map[int]string{len(name("zone.test")): "zone.test.", len(name("x.zone.test")): "x.zone.test.", 1: "."} {
		got := wire.AppendAnswerHead([]byte("xy"), q, wire.NXDomain)
		m := parsed(t, wire.AppendSOA(got, 2, q, apex, 30)[2:])
		want := "\t30\tIN\tSOA\t" + owner + " . 1 3600 600 86400 30"
		if m.Rcode != dns.RcodeNameError || !m.Authoritative || len(m.Ns) != 1 || m.Ns[0].String() != owner+want {
			t.Errorf("apex of %d bytes: rcode %d, authority %v, want %s", apex, m.Rcode, m.Ns, owner+want)
		}
	}
}
