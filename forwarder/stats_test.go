package forwarder_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

func zone(s forwarder.Stats, name string) forwarder.Counts {
	for _, z := range s.Zones {
		if z.Zone == name {
			return z.Counts
		}
	}
	return forwarder.Counts{}
}

func TestCounters(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	q, dst := dnstest.Pack(t, dnstest.Question("a.test.", dns.TypeA)), make([]byte, 0, 4096)
	r.ask(q, forwarder.UDP)
	r.ask(q, forwarder.TCP)
	six := r.peer(forwarder.UDP)
	six.Client, six.Stripe = netip.MustParseAddrPort("[::1]:53000"), 1
	r.Lookup(dst, q, six)
	r.Done(six, 3*time.Millisecond)
	do, _ := r.ask(dnstest.Pack(t, edns(dnstest.Question("a.test.", dns.TypeMX), 1232, true)), forwarder.UDP)
	r.ask([]byte("short"), forwarder.UDP)
	newer := edns(dnstest.Question("a.test.", dns.TypeA), 1232, false)
	newer.IsEdns0().SetVersion(1)
	r.ask(dnstest.Pack(t, newer), forwarder.UDP)

	root := zone(r.Stats(), ".")
	a, mx := forwarder.TypeIndex(wire.TypeA), forwarder.TypeIndex(wire.TypeMX)
	for name, got := range map[string][2]uint64{
		"UDP IPv4 A":   {root.Requests[forwarder.UDP][0][a], 1},
		"TCP IPv4 A":   {root.Requests[forwarder.TCP][0][a], 1},
		"UDP IPv6 A":   {root.Requests[forwarder.UDP][1][a], 1},
		"UDP IPv4 MX":  {root.Requests[forwarder.UDP][0][mx], 1},
		"DO":           {root.DO, 1},
		"from servers": {root.Responses[forwarder.FromServers][0], 1},
		"no such type": {root.Responses[forwarder.FromServers][forwarder.NoData], 1},
		"from cache":   {root.Responses[forwarder.FromCache][0], 2},
		"BADVERS":      {zone(r.Stats(), "dropped").Responses[forwarder.FromLocal][wire.BadVers], 1},
		"query bytes":  {root.RequestSize[forwarder.UDP].Sum, uint64(2*len(q) + len(q) + wire.OPTLen)},
		"TCP bytes":    {root.ResponseSize[forwarder.TCP].Sum, uint64(len(q) + 16)},
		"small":        {root.ResponseSize[forwarder.UDP].Buckets[1], 3},
		"dropped":      {r.Stats().Dropped, 1},
		"batch of one": {root.Duration.Buckets[4], 1},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d, want %d", name, got[0], got[1])
		}
	}
	if len(do) == 0 {
		t.Error("no reply to the DO query")
	}
}

func TestTimeBuckets(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	q, dst := dnstest.Pack(t, dnstest.Question("a.test.", dns.TypeA)), make([]byte, 0, 4096)
	r.ask(q, forwarder.UDP)
	for d, bucket := range map[time.Duration]int{
		0: 0, 250 * time.Microsecond: 0, 250*time.Microsecond + 1: 1, 500 * time.Microsecond: 1,
		time.Millisecond: 2, 8192 * time.Millisecond: 15, 8193 * time.Millisecond: 16, time.Hour: 16,
	} {
		before := zone(r.Stats(), ".").Duration
		r.Lookup(dst, q, r.peer(0))
		r.Done(r.peer(0), d)
		after := zone(r.Stats(), ".").Duration
		for i := range after.Buckets {
			want := before.Buckets[i]
			if i == bucket {
				want++
			}
			if after.Buckets[i] != want {
				t.Errorf("%v: bucket %d went from %d to %d", d, i, before.Buckets[i], after.Buckets[i])
			}
		}
	}
}

func TestTypeIndex(t *testing.T) {
	for i, name := range forwarder.TypeNames[:forwarder.TypeOther] {
		if got := forwarder.TypeIndex(wire.Type(dns.StringToType[name])); got != i {
			t.Errorf("%s: index %d, want %d", name, got, i)
		}
	}
	var others []int
	for _, typ := range []wire.Type{0, 3, 254, 257, 65280} {
		others = append(others, forwarder.TypeIndex(typ))
	}
	if diff := cmp.Diff([]int{19, 19, 19, 19, 19}, others); diff != "" {
		t.Error(diff)
	}
}

// TestCountsGoOn holds that a forwarder goes on counting where the one before
// stopped, and only if its counters mean the same.
func TestCountsGoOn(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*forwarder.Config)
		goesOn bool
	}{
		"the same":         {func(*forwarder.Config) {}, true},
		"other limits":     {func(c *forwarder.Config) { c.MaxFollowers, c.Routes[0].MaxInFlight = 5, 7 }, true},
		"other policy":     {func(c *forwarder.Config) { c.Routes[0].Policy.MaxTTL = time.Minute }, true},
		"another zone":     {func(c *forwarder.Config) { c.Deny = []string{"gone.test."} }, false},
		"another stripe":   {func(c *forwarder.Config) { c.Stripes++ }, false},
		"another listener": {func(c *forwarder.Config) { c.Listeners++ }, false},
		"another route": {func(c *forwarder.Config) {
			c.Routes = append(c.Routes, c.Routes[0])
			c.Routes[1].Zones = []string{"other.test."}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var cfg forwarder.Config
			old := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) { cfg = *c })
			query := dnstest.Pack(t, dnstest.Question("a.test.", dns.TypeA))
			old.ask(query, forwarder.UDP)
			old.ask([]byte("short"), forwarder.UDP)
			old.turn(time.Minute)
			cfg.Before = old.Forwarder
			tc.change(&cfg)
			next, err := forwarder.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			old.ask(query, forwarder.UDP) // one under way
			got, want := next.Stats(), old.Stats()
			if !tc.goesOn {
				want = forwarder.Stats{Since: old.clock.Now()}
			}
			if got.Since != want.Since || got.Dropped != want.Dropped || zone(got, ".").Responses != zone(want, ".").Responses {
				t.Errorf("since %v, %d dropped, %v; want %v, %d, %v", got.Since, got.Dropped, zone(got, ".").Responses,
					want.Since, want.Dropped, zone(want, ".").Responses)
			}
		})
	}
}
