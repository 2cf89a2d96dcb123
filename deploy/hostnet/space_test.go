package hostnet_test

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

// space is a network namespace without a name: it is gone with its last user.
type space struct {
	file *os.File
	nl   *netlink.Handle
}

// fd is what hostnet.Config takes.
func (s space) fd() int { return int(s.file.Fd()) }

// newSpace makes a namespace with its loopback up.
func newSpace(t *testing.T) space {
	t.Helper()
	needs(t, "root", os.Geteuid() == 0)
	var s space
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		file, err := os.Open("/proc/thread-self/ns/net")
		s.file = file
		return err
	})
	needs(t, "netns", err == nil)
	t.Cleanup(func() { _ = s.file.Close() })
	if s.nl, err = netlink.NewHandleAt(netns.NsHandle(s.fd())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.nl.Close)
	s.up(t, "lo")
	// Else a link says nothing for seconds, while it looks for its address elsewhere.
	s.sysctl(t, "ipv6/conf/default/accept_dad", "0")
	s.sysctl(t, "ipv6/conf/default/dad_transmits", "0")
	return s
}

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		done <- f()
	}()
	return <-done
}

// in runs f inside the namespace. Sockets and processes it makes stay there.
func (s space) in(t *testing.T, f func() error) {
	t.Helper()
	if err := s.try(f); err != nil {
		t.Fatal(err)
	}
}

func (s space) try(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(s.fd(), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// run runs a program inside and returns what it printed.
func (s space) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		needs(t, name, false)
	}
	var out []byte
	s.in(t, func() (err error) {
		out, err = exec.Command(name, args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
		return err
	})
	return string(out)
}

// sysctl writes below /proc/sys/net.
func (s space) sysctl(t *testing.T, path, value string) {
	t.Helper()
	s.in(t, func() error { return os.WriteFile("/proc/sys/net/"+path, []byte(value), 0o644) })
}

func (s space) link(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := s.nl.LinkByName(name)
	if err != nil {
		t.Fatalf("link %s: %v", name, err)
	}
	return l
}

func (s space) up(t *testing.T, name string) {
	t.Helper()
	if err := s.nl.LinkSetUp(s.link(t, name)); err != nil {
		t.Fatalf("link %s: %v", name, err)
	}
}

// address puts addresses, with their lengths, on a link and sets it up.
func (s space) address(t *testing.T, link string, cidrs ...string) {
	t.Helper()
	for _, c := range cidrs {
		a, err := netlink.ParseAddr(c)
		if err != nil {
			t.Fatal(err)
		}
		a.Flags = unix.IFA_F_NODAD
		if err := s.nl.AddrAdd(s.link(t, link), a); err != nil {
			t.Fatalf("%s on %s: %v", c, link, err)
		}
	}
	s.up(t, link)
}

// route sends a destination to a link, or by way of a gateway if link is "".
func (s space) route(t *testing.T, dst, via, link string) {
	t.Helper()
	_, ipnet, err := net.ParseCIDR(dst)
	if err != nil {
		t.Fatal(err)
	}
	r := &netlink.Route{Dst: ipnet, Gw: net.ParseIP(via)}
	if link != "" {
		r.LinkIndex, r.Scope = s.link(t, link).Attrs().Index, netlink.SCOPE_LINK
	}
	if err := s.nl.RouteAdd(r); err != nil {
		t.Fatalf("route to %s: %v", dst, err)
	}
}

// veth joins a link of s with eth0 of the other namespace.
func (s space) veth(t *testing.T, name string, other space) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	err := s.nl.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(other.fd())})
	if err != nil {
		t.Fatalf("veth %s: %v", name, err)
	}
	s.up(t, name)
}
