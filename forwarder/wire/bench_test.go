package wire_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

const benchName = "payments-api.production.svc.cluster.local."

// benchReplies are a reply with one address and one with four.
func benchReplies(b *testing.B) map[string][]byte {
	b.Helper()
	rr := benchName + " 30 A 192.0.2.1"
	return map[string][]byte{
		"1-A": packed(b, reply(b, benchName, dns.TypeA, rr).SetEdns0(1232, false)),
		"4-A": packed(b, reply(b, benchName, dns.TypeA, rr, rr, rr, rr).SetEdns0(1232, false)),
	}
}

func BenchmarkQueryAndKey(b *testing.B) {
	queries := map[string][]byte{
		"plain": query(benchName, dns.TypeA),
		"OPT":   queryOPT(benchName, dns.TypeA, 1232, false),
		"cookie": join(header(rd, 1, 0, 0, 1), question(benchName, dns.TypeA),
			opt(1232, 0, "\x00\x0a\x00\x0812345678")),
	}
	buf := make([]byte, 0, wire.MaxKey)
	for what, msg := range queries {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				q, fault := wire.ParseQuery(msg)
				if fault != wire.Sound {
					b.Fatal(fault)
				}
				q.AppendKey(buf)
			}
		})
	}
}

// BenchmarkHit is the way of a cached reply behind the lookup.
func BenchmarkHit(b *testing.B) {
	q := sound(b, queryOPT(benchName, dns.TypeA, 1232, false))
	buf := make([]byte, 0, 4096)
	for what, msg := range benchReplies(b) {
		stored, offsets := bare(b, msg), ttlOffsets(b, msg)
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				out := append(buf, stored...)
				wire.Echo(out, q)
				wire.AgeTTLs(out, offsets, 7)
				wire.AppendOPT(wire.Fit(out, 1232-wire.OPTLen, q.DO), 0, q, 1232, wire.NoEDE)
			}
		})
	}
}

func BenchmarkParseReply(b *testing.B) {
	for what, msg := range benchReplies(b) {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				if _, err := wire.ParseReply(msg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ttlOffsets(tb testing.TB, msg []byte) (at []uint16) {
	tb.Helper()
	r, err := wire.ParseReply(msg)
	if err != nil {
		tb.Fatal(err)
	}
	var rr wire.Record
	for c := r.Records(); c.Next(&rr); {
		if rr.Type != wire.TypeOPT {
			at = append(at, uint16(rr.TTLAt))
		}
	}
	return at
}
