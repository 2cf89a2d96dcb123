package play

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/peers"
	"github.com/nodens-dns/nodens/bench/scenarios"
)

// Server is a server that a play starts.
type Server struct {
	// Name and Version are for the report.
	Name, Version string
	// Start starts it. Required.
	Start func(s peers.Setup, cpus []int) (*peers.Process, error)
	// Allocations counts what it has allocated; nil if it does not say.
	Allocations func(s peers.Setup) (uint64, bool)
	// Profile is the URL of a CPU profile of so many seconds, "" for none; nil
	// if it never has one.
	Profile func(s peers.Setup, seconds int) string
	// Fixed says that it gives a fixed answer, whose content is not judged.
	Fixed bool
}

// Config describes one play.
type Config struct {
	// Scenario is what is played. Required.
	Scenario *scenarios.Scenario
	// Server is started for the play. Either it or Target is required.
	Server *Server
	// Target is a server that runs already.
	Target netip.AddrPort
	// PID is the process of a server that runs already. Default 0: its cost is
	// not accounted for.
	PID int
	// Behind is where the servers behind the target listen. Default: free ports
	// of 127.0.0.1 for a server that is started, nowhere for one that runs.
	Behind []netip.AddrPort
	// List, if set, takes the place of the scenario's names; its answers are not
	// judged.
	List *names.List
	// AllowRemote lets Target be another machine.
	AllowRemote bool
	// TLS is for the transport of that name.
	TLS *tls.Config
	// Spin is that of the load.
	Spin time.Duration
	// Profile is a file for a CPU profile of Server. Default none: it costs the
	// server some CPU time.
	Profile string
	// ServerCPUs and ClientCPUs are the CPUs of a server that is started, and of
	// this process. Default: all.
	ServerCPUs, ClientCPUs []int
	// Progress, if set, is called once a second.
	Progress func(load.Progress)
	// Say, if set, hears what happens, a line each time.
	Say func(text string)
}

func (c Config) validate() error {
	switch {
	case c.Scenario == nil:
		return errors.New("play: there is no scenario")
	case (c.Server == nil) == !c.Target.IsValid():
		return errors.New("play: name either a server to start or one that runs")
	case c.Profile != "" && !c.profiled():
		return errors.New("play: this server gives no profiles; leave -profile out")
	case c.Server == nil && c.Scenario.Restarts():
		return fmt.Errorf("play: %s restarts the server under test, so it must be started here", c.Scenario.Name)
	case c.Server == nil && len(c.Behind) == 0 && c.Scenario.Meddles():
		return fmt.Errorf("play: %s changes the servers behind the target: say where they listen, and let the target ask them", c.Scenario.Name)
	case len(c.Behind) > 0 && len(c.Behind) != c.Scenario.Servers:
		return fmt.Errorf("play: %s has %d servers behind the target, not %d", c.Scenario.Name, c.Scenario.Servers, len(c.Behind))
	}
	if c.Server == nil && !c.AllowRemote {
		if err := load.CheckLocal(c.Target.Addr()); err != nil {
			return fmt.Errorf("play: %w (it would get %s)", err, Amount(c.Scenario))
		}
	}
	return nil
}

// profiled tells whether the server gives profiles.
func (c Config) profiled() bool {
	return c.Server != nil && c.Server.Profile != nil && c.Server.Profile(peers.Setup{}, 1) != ""
}

// Amount says how much a scenario sends.
func Amount(s *scenarios.Scenario) string {
	if s.Peak() == 0 {
		return fmt.Sprintf("as many queries as it answers for %v", s.Length())
	}
	return fmt.Sprintf("up to %.0f queries/s for %v", s.Peak(), s.Length())
}

func (c Config) say(format string, args ...any) {
	if c.Say != nil {
		c.Say(fmt.Sprintf(format, args...))
	}
}

// checked says what of each reply is checked.
func (c Config) checked() string {
	if c.unjudged() {
		return "Of each reply only ID, question and code (NOERROR or NXDOMAIN) were checked: what its records should say is not known here."
	}
	return "Of each reply ID, question, code and addresses were checked."
}

// unjudged tells whether the content of replies is not known.
func (c Config) unjudged() bool {
	return c.List != nil || c.Server != nil && c.Server.Fixed || c.Server == nil && len(c.Behind) == 0 && len(c.Scenario.Names.List) == 0
}
