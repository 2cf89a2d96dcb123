package main

import (
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
)

// otherUser is who has the port first.
const otherUser = 65531

// heldBy binds a free port of 127.0.0.1 over UDP and TCP as another user, in the way
// of a program that shares its port with itself.
func heldBy(t *testing.T, uid int) (udp net.PacketConn, tcp net.Listener) {
	t.Helper()
	space.Needs(t, "root", os.Geteuid() == 0)
	config := net.ListenConfig{Control: sharePort}
	config.SetMultipathTCP(false)
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: its user is another one
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
		var err error
		if udp, err = config.ListenPacket(t.Context(), "udp4", "127.0.0.1:0"); err == nil {
			tcp, err = config.Listen(t.Context(), "tcp4", udp.LocalAddr().String())
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = udp.Close(), tcp.Close() })
	return udp, tcp
}

// TestAnotherUserHasThePort starts while another user's process has it, as in the
// change from one DNS program to another, and gets UDP and TCP one after the other.
func TestAnotherUserHasThePort(t *testing.T) {
	up := newScripted(t, 7, 0)
	udp, tcp := heldBy(t, otherUser)
	at := netip.MustParseAddrPort(udp.LocalAddr().String())
	h := serve(t, fmt.Sprintf("listen: [%q]\nroutes: [{zones: [.], servers: [%q]}]\n", at, up.address))
	server := httptest.NewServer(h.adminRoutes(&h.began.Admin))
	defer server.Close()
	base := server.URL
	status, body := get(t, base+"/readyz")
	if want := "ready: waiting-for-port " + at.String(); status != 200 || body != want {
		t.Errorf("readiness is %d %q, want 200 %q", status, body, want)
	}
	expectWaiting := func(n int) {
		t.Helper()
		_, body := get(t, base+"/metrics")
		if want := fmt.Sprintf("nodens_listen_waiting{listen=%q} %d", at, n); !strings.Contains(body, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	expectWaiting(1)
	if err := udp.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "UDP", func() bool { return h.current.Load().listens[0].udp.Load() != nil })
	h.expect("udp", at, "a.example.", 0, "NOERROR 192.0.2.7")
	expectWaiting(1)
	if err := tcp.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "TCP", func() bool { return len(h.current.Load().waitingFor()) == 0 })
	h.expect("tcp", at, "a.example.", 0, "NOERROR 192.0.2.7")
	expectWaiting(0)
	if _, body := get(t, base+"/readyz"); body != "ready" {
		t.Errorf("readiness is %q, want ready", body)
	}
}

// TestItMayStopWhileItWaits for a port that it never gets.
func TestItMayStopWhileItWaits(t *testing.T) {
	up := newScripted(t, 7, 0)
	udp, _ := heldBy(t, otherUser)
	h := serve(t, fmt.Sprintf("listen: [%q]\nroutes: [{zones: [.], servers: [%q]}]\n", udp.LocalAddr(), up.address))
	if err := h.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}
