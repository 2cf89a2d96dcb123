package play_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/peers"
	"github.com/nodens-dns/nodens/bench/play"
	"github.com/nodens-dns/nodens/bench/reflector"
	"github.com/nodens-dns/nodens/bench/scenarios"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/upstream"
)

// TestMain lets this binary be a server that a play starts: the reflector, or
// one that ends at once.
func TestMain(m *testing.M) {
	if addr := os.Getenv("PLAY_REFLECT"); addr != "" {
		if err := reflector.Run(context.Background(), addr, 1); err != nil {
			os.Exit(1)
		}
	}
	if len(os.Args) > 1 && os.Args[1] == "broken" {
		fmt.Fprintln(os.Stderr, "no such option")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// read makes a scenario.
func read(t *testing.T, text string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Read("t.yaml", "t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const short = `
does: x
names: {kind: services, services: 50, ttl: 1h}
warm: true
load: {transport: udp}
phases:
- {name: a, for: 500ms, rate: 200}
`

// reflecting is a server that this binary is.
func reflecting(t *testing.T) *play.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &play.Server{Name: "reflector", Fixed: true, Start: func(s peers.Setup, cpus []int) (*peers.Process, error) {
		return peers.Command{Path: "/usr/bin/env", Args: []string{"PLAY_REFLECT=" + s.Listen.String(), self}, Dir: s.Dir, CPUs: cpus}.Start()
	}}
}

func playOf(t *testing.T, cfg play.Config) (*play.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return play.Play(ctx, cfg)
}

func TestServerThatIsStarted(t *testing.T) {
	r, err := playOf(t, play.Config{Scenario: read(t, short), Server: reflecting(t)})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Load.Total; c.Sent != 100 || c.Right+c.Late != 100 || r.Server != "reflector" {
		t.Errorf("%+v", c)
	}
	if r.CPU() <= 0 || r.Cost.RSS < 1<<20 {
		t.Errorf("CPU %v per query, %d octets", r.CPU(), r.Cost.RSS)
	}
}

func TestServerThatRuns(t *testing.T) {
	s := read(t, short)
	zone, err := names.NewZone(s.Names)
	if err != nil {
		t.Fatal(err)
	}
	server, err := upstream.New(upstream.Config{Zone: zone})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	r, err := playOf(t, play.Config{Scenario: s, Target: server.Addr(), PID: os.Getpid()})
	if err != nil || r.Load.Total.Right+r.Load.Total.Late != 100 || r.Cost == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if err == nil && !strings.Contains(r.Checked, "only ID, question and code") {
		t.Errorf("nobody knows what is right, and it says %q", r.Checked)
	}
}

// With the zone's own server as the target the faults are those of the target.
func TestEventsHappenInTime(t *testing.T) {
	s := read(t, strings.Replace(short, "for: 500ms, rate: 200", "for: 2s, rate: 50", 1)+`
events:
- {at: 400ms, does: silence, do: faults, blackhole: true}
- {at: 1600ms, does: back, do: faults}
`)
	s.Load.Timeout = 5 * time.Second
	// The only server behind is the target itself.
	addr := netip.MustParseAddrPort("127.0.0.1:" + freePort(t))
	r, err := playOf(t, play.Config{Scenario: s, Target: addr, Behind: []netip.AddrPort{addr}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Checked, "code and addresses") {
		t.Errorf("what is right is known, and it says %q", r.Checked)
	}
	if c := r.Load.Total; c.Lost < 40 || c.Lost > 80 || c.Right+c.Lost+c.Late != 100 {
		t.Errorf("%+v, want about 60 lost and the rest right", c)
	}
	if len(r.Marks) != 2 || r.Marks[0].Does != "silence" || r.Marks[0].At < 390*time.Millisecond {
		t.Errorf("%+v", r.Marks)
	}
}

// The warm-up is over before the servers behind are as bad as the scenario says.
func TestFaultsFromTheStartBeginWithTheLoad(t *testing.T) {
	addr := netip.MustParseAddrPort("127.0.0.1:" + freePort(t))
	for _, transport := range []string{"udp", "tcp"} {
		s := read(t, strings.Replace(short, "udp", transport, 1)+"upstream: {servfail: 1}\n")
		r, err := playOf(t, play.Config{Scenario: s, Target: addr, Behind: []netip.AddrPort{addr}})
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Load.Total; c.Sent != 100 || c.ServFail != 100 {
			t.Errorf("%s: %+v, want 100 SERVFAIL", transport, c)
		}
	}
}

// Nothing but TC over TCP leaves nobody to ask.
func TestWarmUpNamesTruncatedReplies(t *testing.T) {
	addr := space.Accept(t, truncate)
	s := read(t, strings.Replace(short, "udp", "tcp", 1))
	_, err := playOf(t, play.Config{Scenario: s, Target: addr})
	if err == nil || !strings.Contains(err.Error(), "100 truncated") {
		t.Errorf("%v, want it to say that 100 are truncated", err)
	}
}

// truncate sends each query back as a reply with TC.
func truncate(conn net.Conn) {
	defer conn.Close()
	for size := make([]byte, 2); ; {
		if _, err := io.ReadFull(conn, size); err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := io.ReadFull(conn, msg); err != nil {
			return
		}
		msg[2] |= 0x82 // QR and TC
		if _, err := conn.Write(append(size[:2:2], msg...)); err != nil {
			return
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	zone, err := names.NewZone(names.Config{Services: 1, External: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := upstream.New(upstream.Config{Zone: zone})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, port, _ := strings.Cut(s.Addr().String(), ":")
	return port
}

func TestRestarts(t *testing.T) {
	s := read(t, `
does: x
names: {kind: services, services: 50, ttl: 1h}
load: {transport: udp, freshPorts: true, timeout: 1s}
phases:
- {name: a, for: 3s, rate: 100}
events:
- {at: 500ms, does: beside, do: surge}
- {at: 2s, does: killed, do: kill-start, gap: 300ms}
`)
	r, err := playOf(t, play.Config{Scenario: s, Server: reflecting(t)})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Load.Total; c.Lost == 0 || c.Right < 200 {
		t.Errorf("%+v, want some lost while the server was away and most right", c)
	}
}

func TestWhatCannotBePlayed(t *testing.T) {
	silent := netip.MustParseAddrPort("127.0.0.1:" + freePort(t))
	meddling := short + "events:\n- {at: 100ms, does: x, do: kill}\n"
	restarting := short + "events:\n- {at: 100ms, does: x, do: surge}\n"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	broken := &play.Server{Name: "broken", Start: func(s peers.Setup, cpus []int) (*peers.Process, error) {
		return peers.Command{Path: self, Args: []string{"broken"}, Dir: s.Dir}.Start()
	}}
	missing := &play.Server{Name: "missing", Start: func(s peers.Setup, cpus []int) (*peers.Process, error) {
		return peers.Command{Path: "/nowhere/dns", Dir: s.Dir}.Start()
	}}
	lying := reflecting(t)
	lying.Fixed = false
	for name, c := range map[string]struct {
		cfg  play.Config
		want string
	}{
		"nothing answers":       {play.Config{Scenario: read(t, short), Target: silent}, "does not answer, so there is nothing to measure"},
		"it ends at once":       {play.Config{Scenario: read(t, short), Server: broken}, "no such option"},
		"no such program":       {play.Config{Scenario: read(t, short), Server: missing}, "start /nowhere/dns"},
		"wrong answers":         {play.Config{Scenario: read(t, short), Server: lying}, "the warm-up is not answered as it should be"},
		"another machine":       {play.Config{Scenario: read(t, short), Target: netip.MustParseAddrPort("192.0.2.1:53")}, "it would get up to 200 queries/s for 500ms"},
		"servers behind":        {play.Config{Scenario: read(t, meddling), Target: silent}, "changes the servers behind the target"},
		"restart of a stranger": {play.Config{Scenario: read(t, restarting), Target: silent}, "it must be started here"},
		"neither":               {play.Config{Scenario: read(t, short)}, "name either a server to start or one that runs"},
		"no profiles":           {play.Config{Scenario: read(t, short), Target: silent, Profile: "cpu.prof"}, "gives no profiles"},
		"never any profiles":    {play.Config{Scenario: read(t, short), Server: lying, Profile: "cpu.prof"}, "gives no profiles"},
		"too many behind":       {play.Config{Scenario: read(t, short), Target: silent, Behind: []netip.AddrPort{silent, silent}}, "has 1 servers behind"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := playOf(t, c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want it to say %q", err, c.want)
			}
		})
	}
}

func TestEndOfTheContextEndsThePlay(t *testing.T) {
	s := read(t, short)
	s.Stretch(time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	began := time.Now()
	if _, err := play.Play(ctx, play.Config{Scenario: s, Server: reflecting(t)}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}
