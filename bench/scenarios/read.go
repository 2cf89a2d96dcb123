package scenarios

import (
	"fmt"
	"math"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/upstream"
)

// longest is the longest that a phase may last.
const longest = time.Hour

// scenarioFile is a file on its way to a Scenario.
type scenarioFile struct {
	file
	s          Scenario
	ttl        time.Duration
	eventLines []int
	loadLine   int
}

// Read reads one scenario. Its error is every mistake in data.
func Read(path, name string, data []byte) (*Scenario, error) {
	f := &scenarioFile{file: file{mistakes{file: path}}, s: Scenario{Name: name, Kind: Services, Servers: 1}}
	if root := f.document(data); root != nil {
		f.object("", root, f.top(), "does", "phases")
		f.compare(root)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	f.s.Names.TTL = uint32(f.ttl / time.Second)
	return &f.s, nil
}

func (f *scenarioFile) top() fields {
	return fields{
		"does":     f.text(&f.s.Does),
		"names":    f.section(f.names()),
		"warm":     f.flag(&f.s.Warm),
		"load":     f.load,
		"upstream": f.section(f.upstream()),
		"phases":   func(path string, n *yaml.Node) { f.list(path, n, f.phase) },
		"events":   func(path string, n *yaml.Node) { f.list(path, n, f.event) },
	}
}

func (f *scenarioFile) names() fields {
	kinds := []string{string(Services), string(Pods), string(Unique), string(Blend)}
	c := &f.s.Names
	return fields{
		"kind":          f.word(kinds, func(i int) { f.s.Kind = Kind(kinds[i]) }),
		"hits":          f.number(&f.s.Hits, 0, 1),
		"services":      f.integer(&c.Services, 1, 1_000_000),
		"external":      f.integer(&c.External, 1, 1_000_000),
		"externalShare": f.share(&c.ExternalShare, 1),
		"tcpShare":      f.share(&c.TCPShare, 1),
		"ednsShare":     f.share(&c.EDNSShare, 1),
		"zipf":          f.share(&c.Zipf, 3),
		"dualStack":     f.flag(&c.DualStack),
		"ttl":           f.duration(&f.ttl, time.Second, 24*time.Hour),
	}
}

// share reads a number whose zero means none, where the configuration takes
// zero for its default.
func (f *scenarioFile) share(to *float64, high float64) reader {
	return func(path string, n *yaml.Node) {
		f.number(to, 0, high)(path, n)
		if *to == 0 {
			*to = -1
		}
	}
}

func (f *scenarioFile) load(path string, n *yaml.Node) {
	f.loadLine = n.Line
	c := &f.s.Load
	f.object(path, n, fields{
		"transport":   f.word([]string{"mixed", "udp", "tcp", "tcp-each", "dot"}, func(i int) { c.Transport = load.Transport(i) }),
		"retry":       f.word([]string{"none", "glibc", "musl", "go"}, func(i int) { c.Retry = load.Retry(i) }),
		"followTC":    f.flag(&c.FollowTC),
		"sockets":     f.integer(&c.Sockets, 1, 28000),
		"conns":       f.integer(&c.Conns, 1, 4096),
		"workers":     f.integer(&c.Workers, 1, 64),
		"outstanding": f.integer(&c.Outstanding, 1, 65536),
		"freshPorts":  f.flag(&c.FreshPorts),
		"timeout":     f.duration(&c.Timeout, 10*time.Millisecond, 30*time.Second),
	})
	if c.Sockets > 4096 && !c.FreshPorts {
		f.add(n.Line, fmt.Sprintf("load.sockets is %d", c.Sockets), "write at most 4096, or add load.freshPorts")
	}
}

func (f *scenarioFile) upstream() fields {
	known := f.faults(&f.s.Faults)
	known["servers"] = f.integer(&f.s.Servers, 1, 3)
	return known
}

func (f *scenarioFile) faults(to *upstream.Faults) fields {
	return fields{
		"delay":     f.duration(&to.Delay, 0, time.Minute),
		"jitter":    f.duration(&to.Jitter, 0, time.Minute),
		"loss":      f.number(&to.Loss, 0, 1),
		"servfail":  f.number(&to.ServFail, 0, 1),
		"refused":   f.number(&to.Refused, 0, 1),
		"truncate":  f.number(&to.Truncate, 0, 1),
		"garbage":   f.number(&to.Garbage, 0, 1),
		"rate":      f.number(&to.Rate, 1, 1e7),
		"queue":     f.integer(&to.Queue, 1, 1_000_000),
		"blackhole": f.flag(&to.Blackhole),
	}
}

func (f *scenarioFile) phase(path string, n *yaml.Node) {
	var stage load.Stage
	rate := math.NaN()
	f.object(path, n, fields{
		"name": f.text(&stage.Name),
		"for":  f.duration(&stage.For, 100*time.Millisecond, longest),
		"rate": f.number(&rate, 0, 1e7),
		"from": f.number(&stage.From, 0, 1e7),
		"to":   f.number(&stage.To, 0, 1e7),
	}, "name", "for")
	if ramp := stage.From > 0 || stage.To > 0; !math.IsNaN(rate) && ramp {
		f.add(n.Line, path+" has a rate and a ramp", "write either rate, or from and to")
	} else if !ramp && !math.IsNaN(rate) {
		stage.From, stage.To = rate, rate
	}
	f.s.Load.Stages = append(f.s.Load.Stages, stage)
}

func (f *scenarioFile) event(path string, n *yaml.Node) {
	actions := []string{
		string(SetFaults), string(Terminate), string(Remove), string(Kill), string(Unready), string(Start),
		string(Surge), string(StopStart), string(KillStart),
	}
	e := Event{At: -1}
	known := f.faults(&e.Faults)
	known["at"] = f.duration(&e.At, 0, longest)
	known["does"] = f.text(&e.Does)
	known["do"] = f.word(actions, func(i int) { e.Do = Action(actions[i]) })
	known["server"] = f.integer(&e.Server, 1, 3)
	known["gap"] = f.duration(&e.Gap, 0, time.Minute)
	f.object(path, n, known, "at", "does", "do")
	switch {
	case e.Do != SetFaults && e.Faults != upstream.Faults{}:
		f.add(n.Line, fmt.Sprintf("%s has faults, but does %q", path, e.Do), "write do: faults, or remove them")
	case e.Do.OnTarget() && e.Server != 0:
		f.add(n.Line, path+" names a server behind the one under test", "remove server")
	}
	f.s.Events = append(f.s.Events, e)
	f.eventLines = append(f.eventLines, n.Line)
}

// compare looks for values that do not go together.
func (f *scenarioFile) compare(root *yaml.Node) {
	length, closed := f.s.Length(), f.s.Load.Outstanding > 0
	for i, e := range f.s.Events {
		line := f.eventLines[i]
		if e.At > length {
			f.add(line, fmt.Sprintf("events[%d] is at %v, but the phases are over at %v", i, e.At, length), "move it, or make the phases longer")
		}
		if e.Server > f.s.Servers {
			f.add(line, fmt.Sprintf("events[%d] is for server %d of %d", i, e.Server, f.s.Servers), "raise upstream.servers, or choose another server")
		}
		if i > 0 && e.At >= 0 && e.At < f.s.Events[i-1].At {
			f.add(line, fmt.Sprintf("events[%d] is earlier than the one before", i), "write events in the order of their times")
		}
	}
	if !closed && len(f.s.Load.Stages) > 0 && f.s.Peak() == 0 {
		f.add(root.Line, "no phase sends anything", "give the phases a rate, or load.outstanding for a closed loop")
	}
	if closed && f.s.Peak() > 0 {
		f.add(f.loadLine, "load.outstanding makes a closed loop, whose phases have no rates", "remove the rates, or load.outstanding")
	}
	if f.s.Kind == Blend && f.s.Hits == 0 {
		f.add(root.Line, "names.kind is blend without hits", "add names.hits, such as 0.7")
	}
}
