package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestNameservers(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want []netip.AddrPort
	}{
		"empty":           {"", nil},
		"one":             {"nameserver 192.0.2.1\n", addrPorts("192.0.2.1:53")},
		"no line end":     {"nameserver 192.0.2.1", addrPorts("192.0.2.1:53")},
		"order":           {"nameserver 192.0.2.2\nnameserver 192.0.2.1\n", addrPorts("192.0.2.2:53", "192.0.2.1:53")},
		"tabs and more":   {"\tnameserver\t192.0.2.1 # ours\r\n", addrPorts("192.0.2.1:53")},
		"IPv6":            {"nameserver 2001:db8::1\n", addrPorts("[2001:db8::1]:53")},
		"IPv6 with zone":  {"nameserver fe80::1%eth0\n", addrPorts("[fe80::1%eth0]:53")},
		"IPv4 in IPv6":    {"nameserver ::ffff:192.0.2.1\n", addrPorts("192.0.2.1:53")},
		"other lines":     {"# nameserver 192.0.2.9\n; nameserver 192.0.2.9\nsearch a.example\noptions ndots:5\nnameservers 192.0.2.9\nnameserver\nnameserver name.example\n", nil},
		"more than three": {strings.Repeat("nameserver 192.0.2.1\n", 4), addrPorts("192.0.2.1:53", "192.0.2.1:53", "192.0.2.1:53", "192.0.2.1:53")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, nameservers([]byte(test.file)), byValue()); diff != "" {
				t.Errorf("nameservers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolvConfLeavesOutLoops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	write(t, path, "nameserver 127.0.0.1\nnameserver 169.254.20.10\nnameserver 10.0.0.5\nnameserver 0.0.0.0\nnameserver 192.0.2.1\nnameserver 192.0.2.1\nnameserver ::1\n")
	own := func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.5")} }
	for name, test := range map[string]struct {
		listen, want []netip.AddrPort
		left         int
	}{
		"listens elsewhere": {addrPorts("127.0.0.1:5353"), addrPorts("127.0.0.1:53", "169.254.20.10:53", "10.0.0.5:53", "192.0.2.1:53", "[::1]:53"), 1},
		"own address":       {addrPorts("169.254.20.10:53"), addrPorts("127.0.0.1:53", "10.0.0.5:53", "192.0.2.1:53", "[::1]:53"), 2},
		"wildcard":          {addrPorts("0.0.0.0:53"), addrPorts("169.254.20.10:53", "192.0.2.1:53", "[::1]:53"), 3},
		"both wildcards":    {addrPorts("0.0.0.0:53", "[::]:53"), addrPorts("169.254.20.10:53", "192.0.2.1:53"), 4},
	} {
		t.Run(name, func(t *testing.T) {
			got, left, err := resolvConf{path: path, listen: test.listen, own: own}.read()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, byValue()); diff != "" || len(left) != test.left {
				t.Errorf("left out %q, want %d; servers (-want +got):\n%s", left, test.left, diff)
			}
		})
	}
}

// follow runs a resolvConf and returns the lists it publishes.
func follow(t *testing.T, path string, poll time.Duration) (<-chan []netip.AddrPort, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	published := make(chan []netip.AddrPort, 16)
	r := resolvConf{
		path: path, listen: addrPorts("127.0.0.1:53"), own: func() []netip.Addr { return nil },
		publish: func(s []netip.AddrPort) { published <- s }, log: zap.New(core), poll: poll,
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return published, logs
}

func expect(t *testing.T, published <-chan []netip.AddrPort, want ...string) {
	t.Helper()
	select {
	case got := <-published:
		if diff := cmp.Diff(addrPorts(want...), got, byValue()); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	case <-time.After(patience):
		t.Fatalf("nothing was published, want %v", want)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace puts a new file over path, as most programs do.
func replace(t *testing.T, path, content string) {
	t.Helper()
	write(t, path+".new", content)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestResolvConfIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	write(t, path, "nameserver 192.0.2.1\n")
	published, logs := follow(t, path, time.Hour)
	expect(t, published, "192.0.2.1:53")
	write(t, path, "nameserver 192.0.2.2\n")
	expect(t, published, "192.0.2.2:53")
	replace(t, path, "nameserver 192.0.2.3\nnameserver 192.0.2.4\n")
	expect(t, published, "192.0.2.3:53", "192.0.2.4:53")

	// What names no server keeps the last ones; what comes next is seen again.
	replace(t, path, "search a.example\n")
	await(t, "a warning about the empty file", func() bool {
		return logs.FilterMessageSnippet("names no usable nameserver").Len() == 1
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	await(t, "a warning about the missing file", func() bool {
		return logs.FilterMessageSnippet("cannot be read").Len() == 1
	})
	replace(t, path, "nameserver 127.0.0.1\nnameserver 192.0.2.5\n")
	expect(t, published, "192.0.2.5:53")
	if logs.FilterMessageSnippet("nodens itself listens at 127.0.0.1:53").Len() != 1 {
		t.Error("the loop was not logged once")
	}
}

func TestResolvConfBehindLinks(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "run"), filepath.Join(dir, "etc")
	for _, d := range []string{target, path} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	target, path = filepath.Join(target, "real.conf"), filepath.Join(path, "resolv.conf")
	write(t, target, "nameserver 192.0.2.1\n")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	published, _ := follow(t, path, time.Hour)
	expect(t, published, "192.0.2.1:53")
	replace(t, target, "nameserver 192.0.2.2\n")
	expect(t, published, "192.0.2.2:53")
}

// Without any event the poll finds the change: here the folder is replaced.
func TestResolvConfIsPolled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	path := filepath.Join(dir, "resolv.conf")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path, "nameserver 192.0.2.1\n")
	published, _ := follow(t, path, 20*time.Millisecond)
	expect(t, published, "192.0.2.1:53")
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path, "nameserver 192.0.2.2\n")
	expect(t, published, "192.0.2.2:53")
}

// await waits until done, for a generous time.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
