package world

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/nodens-dns/nodens/bench/names"
)

// Names of the world that every server here knows.
const (
	Domain   = "cluster.local"
	Popular  = 300 // services that clients ask for again and again
	zoneHead = `$ORIGIN cluster.local.
$TTL 5
@ IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 5
@ IN NS ns.dns.cluster.local.
ns.dns IN A 10.96.0.10
`
)

// NewMix is the services of the cluster, with the API's own among them. ttl is
// in seconds, 0 for that of CoreDNS.
func NewMix(ttl uint32) (*names.Mix, error) {
	list := []names.Listed{{Name: "kubernetes", Namespace: "default", V4: netip.MustParseAddr("10.96.0.1")}}
	for i := 1; i < Popular; i++ {
		list = append(list, names.Listed{
			Name: fmt.Sprintf("web-%d", i), Namespace: fmt.Sprintf("team-%d", i%20),
			V4: netip.AddrFrom4([4]byte{10, 96, byte(1 + i/256), byte(i)}),
		})
	}
	return names.NewMix(names.Config{List: list, TTL: ttl})
}

// ZoneFile is what the file plugin of CoreDNS reads.
func ZoneFile(m *names.Mix) string {
	var b strings.Builder
	b.WriteString(zoneHead)
	every, count := m.Every()
	for range count {
		if q := every.Next(); q.Want.Addr.IsValid() {
			fmt.Fprintf(&b, "%s %d IN A %v\n", names.Text(q.Name()), q.Want.TTL, q.Want.Addr)
		}
	}
	return b.String()
}

// Source is a sequence of queries.
type Source interface{ Next() names.Query }

// unheard is a sequence of names that were never asked before, in turn a pod's,
// whose address is in its name, and one that does not exist.
type unheard struct {
	suffix []byte // of pods
	absent *names.Unique
	number uint32
	buf    []byte
	turn   bool
}

// NewUnheard starts a sequence that has nothing in common with another of a
// different number.
func NewUnheard(m *names.Mix, number int) (Source, error) {
	suffix, err := names.Wire("pod." + Domain)
	if err != nil {
		return nil, err
	}
	absent, err := NewAbsent(m, number)
	return &unheard{suffix: suffix, absent: absent, number: uint32(number) << 24, buf: make([]byte, 0, 64)}, err
}

// NewAbsent is a sequence of names that do not exist.
func NewAbsent(m *names.Mix, number int) (*names.Unique, error) {
	wire, err := names.Wire("absent." + Domain)
	return m.Zone().Unique(wire, uint64(number)), err
}

func (u *unheard) Next() names.Query {
	if u.turn = !u.turn; u.turn {
		return u.absent.Next()
	}
	u.number++
	a := [4]byte{byte(u.number >> 24), byte(u.number >> 16), byte(u.number >> 8), byte(u.number)}
	label := fmt.Appendf(nil, "%d-%d-%d-%d", a[0], a[1], a[2], a[3])
	u.buf = append(u.buf[:0], byte(len(label)))
	u.buf = append(append(u.buf, label...), u.suffix...)
	u.buf = append(u.buf, 0, byte(names.TypeA), 0, 1)
	return names.Query{Question: u.buf, Want: names.Answer{Addr: netip.AddrFrom4(a)}}
}
