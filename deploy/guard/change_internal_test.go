package guard

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// changer is a guard with one serve, on a host in memory.
type changer struct {
	*Guard
	t    *testing.T
	host *hostnet.Fake
	loop *loop
	ctx  context.Context
}

// whileChanging runs f in a bubble of time, with a guard of a state.
func whileChanging(t *testing.T, state hostnet.State, f func(c *changer)) {
	t.Helper()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c, answers := &changer{t: t, host: &hostnet.Fake{}}, &atomic.Bool{}
		answers.Store(true)
		var err error
		c.Guard, err = New(Config{State: state, Host: c.host, Asker: halves{answers}, Endpoints: filepath.Join(folder, "endpoints.json")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		c.ctx, c.loop = ctx, newLoop(c.Guard)
		c.loop.owner = true
		ended := make(chan error, 1)
		go func() { ended <- c.loop.run(ctx) }()
		c.loop.ask(ctx, c.loop.repair)
		f(c)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// serveAt is what serve says that its sockets are.
func (c *changer) serveAt(addresses ...string) {
	s := &session{hello: hello{Instance: "one"}}
	for i, a := range addresses {
		at := netip.AddrPortFrom(netip.MustParseAddr(a), 53)
		s.sockets = append(s.sockets, Socket{at, 2 * i})
		s.tcp = append(s.tcp, Socket{at, 2*i + 1})
	}
	c.loop.ask(c.ctx, func() { c.loop.sessions = []*session{s} })
}

func (c *changer) change(s hostnet.State) {
	c.t.Helper()
	if err := c.Change(c.ctx, s); err != nil {
		c.t.Error(err)
	}
}

// expect looks what the host has, and the guard asks for.
func (c *changer) expect(after time.Duration, when, want string) {
	c.t.Helper()
	time.Sleep(after)
	var places []string
	var mode hostnet.Mode
	c.loop.ask(c.ctx, func() {
		mode = c.loop.state.Mode
		for _, a := range c.loop.addrs() {
			places = append(places, a.String())
		}
	})
	if got := mode.String() + " " + strings.Join(places, " "); got != want {
		c.t.Errorf("%s: places are %s, want %s", when, got, want)
	}
	found, err := c.host.Read(hostnet.State{Mode: mode})
	if err != nil {
		c.t.Error(err)
	}
	for _, a := range found.Link.Addrs {
		if !strings.Contains(want, a.String()) {
			c.t.Errorf("%s: the host has %v", when, a)
		}
	}
	if len(found.Link.Addrs) != len(places) {
		c.t.Errorf("%s: the host has %v", when, found.Link.Addrs)
	}
}

func linkLocal(addresses ...string) hostnet.State {
	s := hostnet.State{Mode: hostnet.LinkLocal, ProbeMark: DefaultMark}
	for _, a := range addresses {
		s.Own = append(s.Own, netip.MustParseAddr(a))
	}
	return s
}

// A host never lacks an address at which serve has a socket.
func TestChangeOfState(t *testing.T) {
	const a, b, service = "169.254.20.10", "169.254.20.11", "10.96.0.10"
	whileChanging(t, linkLocal(a), func(c *changer) {
		c.serveAt(a)
		c.expect(time.Second, "before", "link-local "+a)
		c.change(linkLocal(b))
		c.expect(2*time.Minute, "serve refuses", "link-local "+b+" "+a)
		c.serveAt(b, a)
		c.expect(2*time.Minute, "serve is at both", "link-local "+b+" "+a)
		c.serveAt(b)
		c.expect(leaveAfter-time.Second, "serve has just left", "link-local "+b+" "+a)
		c.expect(2*time.Second, "serve has left", "link-local "+b)
		c.change(linkLocal(a))
		c.expect(time.Second, "there and", "link-local "+a+" "+b)
		c.change(linkLocal(b))
		c.expect(leaveAfter+time.Second, "back again", "link-local "+b)
		both := linkLocal(b)
		both.Mode, both.Service = hostnet.Service, []netip.Addr{netip.MustParseAddr(service)}
		c.change(both)
		c.serveAt(b, service)
		c.expect(time.Second, "another mode", "service "+b+" "+service)
		c.change(linkLocal(b))
		c.expect(2*time.Minute, "serve is at the Service", "service "+b+" "+service)
		c.serveAt(b)
		c.expect(leaveAfter+time.Second, "the mode before", "link-local "+b)
	})
}

// While no serve is there, nobody says where queries are expected.
func TestChangeWithoutServe(t *testing.T) {
	whileChanging(t, linkLocal("169.254.20.10"), func(c *changer) {
		c.change(linkLocal("169.254.20.11"))
		c.expect(2*time.Minute, "nobody serves", "link-local 169.254.20.11 169.254.20.10")
		c.serveAt("169.254.20.11")
		c.expect(leaveAfter+time.Second, "somebody does", "link-local 169.254.20.11")
	})
}

// What cannot change while a guard runs is refused, and nothing of it happens.
func TestChangeIsRefused(t *testing.T) {
	whileChanging(t, linkLocal("169.254.20.10"), func(c *changer) {
		for want, s := range map[string]hostnet.State{
			"mode none": {}, "cannot change while it runs": {Mode: hostnet.LinkLocal, Link: "other"},
			"without a listen address": {Mode: hostnet.LinkLocal, ProbeMark: DefaultMark},
		} {
			if err := c.Change(c.ctx, s); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %s", err, want)
			}
		}
		c.expect(time.Second, "after that", "link-local 169.254.20.10")
	})
}
