package forwarder_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// mutants makes packets out of sound and hostile ones.
type mutants struct {
	rnd *rand.Rand
	all []dnstest.Packet
}

func newMutants(seed uint64) *mutants {
	return &mutants{rnd: rand.New(rand.NewPCG(seed, 2)), all: dnstest.HostilePackets()}
}

func (m *mutants) next() []byte {
	return dnstest.Mutate(m.rnd, m.all[m.rnd.IntN(len(m.all))].Bytes, 600)
}

// mutantCount is how many packets TestMutatedPackets sends.
func mutantCount(t *testing.T) int {
	t.Helper()
	text := os.Getenv("NODENS_PACKETS")
	if text == "" {
		return 100_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("NODENS_PACKETS is %q; write a number of packets", text)
	}
	return n
}

// TestMutatedPackets sends packets that nobody thought of, half of them to the
// forwarder itself and a quarter over the sockets of each transport:
// NODENS_PACKETS of them, or 100000. Whatever they come to, a response gets no
// reply and all else gets one, which parses and keeps to the size; a packet asks
// the servers once at most, and the cache and the work in flight keep to their
// bounds.
func TestMutatedPackets(t *testing.T) {
	count := mutantCount(t)
	for _, way := range []struct {
		name  string
		share int
		send  func(t *testing.T, r *rig, m *mutants, n int)
	}{
		{"as UDP", 4, sendMutants(forwarder.UDP)},
		{"as TCP", 4, sendMutants(forwarder.TCP)},
		{"on UDP sockets", 4, sendMutantDatagrams},
		{"on TCP sockets", 4, sendMutantStreams},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			n := count / way.share
			r := newRig(t, dnstest.Addresses(40), func(c *forwarder.Config) { c.MaxFollowers = 1000 })
			r.server.Forget()
			way.send(t, r, newMutants(uint64(len(way.name))), n)
			if asked := r.server.Asked(); asked > n {
				t.Errorf("%d questions to the servers for %d packets", asked, n)
			}
			if used := r.store.Stats().Bytes; used > rigCache {
				t.Errorf("the cache holds %d bytes, bound %d", used, rigCache)
			}
			for _, route := range r.Stats().Routes {
				if route.InFlight != 0 {
					t.Errorf("%d questions are still in flight", route.InFlight)
				}
			}
		})
	}
}

// deserves says whether a packet is to be answered.
func deserves(p []byte) bool { return len(p) >= wire.HeaderLen && p[2]&0x80 == 0 }

// checkMutant takes the reply to a packet that deserves one.
func checkMutant(t *testing.T, p, reply []byte, proto forwarder.Proto) {
	t.Helper()
	limit := wire.MaxMessage
	if proto == forwarder.UDP {
		q, _ := wire.ParseQuery(p)
		limit = min(1232, int(q.UDPSize))
	}
	if len(reply) > limit {
		t.Fatalf("%d bytes, limit %d, for % x", len(reply), limit, p)
	}
	if err := new(dns.Msg).Unpack(reply); err != nil {
		t.Fatalf("the reply to % x does not parse: %v", p, err)
	}
	if reply[0] != p[0] || reply[1] != p[1] || reply[2]&0x80 == 0 {
		t.Fatalf("% x is no reply to % x", reply[:wire.HeaderLen], p)
	}
}

// sendMutants hands packets to the forwarder as a listener would.
func sendMutants(proto forwarder.Proto) func(*testing.T, *rig, *mutants, int) {
	return func(t *testing.T, r *rig, m *mutants, n int) {
		for range n {
			p := m.next()
			reply, _ := r.ask(p, proto)
			if (reply != nil) != deserves(p) {
				t.Fatalf("answered %v: % x", reply != nil, p)
			}
			if reply != nil {
				checkMutant(t, p, reply, proto)
			}
		}
	}
}

// window is how many packets are on their way at once, so that no buffer
// overflows.
const window = 64

// numbered gives packets their place as ID.
func numbered(packets [][]byte) (deserving int) {
	for i, p := range packets {
		if len(p) >= 2 {
			binary.BigEndian.PutUint16(p, uint16(i))
		}
		if deserves(p) {
			deserving++
		}
	}
	return deserving
}

// checkWindow reads the replies to packets in any order, one for each that
// deserves it.
func checkWindow(t *testing.T, packets [][]byte, deserving int, proto forwarder.Proto, read func() []byte) {
	t.Helper()
	got := map[uint16]bool{}
	for range deserving {
		reply := read()
		id := binary.BigEndian.Uint16(reply)
		if int(id) >= len(packets) || got[id] || !deserves(packets[id]) {
			t.Fatalf("a reply too many: % x", reply)
		}
		got[id] = true
		checkMutant(t, packets[id], reply, proto)
	}
}

// sendMutantDatagrams has a query behind each window: were one of the packets
// answered that should not be, or twice, its reply would come first.
func sendMutantDatagrams(t *testing.T, r *rig, m *mutants, n int) {
	udp, _ := listen(t, r)
	c := dial(t, "udp", udp)
	last := dnstest.Question("last.test.", dns.TypeA)
	buf, packets := make([]byte, 65535), make([][]byte, 0, window)
	read := func() []byte {
		size, err := c.Read(buf)
		if err != nil {
			t.Fatalf("a reply is missing: %v", err)
		}
		return buf[:size]
	}
	for sent := 0; sent < n; sent += len(packets) {
		packets = packets[:0]
		for range min(window, n-sent) {
			packets = append(packets, m.next())
		}
		deserving := numbered(packets)
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		for _, p := range packets {
			if _, err := c.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		checkWindow(t, packets, deserving, forwarder.UDP, read)
		last.Id = uint16(0x8000 + sent%0x4000)
		_, _ = c.Write(dnstest.Pack(t, last))
		if id := binary.BigEndian.Uint16(read()); id != last.Id {
			t.Fatalf("a reply to what deserves none: ID %d of % x", id, packets)
		}
	}
}

// sendMutantStreams ends a connection with each packet that deserves no reply:
// what comes then is the end.
func sendMutantStreams(t *testing.T, r *rig, m *mutants, n int) {
	_, tcp := listen(t, r)
	m.all = dnstest.Deserving(m.all)
	var c net.Conn
	read := func() []byte { return readFrame(t, c) }
	packets := make([][]byte, 0, window)
	for sent := 0; sent < n; sent += len(packets) {
		if c == nil {
			c = dialFromAnywhere(t, m.rnd, tcp)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		packets = packets[:0]
		for len(packets) < min(window, n-sent) && (len(packets) == 0 || deserves(packets[len(packets)-1])) {
			packets = append(packets, m.next())
		}
		deserving := numbered(packets)
		for i, p := range packets {
			if i == deserving {
				checkWindow(t, packets, deserving, forwarder.TCP, read)
			}
			if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(p))), p...)); err != nil {
				t.Fatal(err)
			}
		}
		if deserving == len(packets) {
			checkWindow(t, packets, deserving, forwarder.TCP, read)
			continue
		}
		if size, err := c.Read(make([]byte, 1)); size != 0 || err == nil {
			t.Fatalf("no end after % x", packets[deserving])
		}
		_ = c.Close()
		c = nil
	}
}

// dialFromAnywhere connects from one of many loopback addresses, so that ports
// of closed connections are not missed.
func dialFromAnywhere(t *testing.T, rnd *rand.Rand, to netip.AddrPort) net.Conn {
	t.Helper()
	from := net.TCPAddr{IP: net.IPv4(127, 1, byte(rnd.IntN(256)), byte(1+rnd.IntN(250)))}
	c, err := (&net.Dialer{LocalAddr: &from}).DialContext(t.Context(), "tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
