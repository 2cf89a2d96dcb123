package space

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Space is a network namespace without a name: it is gone with its last user.
type Space struct {
	file *os.File
	nl   *netlink.Handle
}

// FD is what hostnet.Config takes.
func (s Space) FD() int { return int(s.file.Fd()) }

// New makes a namespace with its loopback up.
func New(t testing.TB) Space {
	t.Helper()
	Needs(t, "root", os.Geteuid() == 0)
	var s Space
	err := OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		file, err := os.Open("/proc/thread-self/ns/net")
		s.file = file
		return err
	})
	Needs(t, "netns", err == nil)
	s.open(t)
	// Else a link says nothing for seconds, while it looks for its address elsewhere.
	s.Sysctl(t, "ipv6/conf/default/accept_dad", "0")
	s.Sysctl(t, "ipv6/conf/default/dad_transmits", "0")
	return s
}

// Here is the namespace of this process, which a test that is Alone has for itself,
// with its loopback up.
func Here(t testing.TB) Space {
	t.Helper()
	file, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	s := Space{file: file}
	s.open(t)
	return s
}

// open makes a namespace ready for use until the test ends.
func (s *Space) open(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { _ = s.file.Close() })
	var err error
	if s.nl, err = netlink.NewHandleAt(netns.NsHandle(s.FD())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.nl.Close)
	s.Up(t, "lo")
}

// OnThread runs f on a thread of its own, which ends with it.
func OnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		done <- f()
	}()
	return <-done
}

// In runs f inside the namespace. Sockets and processes it makes stay there.
func (s Space) In(t testing.TB, f func() error) {
	t.Helper()
	if err := s.Try(f); err != nil {
		t.Fatal(err)
	}
}

func (s Space) Try(f func() error) error {
	return OnThread(func() error {
		if err := unix.Setns(s.FD(), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// Run runs a program inside and returns what it printed.
func (s Space) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		Needs(t, name, false)
	}
	var out []byte
	s.In(t, func() (err error) {
		out, err = exec.Command(name, args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
		return err
	})
	return string(out)
}

// Sysctl writes below /proc/sys/net.
func (s Space) Sysctl(t testing.TB, path, value string) {
	t.Helper()
	s.In(t, func() error { return os.WriteFile("/proc/sys/net/"+path, []byte(value), 0o644) })
}

func (s Space) Link(t testing.TB, name string) netlink.Link {
	t.Helper()
	l, err := s.nl.LinkByName(name)
	if err != nil {
		t.Fatalf("link %s: %v", name, err)
	}
	return l
}

func (s Space) Up(t testing.TB, name string) {
	t.Helper()
	if err := s.nl.LinkSetUp(s.Link(t, name)); err != nil {
		t.Fatalf("link %s: %v", name, err)
	}
}

// Address puts addresses, with their lengths, on a link and sets it up.
func (s Space) Address(t testing.TB, link string, cidrs ...string) {
	t.Helper()
	for _, c := range cidrs {
		a, err := netlink.ParseAddr(c)
		if err != nil {
			t.Fatal(err)
		}
		a.Flags = unix.IFA_F_NODAD
		if err := s.nl.AddrAdd(s.Link(t, link), a); err != nil {
			t.Fatalf("%s on %s: %v", c, link, err)
		}
	}
	s.Up(t, link)
}

// Route sends a destination to a link, or by way of a gateway if link is "".
func (s Space) Route(t testing.TB, dst, via, link string) {
	t.Helper()
	_, ipnet, err := net.ParseCIDR(dst)
	if err != nil {
		t.Fatal(err)
	}
	r := &netlink.Route{Dst: ipnet, Gw: net.ParseIP(via)}
	if link != "" {
		r.LinkIndex, r.Scope = s.Link(t, link).Attrs().Index, netlink.SCOPE_LINK
	}
	if err := s.nl.RouteAdd(r); err != nil {
		t.Fatalf("route to %s: %v", dst, err)
	}
}

// Veth joins a link of s with eth0 of the other namespace.
func (s Space) Veth(t testing.TB, name string, other Space) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	err := s.nl.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(other.FD())})
	if err != nil {
		t.Fatalf("veth %s: %v", name, err)
	}
	s.Up(t, name)
}
