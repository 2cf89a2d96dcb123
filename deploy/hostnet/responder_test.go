package hostnet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
)

// A responder says its name, and whom it heard, to whoever asks. Its address is
// written as proto/address. The protocol slow is UDP, and a second until it is answered.
type responder struct {
	cmd  *exec.Cmd
	once sync.Once
}

// start starts a responder as a process, and waits until it listens.
func start(t *testing.T, s space.Space, name string, listen ...string) *responder {
	t.Helper()
	r := &responder{cmd: exec.Command("/proc/self/exe")}
	r.cmd.Env = append(os.Environ(), "HOSTNET_RESPONDER="+name+" "+strings.Join(listen, " "))
	r.cmd.Stderr = os.Stderr
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.In(t, r.cmd.Start)
	t.Cleanup(r.kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("responder %s says %q: %v", name, line, err)
	}
	return r
}

// kill ends it at once, and returns when its sockets are gone.
func (r *responder) kill() {
	r.once.Do(func() {
		_ = r.cmd.Process.Signal(syscall.SIGKILL)
		_ = r.cmd.Wait()
	})
}

// respond is the responder's process. It returns only when something is wrong.
func respond(spec string) error {
	words := strings.Fields(spec)
	failed := make(chan error)
	for _, l := range words[1:] {
		proto, addr, _ := strings.Cut(l, "/")
		config := net.ListenConfig{Control: reusePort}
		if proto == "udp" || proto == "slow" {
			conn, err := config.ListenPacket(context.Background(), "udp", addr)
			if err != nil {
				return err
			}
			var wait time.Duration
			if proto == "slow" {
				wait = time.Second
			}
			go func() { failed <- respondUDP(words[0], conn, wait) }()
			continue
		}
		listener, err := config.Listen(context.Background(), "tcp", addr)
		if err != nil {
			return err
		}
		go func() { failed <- respondTCP(words[0], listener) }()
	}
	fmt.Println("ready")
	return <-failed
}

func reusePort(_, _ string, c syscall.RawConn) error {
	var err error
	ctl := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	return errors.Join(ctl, err)
}

func respondUDP(name string, conn net.PacketConn, wait time.Duration) error {
	buf := make([]byte, 512)
	for {
		_, peer, err := conn.ReadFrom(buf)
		if err != nil {
			return err
		}
		time.AfterFunc(wait, func() { _, _ = fmt.Fprintf(writerTo{conn, peer}, "%s %s", name, peer) })
	}
}

type writerTo struct {
	conn net.PacketConn
	peer net.Addr
}

func (w writerTo) Write(b []byte) (int, error) { return w.conn.WriteTo(b, w.peer) }

// respondTCP says its name once per line it reads.
func respondTCP(name string, l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = conn.Close() }()
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				if _, err := fmt.Fprintf(conn, "%s %s\n", name, conn.RemoteAddr()); err != nil {
					return
				}
			}
		}()
	}
}

// client asks from one namespace.
type client struct {
	space space.Space
	// port is its source port, 0 for a fresh one each time.
	port uint16
	// mark is the mark of its packets.
	mark uint32
	// uid is who owns its sockets.
	uid int
	// wait is how long it waits for an answer. Default: 2 s.
	wait time.Duration
}

const noAnswer = "nobody"

// ask asks once, without a second try, and returns the first word of the answer, or
// why there is none.
func (c client) ask(t *testing.T, proto, addr string) string {
	t.Helper()
	answer, err := c.exchange(proto, addr)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return noAnswer
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		t.Logf("%s to %s: %v", proto, addr, err)
		return "refused"
	case err != nil:
		t.Fatalf("%s to %s: %v", proto, addr, err)
	}
	name, _, _ := strings.Cut(answer, " ")
	return name
}

func (c client) exchange(proto, addr string) (string, error) {
	conn, err := c.dial(proto, addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	return roundTrip(conn, c.patience())
}

func (c client) patience() time.Duration {
	if c.wait == 0 {
		return 2 * time.Second
	}
	return c.wait
}

func roundTrip(conn net.Conn, wait time.Duration) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("who?\n")); err != nil {
		return "", err
	}
	buf := make([]byte, 512)
	n, err := conn.Read(buf)
	return string(buf[:n]), err
}

// dial connects, so that an ICMP error would be seen.
func (c client) dial(proto, addr string) (conn net.Conn, err error) {
	to := netip.MustParseAddrPort(addr)
	dialer := net.Dialer{Timeout: c.patience(), Control: c.options}
	if c.port != 0 {
		from := netip.IPv4Unspecified()
		if to.Addr().Is6() {
			from = netip.IPv6Unspecified()
		}
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, c.port))
		if proto == "tcp" {
			dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, c.port))
		}
	}
	err = c.space.Try(func() error {
		if c.uid != 0 {
			// Of this thread alone, which ends after this.
			_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(c.uid), 0, 0)
		}
		conn, err = dialer.Dial(proto, addr)
		return err
	})
	return conn, err
}

func (c client) options(_, _ string, raw syscall.RawConn) error {
	var err error
	ctl := raw.Control(func(fd uintptr) {
		if c.mark != 0 {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(c.mark))
		}
	})
	return errors.Join(ctl, err)
}
