package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// roleVariable says which process the test binary is.
const roleVariable = "GUARD_TEST_ROLE"

const (
	own      = "169.254.20.10"
	own6     = "fd00:90de:d95::1"
	cluster  = "10.96.0.10"
	cluster6 = "fd10::a"
	coredns  = "10.1.0.53"
	coredns6 = "fd01::53"
	mark     = guard.DefaultMark
)

// play is the other processes of the tests: serve, guard, coredns. Each says ready when
// it is, and runs until it is told to end.
func play(words []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch words[0] {
	case "coredns":
		return playCoreDNS(ctx)
	case "serve":
		sockets, err := strconv.Atoi(words[3])
		return errors.Join(err, playServe(ctx, words[1], words[2], sockets))
	case "guard":
		return playGuard(ctx, words[1])
	case "stranger":
		conn, err := listenShared(netip.MustParseAddrPort(words[1]))
		if err == nil {
			fmt.Println("ready")
			<-ctx.Done()
			err = conn.Close()
		}
		return err
	}
	return fmt.Errorf("no role %q", words)
}

// playCoreDNS answers every name with 10.0.0.53.
func playCoreDNS(ctx context.Context) error {
	answer := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(addressOf(q, 53)) })
	for _, network := range []string{"udp", "tcp"} {
		server := &dns.Server{Addr: ":53", Net: network, Handler: answer}
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go func() { fmt.Fprintln(os.Stderr, server.ListenAndServe()) }()
		<-started
	}
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}

func addressOf(q *dns.Msg, last byte) *dns.Msg {
	reply := new(dns.Msg).SetReply(q)
	if q.Question[0].Qtype == dns.TypeA {
		reply.Answer = []dns.RR{&dns.A{
			Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1},
			A:   net.IPv4(10, 0, 0, last),
		}}
	}
	return reply
}

// playServe answers with 10.0.0.1 from some sockets over UDP and as many over TCP, at
// each address. SIGUSR1 freezes the first of UDP, SIGHUP the first of TCP, until
// SIGUSR2. It says to its guard that it leaves.
func playServe(ctx context.Context, folder, instance string, sockets int) error {
	client := guard.NewClient(guard.ClientConfig{Socket: folder + "/guard.sock", Instance: instance})
	connected, disconnect := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- client.Run(connected) }()
	defer func() {
		disconnect()
		<-ended
	}()
	var frozen ice
	frozen.obey()
	state := hostState()
	var udp, tcp []guard.Socket
	for _, addr := range append(state.Service, state.Own...) { // clients ask the first
		at := netip.AddrPortFrom(addr, 53)
		for range sockets {
			position, number := len(udp), 2*len(udp)
			conn, err := listenShared(at)
			if err != nil {
				return err
			}
			go serveSocket(conn, func(q *dns.Msg) *dns.Msg {
				frozen.wait(position, syscall.SIGUSR1)
				return witness(q, instance, number)
			})
			udp = append(udp, guard.Socket{Address: at, Number: number})
			l, err := sharing().Listen(context.Background(), "tcp", at.String())
			if err != nil {
				return err
			}
			go serveListener(l, func() { frozen.wait(position, syscall.SIGHUP) }, func(q *dns.Msg) *dns.Msg { return witness(q, instance, number+1) })
			tcp = append(tcp, guard.Socket{Address: at, Number: number + 1})
		}
	}
	var servers []guard.Server
	for _, addr := range []string{coredns, coredns6} {
		at := netip.AddrPortFrom(netip.MustParseAddr(addr), 53)
		servers = append(servers, guard.Server{UDP: at, TCP: at})
	}
	client.Publish(guard.Table{Probe: "kubernetes.default.svc.cluster.local.", Tiers: [][]guard.Server{servers}})
	client.Sockets(udp, tcp)
	fmt.Println("ready")
	<-ctx.Done()
	leave, cancel := context.WithTimeout(context.Background(), wide)
	defer cancel()
	client.Leave(leave)
	return nil
}

// ice is the signal by which a socket is frozen.
type ice struct{ atomic.Int32 }

// obey freezes when a signal says so, as long as the process lives.
func (f *ice) obey() {
	signals := make(chan os.Signal, 9) // none is dropped while nobody reads them
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP)
	go func() {
		for s := range signals {
			f.Store(int32(s.(syscall.Signal)))
		}
	}()
}

// wait holds the first of some sockets while a signal is in force.
func (f *ice) wait(socket int, by syscall.Signal) {
	for socket == 0 && f.Load() == int32(by) {
		time.Sleep(time.Millisecond)
	}
}

// sharing listens together with others.
func sharing() *net.ListenConfig {
	return &net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, failed)
	}}
}

// listenShared waits until the address is there.
func listenShared(at netip.AddrPort) (net.PacketConn, error) {
	for limit := time.Now().Add(wide); ; time.Sleep(10 * time.Millisecond) {
		conn, err := sharing().ListenPacket(context.Background(), "udp", at.String())
		if err == nil || time.Now().After(limit) {
			return conn, err
		}
	}
}

// serveListener answers one question on each connection. Before it takes one it may be
// held.
func serveListener(l net.Listener, hold func(), answer func(*dns.Msg) *dns.Msg) {
	for {
		hold()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			c := &dns.Conn{Conn: conn}
			if query, err := c.ReadMsg(); err == nil {
				_ = c.WriteMsg(answer(query))
			}
		}()
	}
}

func serveSocket(conn net.PacketConn, answer func(*dns.Msg) *dns.Msg) {
	buf := make([]byte, 512)
	for {
		n, peer, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		query := new(dns.Msg)
		if query.Unpack(buf[:n]) != nil {
			continue
		}
		if data, err := answer(query).Pack(); err == nil {
			_, _ = conn.WriteTo(data, peer)
		}
	}
}

func witness(q *dns.Msg, instance string, number int) *dns.Msg {
	if q.Question[0].Qclass != dns.ClassCHAOS {
		return addressOf(q, 1)
	}
	reply := new(dns.Msg).SetReply(q)
	reply.Answer = []dns.RR{&dns.TXT{
		Hdr: dns.RR_Header{Name: guard.ProbeName, Rrtype: dns.TypeTXT, Class: dns.ClassCHAOS},
		Txt: []string{guard.ProbeText(instance, number)},
	}}
	return reply
}

// playGuard is a guard whose files are in a folder. It is ready when it owns the node.
func playGuard(ctx context.Context, folder string) error {
	host, err := hostnet.New(hostnet.Config{})
	if err != nil {
		return err
	}
	defer host.Close()
	log := zap.Must(zap.NewDevelopment(zap.IncreaseLevel(zap.WarnLevel), zap.AddStacktrace(zap.FatalLevel)))
	g, err := guard.New(guard.Config{
		State: hostState(), Host: host, Log: log,
		Socket: folder + "/guard.sock", Lock: folder + "/guard.lock", Endpoints: folder + "/endpoints.json",
	})
	if err != nil {
		return err
	}
	go func() {
		for !g.Status().Owner {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("ready")
	}()
	return g.Run(ctx)
}
