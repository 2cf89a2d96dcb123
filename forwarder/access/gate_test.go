package access_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/forwarder/access"
)

func newGate(t testing.TB, cfg access.Config) *access.Gate {
	t.Helper()
	g, err := access.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func prefixes(list ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, s := range list {
		parsed = append(parsed, netip.MustParsePrefix(s))
	}
	return parsed
}

// stranger is the i-th of many addresses.
func stranger(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{172, byte(16 + i>>16), byte(i >> 8), byte(i)})
}

// web is one client.
var web = netip.MustParseAddr("10.0.0.7")

func TestLongestPrefixDecides(t *testing.T) {
	for name, test := range map[string]struct {
		allow, deny []string
		denied      string // the others of the list below are allowed
	}{
		"no lists":             {nil, nil, ""},
		"deny alone":           {nil, []string{"10.0.0.0/8"}, "10.0.0.7 10.9.0.1"},
		"allow alone":          {[]string{"10.9.0.0/16"}, nil, "10.0.0.7 192.0.2.1 2001:db8::1"},
		"a part denied":        {[]string{"10.0.0.0/8"}, []string{"10.9.0.0/16"}, "10.9.0.1 192.0.2.1 2001:db8::1"},
		"a part allowed":       {[]string{"10.9.0.0/16"}, []string{"10.0.0.0/8"}, "10.0.0.7 192.0.2.1 2001:db8::1"},
		"both: allow":          {[]string{"10.9.0.1/32"}, []string{"10.9.0.1/32"}, "10.0.0.7 192.0.2.1 2001:db8::1"},
		"every IPv4 address":   {nil, []string{"0.0.0.0/0"}, "10.0.0.7 10.9.0.1 192.0.2.1"},
		"IPv6 and one address": {[]string{"2001:db8::/32", "10.0.0.7/32"}, nil, "10.9.0.1 192.0.2.1"},
		"bits behind the end":  {nil, []string{"10.9.9.9/16"}, "10.9.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			g, denied := newGate(t, access.Config{Allow: prefixes(test.allow...), Deny: prefixes(test.deny...)}), ""
			for _, addr := range []string{"10.0.0.7", "10.9.0.1", "192.0.2.1", "2001:db8::1"} {
				if g.Admit(netip.MustParseAddr(addr), 0) == access.Denied {
					denied += " " + addr
				}
			}
			if got := denied[min(1, len(denied)):]; got != test.denied {
				t.Errorf("denied %q, want %q", got, test.denied)
			}
		})
	}
}

func TestRateOfAClient(t *testing.T) {
	g := newGate(t, access.Config{Rate: 10, Burst: 5})
	admitted := func(client netip.Addr, tries int, now time.Duration) (n int) {
		for range tries {
			if g.Admit(client, now) == access.Allowed {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		what  string
		now   time.Duration
		tries int
		want  int
	}{
		{"the burst, and no more", 0, 100, 5},
		{"nothing before the next is due", 99 * time.Millisecond, 10, 0},
		{"one in a tenth of a second", 100 * time.Millisecond, 10, 1},
		{"three in three tenths", 400 * time.Millisecond, 10, 3},
		{"after a rest the burst again", time.Hour, 100, 5},
	} {
		if n := admitted(web, step.tries, step.now); n != step.want {
			t.Errorf("%s: %d admitted, want %d", step.what, n, step.want)
		}
	}
	if n := admitted(web.Next(), 100, time.Hour); n != 5 {
		t.Errorf("the neighbour got %d, want its own burst of 5", n)
	}
	want := []access.Refused{{Client: netip.PrefixFrom(web, 32), Times: 95 + 10 + 9 + 7 + 95}, {Client: netip.PrefixFrom(web.Next(), 32), Times: 95}}
	if diff := cmp.Diff(want, g.Stats(time.Hour).Worst, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("worst clients (-want +got):\n%s", diff)
	}
}

func TestBitsMakeAClient(t *testing.T) {
	g := newGate(t, access.Config{Rate: 1, Burst: 1, IPv4Bits: 24, IPv6Bits: 64, Unlimited: prefixes("10.0.2.0/24")})
	for _, step := range []struct {
		addr string
		want access.Ruling
	}{
		{"10.0.0.1", access.Allowed},
		{"10.0.0.2", access.Limited},
		{"10.0.1.1", access.Allowed},
		{"10.0.2.1", access.Allowed},
		{"10.0.2.1", access.Allowed},
		{"2001:db8::1", access.Allowed},
		{"2001:db8::2:1", access.Limited},
		{"2001:db8:0:1::1", access.Allowed},
	} {
		if got := g.Admit(netip.MustParseAddr(step.addr), 0); got != step.want {
			t.Errorf("%s: ruling %d, want %d", step.addr, got, step.want)
		}
	}
	for _, r := range g.Stats(0).Worst {
		if got := r.Client.String(); got != "10.0.0.0/24" && got != "2001:db8::/64" {
			t.Errorf("%s was refused", got)
		}
	}
}

// enterAll takes places until none is given.
func enterAll(g *access.Gate, client netip.Addr) (seats []access.Seat) {
	for {
		s, ok := g.Enter(client, 0)
		if !ok {
			return seats
		}
		seats = append(seats, s)
	}
}

func TestFairShare(t *testing.T) {
	g := newGate(t, access.Config{MaxInFlight: 1000, Places: 120, Unlimited: prefixes("192.0.2.1/32")})
	var all []access.Seat
	// Each of a row of greedy clients takes half of what is left.
	for i, want := range []int{60, 30, 15, 8, 4} {
		seats := enterAll(g, stranger(i))
		if all = append(all, seats...); len(seats) != want {
			t.Errorf("greedy client %d has %d in flight, want %d", i, len(seats), want)
		}
	}
	if s, ok := g.Enter(web, 0); !ok {
		t.Error("a modest client finds no place beside greedy ones")
	} else {
		all = append(all, s)
	}
	if s, ok := g.Enter(netip.MustParseAddr("192.0.2.1"), 0); !ok {
		t.Error("an unlimited client is limited")
	} else {
		g.Leave(s)
	}
	if n := g.Stats(0).InFlight; n != len(all) {
		t.Errorf("%d in flight, want %d", n, len(all))
	}
	for _, s := range all {
		g.Leave(s)
	}
	if s := g.Stats(0); s.InFlight != 0 || s.Clients != 0 {
		t.Errorf("after the last has left: %+v", s)
	}
	if n := len(enterAll(newGate(t, access.Config{MaxInFlight: 7, Places: 120}), web)); n != 7 {
		t.Errorf("%d in flight, over the bound of 7", n)
	}
}

// Greedy clients that take turns come to an equal share, with one left free.
func TestGreedyClientsShareEvenly(t *testing.T) {
	const greedy, places = 3, 120
	g := newGate(t, access.Config{MaxInFlight: places, Places: places})
	random := rand.New(rand.NewPCG(1, 2))
	held := make([][]access.Seat, greedy)
	for range 20_000 {
		i := random.IntN(greedy)
		if s, ok := g.Enter(stranger(i), 0); ok {
			held[i] = append(held[i], s)
		}
		if i = random.IntN(greedy); random.IntN(4) == 0 && len(held[i]) > 0 {
			g.Leave(held[i][0])
			held[i] = held[i][1:]
		}
	}
	for i := range held {
		if n := len(held[i]); n < places/(greedy+1)*8/10 || n > places/(greedy+1)*12/10 {
			t.Errorf("client %d has %d in flight, want about %d", i, n, places/(greedy+1))
		}
	}
}

// A million forged addresses change nothing for those who are known: who has
// used up its burst stays so, who has not is served, and no memory is taken.
func TestFloodOfAddresses(t *testing.T) {
	const rate, honest = 100, 200
	g := newGate(t, access.Config{Rate: rate, Burst: 10, MaxInFlight: 10, Places: 1000})
	client := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	now := time.Second
	var seats []access.Seat
	for i := range honest {
		s, ok := g.Enter(client(i), now)
		if !ok {
			t.Fatal("no place in an empty table")
		}
		seats = append(seats, s)
	}
	greedy := client(honest)
	for g.Admit(greedy, now) == access.Allowed {
	}
	refused, extra, flood := 0, 0, 0
	for step := range 1000 { // of a millisecond
		now += time.Millisecond
		for range 200 {
			g.Admit(stranger(flood), now)
			flood++
		}
		if g.Admit(greedy, now) == access.Allowed {
			extra++
		}
		if i := step % honest; g.Admit(client(i), now) != access.Allowed { // each five times a second
			refused++
		}
	}
	if refused > 0 {
		t.Errorf("%d of 1000 honest queries were refused", refused)
	}
	if extra > rate+1 {
		t.Errorf("the greedy client got %d in a second, want at most %d: its bucket was forgotten", extra, rate)
	}
	s := g.Stats(now)
	t.Logf("%d addresses: %d of %d clients to remember", flood, s.Clients, s.Most)
	if s.InFlight != honest {
		t.Errorf("%d in flight, want %d", s.InFlight, honest)
	}
	for _, seat := range seats {
		g.Leave(seat)
	}
	if s := g.Stats(now + time.Hour); s.Clients != 0 {
		t.Errorf("%d clients are remembered for ever", s.Clients)
	}
}

// Where there is no room, newcomers share a bucket, and go on sharing it.
func TestFullTable(t *testing.T) {
	g := newGate(t, access.Config{Rate: 1, Burst: 4, Clients: 8})
	for i := range 8 {
		g.Admit(stranger(i), 0)
	}
	admitted := 0
	for i := range 1000 {
		if g.Admit(stranger(100+i), 0) == access.Allowed {
			admitted++
		}
	}
	if admitted != 4 {
		t.Errorf("%d newcomers were admitted by one bucket of 4", admitted)
	}
	for i := range 8 {
		for n := range 3 {
			if g.Admit(stranger(i), 0) != access.Allowed {
				t.Errorf("known client %d was refused its query %d", i, n+2)
			}
		}
	}
}

// bucket is a client as one would write it first.
type bucket struct {
	tokens float64
	at     time.Duration
}

// TestNaiveTwin compares with a map of token buckets.
func TestNaiveTwin(t *testing.T) {
	const rate, burst = 8, 5 // an eighth of a second is exact in binary
	g := newGate(t, access.Config{Rate: rate, Burst: burst})
	twin := map[netip.Addr]*bucket{}
	random := rand.New(rand.NewPCG(3, 4))
	var now time.Duration
	for i := range 100_000 {
		now += time.Duration(random.IntN(5)) * time.Second / rate / 4
		addr := stranger(random.IntN(20))
		b := twin[addr]
		if b == nil {
			b = &bucket{burst, now}
			twin[addr] = b
		}
		b.tokens, b.at = min(burst, b.tokens+(now-b.at).Seconds()*rate), now
		want := access.Limited
		if b.tokens >= 1 {
			b.tokens--
			want = access.Allowed
		}
		if got := g.Admit(addr, now); got != want {
			t.Fatalf("query %d at %v: ruling %d, want %d with %v tokens", i, now, got, want, b.tokens)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	g := newGate(t, access.Config{Rate: 1000, MaxInFlight: 50, Places: 100, Clients: 16})
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 2000 {
				addr := stranger((worker*7 + i) % 40)
				g.Admit(addr, time.Duration(i)*time.Millisecond)
				if s, ok := g.Enter(addr, time.Duration(i)*time.Millisecond); ok {
					g.Leave(s)
				}
				if i%100 == 0 {
					g.Stats(0)
				}
			}
		})
	}
	wait.Wait()
	if s := g.Stats(time.Hour); s.InFlight != 0 || s.Clients != 0 {
		t.Errorf("after the last has left: %+v", s)
	}
}

func TestMistakes(t *testing.T) {
	for _, cfg := range []access.Config{{Rate: -1}, {Burst: -1}, {MaxInFlight: -1}, {MaxInFlight: 1}} {
		if _, err := access.New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

func TestRulingAllocatesNothing(t *testing.T) {
	g := newGate(t, access.Config{Allow: prefixes("10.0.0.0/8"), Rate: 1, MaxInFlight: 2, Places: 9, Unlimited: prefixes("192.0.2.0/24")})
	if n := testing.AllocsPerRun(1000, func() {
		g.Admit(web, 0)
		s, _ := g.Enter(web, 0)
		g.Leave(s)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdmit(b *testing.B) {
	for name, cfg := range map[string]access.Config{
		"lists": {Allow: prefixes("10.0.0.0/8"), Deny: prefixes("10.9.0.0/16")},
		"rate":  {Rate: 1000},
	} {
		for _, clients := range []int{1, 200} {
			b.Run(fmt.Sprintf("%s/clients=%d", name, clients), func(b *testing.B) {
				g := newGate(b, cfg)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					g.Admit(netip.AddrFrom4([4]byte{10, 0, 0, byte(i % clients)}), time.Duration(i)*time.Millisecond)
				}
			})
		}
	}
}
