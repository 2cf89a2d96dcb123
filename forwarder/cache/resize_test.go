package cache_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/cache"
)

// TestResize: a smaller budget holds at once, those in use stay, and a larger one
// lets more in again.
func TestResize(t *testing.T) {
	const full = 4 << 20
	c := newCache(t, cache.Config{Bytes: full})
	hot := key(ask(t, "service-0.namespace-0.svc.cluster.local.", dns.TypeA, 0))
	for i := range 200 {
		fill(t, c, i*100, 100, 3)
		get(c, hot)
	}
	for _, size := range []int64{full / 8 * 7, full / 2, full / 8, full} {
		c.Resize(size, 0)
		if s := c.Stats(); s.Limit != size || s.Bytes > size || size < full && s.Bytes < size/2 {
			t.Errorf("resized to %d: %+v", size, s)
		}
		if get(c, hot) == nil {
			t.Errorf("resized to %d: the name in use is gone", size)
		}
	}
	fill(t, c, 20_000, 20_000, 3)
	if s := c.Stats(); s.Bytes > full || s.Bytes < full*8/10 {
		t.Errorf("full again: %+v", s)
	}
	if c.Resize(0, 0); c.Stats().Limit != cache.MinBytes || c.Stats().Bytes > cache.MinBytes {
		t.Errorf("resized to nothing: %+v", c.Stats())
	}
}
