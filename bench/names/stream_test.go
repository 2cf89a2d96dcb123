package names_test

import (
	"math"
	"testing"

	"github.com/nodens-dns/nodens/bench/names"
)

// An external lookup is four names by two types, and only the last name exists.
func TestExternalLookupsAreSixOfEightNXDomain(t *testing.T) {
	s := newMix(t, names.Config{ExternalShare: 1}).Stream(1)
	for lookup := range 1000 {
		for i := range 8 {
			q := s.Next()
			if want := i < 6; (q.Want.RCode == names.NXDomain) != want {
				t.Fatalf("lookup %d, query %d: %s has rcode %d", lookup, i, names.Text(q.Name()), q.Want.RCode)
			}
			if want := [2]uint16{names.TypeA, names.TypeAAAA}[i%2]; q.Type() != want {
				t.Fatalf("query %d has type %d, want %d", i, q.Type(), want)
			}
		}
	}
}

// Every lookup of a service ends at one that exists.
func TestServiceLookupsEndAtTheService(t *testing.T) {
	s := newMix(t, names.Config{ExternalShare: -1}).Stream(1)
	found, missing := 0, 0
	for range 100_000 {
		switch q := s.Next(); {
		case q.Want.RCode == names.NXDomain:
			missing++
		case q.Want.Class == names.Service || q.Want.Class == names.Headless:
			found++
		default:
			t.Fatalf("%s is %v", names.Text(q.Name()), q.Want.Class)
		}
	}
	// 0.40 x 0 + 0.35 x 1 + 0.05 x 2 + 0.20 x 3 steps fail for each that is found.
	if got := float64(missing) / float64(found); math.Abs(got-1.05) > 0.03 {
		t.Errorf("%.3f steps fail for each that is found, want about 1.05", got)
	}
}

func TestShares(t *testing.T) {
	s := newMix(t, names.Config{}).Stream(3)
	const n = 400_000
	tcp, edns, external := 0, 0, 0
	for range n {
		q := s.Next()
		if q.TCP {
			tcp++
		}
		if q.EDNS {
			edns++
		}
		if q.Want.Class == names.External || q.Want.Class == names.Stable {
			external++
		}
	}
	near := func(what string, got int, want float64) {
		if share := float64(got) / n; math.Abs(share-want) > want/5 {
			t.Errorf("%s: share %.4f, want about %.4f", what, share, want)
		}
	}
	near("TCP", tcp, 0.02)
	near("EDNS", edns, 0.2)
	// 0.3 x 2 of 0.3 x 8 + 0.7 x 2 x 2.05 queries.
	near("answers from outside the cluster", external, 0.6/(2.4+2.87))
}

func TestPopularNamesComeMoreOften(t *testing.T) {
	f := newMix(t, names.Config{Services: 100, Zipf: 1}).Flat(1)
	count := map[string]int{}
	for range 100_000 {
		q := f.Next()
		count[names.Text(q.Name())]++
	}
	// The harmonic number of 100 is 5.187, so the first has 19.3 % of all.
	if got := count["cart-api-0.cart-team-0.svc.cluster.local."]; got < 18_000 || got > 20_500 {
		t.Errorf("the most popular name came %d times of 100 000, want about 19 280", got)
	}
	if len(count) != 100 {
		t.Errorf("%d names came, want 100", len(count))
	}
}

func TestSequencesRepeat(t *testing.T) {
	take := func(seed, n uint64) string {
		s := newMix(t, names.Config{Seed: seed}).Stream(n)
		all := ""
		for range 200 {
			q := s.Next()
			all += string(q.Question)
		}
		return all
	}
	if again := take(7, 1); take(7, 1) != again {
		t.Error("equal seeds give different sequences")
	}
	if take(7, 1) == take(8, 1) || take(7, 1) == take(7, 2) {
		t.Error("different seeds or numbers give equal sequences")
	}
}

func TestUniqueNames(t *testing.T) {
	zone := newMix(t, names.Config{}).Zone()
	for suffix, rcode := range map[string]uint8{names.WildSuffix: names.NoError, "svc.cluster.local": names.NXDomain} {
		wire, _ := names.Wire(suffix)
		seen := map[string]bool{}
		for n := range uint64(3) {
			u := zone.Unique(wire, n)
			for range 1000 {
				q := u.Next()
				if seen[string(q.Question)] || q.Want.RCode != rcode {
					t.Fatalf("%s: seen %v, rcode %d", names.Text(q.Name()), seen[string(q.Question)], q.Want.RCode)
				}
				seen[string(q.Question)] = true
			}
		}
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	mix := newMix(t, names.Config{})
	wire, _ := names.Wire(names.WildSuffix)
	stream, flat, unique := mix.Stream(1), mix.Flat(1), mix.Zone().Unique(wire, 1)
	for name, next := range map[string]func() names.Query{"stream": stream.Next, "flat": flat.Next, "unique": unique.Next} {
		if n := testing.AllocsPerRun(10_000, func() { next() }); n != 0 {
			t.Errorf("%s: %v allocations per query, want 0", name, n)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	mix, err := names.NewMix(names.Config{})
	if err != nil {
		b.Fatal(err)
	}
	s := mix.Stream(1)
	for b.Loop() {
		s.Next()
	}
}
