package kube_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/topology/kube"
)

// valve is a TCP proxy that can stop to forward without a word, as a firewall
// does that forgot a connection.
type valve struct {
	net.Listener
	to   string
	mu   sync.Mutex
	shut bool
	all  []net.Conn
}

func newValve(t *testing.T, to string) *valve {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{Listener: l, to: to}
	var wait sync.WaitGroup
	wait.Go(func() { v.accept(&wait) })
	t.Cleanup(func() {
		l.Close()
		v.mu.Lock()
		for _, c := range v.all {
			c.Close()
		}
		v.mu.Unlock()
		wait.Wait()
	})
	return v
}

func (v *valve) accept(wait *sync.WaitGroup) {
	for {
		in, err := v.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", v.to)
		if err != nil {
			in.Close()
			continue
		}
		v.mu.Lock()
		v.all = append(v.all, in, out)
		v.mu.Unlock()
		wait.Go(func() { v.forward(in, out) })
		wait.Go(func() { v.forward(out, in) })
	}
}

// forward copies until an end closes; what arrives while shut is lost, and so
// is an end.
func (v *valve) forward(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		v.mu.Lock()
		shut := v.shut
		v.mu.Unlock()
		if shut {
			if err != nil {
				return
			}
			continue
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			_, _ = io.Copy(io.Discard, from)
			return
		}
	}
}

func (v *valve) turn(shut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut = shut
}

// A watch whose packets vanish looks exactly like a quiet one.
func TestSilentConnectionIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s")
	}
	t.Parallel()
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	v := newValve(t, strings.TrimPrefix(f.URL, "https://"))
	api := f.api()
	api.Server = "https://" + v.Addr().String()
	r := start(t, api, kube.Config{})
	r.wants("10.0.0.1")

	v.turn(true)
	began := time.Now()
	f.put(slice("a", "kube-dns", "10.0.0.2"))
	within(t, time.Minute, "the silence is noticed", func() bool { return r.Status().Fault == kube.Unreachable })
	t.Logf("noticed after %v: %s", time.Since(began).Round(time.Millisecond), r.Status().LastError)
	if got := r.addresses(); got != "10.0.0.1" {
		t.Errorf("addresses %q, want the last set", got)
	}
	v.turn(false)
	r.wants("10.0.0.2")
}
