package upstream_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// seeded is a source of chance that gives the same to everybody who asks for it
// with the same seed.
func seeded(seed uint64) func() uint64 {
	var mu sync.Mutex
	source := rand.NewPCG(seed, seed)
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}

// TestRandom: whoever knows the source knows the IDs, the letters and the choices,
// so that nothing comes from another one.
func TestRandom(t *testing.T) {
	var all [3][][]byte
	for i, seed := range []uint64{1, 1, 2} {
		t.Run("", func(t *testing.T) { all[i] = askedBy(t, seeded(seed)) })
	}
	if !slices.EqualFunc(all[0], all[1], slices.Equal) {
		t.Error("the same source, and other packets or servers")
	}
	if slices.EqualFunc(all[0], all[2], slices.Equal) {
		t.Error("another source, and the same packets")
	}
}

// askedBy is what two servers see of a group with a source, each packet behind
// the number of its server.
func askedBy(t *testing.T, random func() uint64) (packets [][]byte) {
	var mu sync.Mutex
	var servers []*server
	for i := range 2 {
		servers = append(servers, serve(t, func(r *request) {
			mu.Lock()
			packets = append(packets, append([]byte{byte(i)}, r.msg...))
			mu.Unlock()
			r.reply(t, 0)
		}))
	}
	g := group(t, upstream.Config{External: true, Policy: upstream.Random, Attempts: 1, Random: random}, plain(servers...))
	for range 20 {
		mustAnswer(t, g, "a.long.name.to.mix.test", wire.NoError)
	}
	mu.Lock()
	defer mu.Unlock()
	return packets
}

// TestDial leads to a server that stands at another address than the table says.
func TestDial(t *testing.T) {
	s := serve(t, func(r *request) {
		if r.tcp {
			r.reply(t, 0)
			return
		}
		r.reply(t, 0, truncated)
	})
	at := netip.MustParseAddrPort("192.0.2.1:53")
	var mu sync.Mutex
	dialled := map[string]int{}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		dialled[network+" "+address]++
		return new(net.Dialer).DialContext(ctx, network, s.addr.String())
	}
	var table upstream.Table
	table.Tiers[upstream.ClusterTier] = []upstream.Member{{UDP: at, TCP: at}}
	g := group(t, upstream.Config{Dial: dial}, table)
	if r, _ := mustAnswer(t, g, "a.test", wire.NoError); r.TC {
		t.Error("the reply is cut")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(dialled) != 2 || dialled["udp 192.0.2.1:53"] != 1 || dialled["tcp 192.0.2.1:53"] != 1 {
		t.Errorf("dialled %v", dialled)
	}
}

// TestDialWithoutASocket says what is wrong with a pipe.
func TestDialWithoutASocket(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		return ours, theirs.Close()
	}
	g := group(t, upstream.Config{Dial: dial}, plain(serve(t, good(t))))
	if _, _, err := ask(t, g, "a.test"); !errors.Is(err, upstream.ErrNoSocket) {
		t.Errorf("the error is %v", err)
	}
}
