package load

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/names"
)

// TestTrainArrivesAsSingleQueries reads what a burst sends: whole queries, each
// a datagram of its own, whether the kernel splits trains or will not. It will
// not on a socket that makes no checksums.
func TestTrainArrivesAsSingleQueries(t *testing.T) {
	for name, noCheck := range map[string]int{"split by the kernel": 0, "refused by the kernel": 1} {
		t.Run(name, func(t *testing.T) {
			server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			w := trainWorker(t, server.LocalAddr().(*net.UDPAddr).AddrPort())
			defer w.close()
			fd := w.lanes[0].(*udpLane).fd
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, noCheck); err != nil {
				t.Fatal(err)
			}
			w.sendTrain(burst, w.now())
			ids := map[uint16]bool{}
			buf := make([]byte, 65535)
			_ = server.SetReadDeadline(time.Now().Add(time.Minute))
			for range burst {
				n, err := server.Read(buf)
				if err != nil {
					t.Fatalf("after %d queries: %v", len(ids), err)
				}
				if end := questionEnd(buf[:n]); end != n && end != n-11 {
					t.Fatalf("a datagram of %d octets whose question ends at %d", n, end)
				}
				ids[uint16(buf[0])<<8|uint16(buf[1])] = true
			}
			if c := w.run.book.Load().byID[0].scores[0].Counts; len(ids) != burst || c.Sent != burst || w.inFlight != burst {
				t.Errorf("%d different queries came, %d counted as sent, %d in flight, want %d", len(ids), c.Sent, w.inFlight, burst)
			}
			together := w.sendTogether(fd, []car{{0, 2, 20}, {0, 2, 20}})
			if together != (noCheck == 0) {
				t.Errorf("the kernel took a train: %v, so this case is not what its name says", together)
			}
		})
	}
}

func trainWorker(t *testing.T, target netip.AddrPort) *worker {
	t.Helper()
	mix, err := names.NewMix(names.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{
		Target: target, Source: func(int) Source { return mix.Stream(1) }, Transport: UDP,
		Outstanding: 2 * burst, Sockets: 1, Stages: []Stage{{For: time.Second}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.workers[0]
}
