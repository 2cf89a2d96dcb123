package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/upstream"
)

// demoCluster is a cluster's DNS on loopback: three servers in the manner of
// CoreDNS, one of them on the node of the demonstration, a resolver for names
// outside, and the file that stands for the EndpointSlices of the API.
type demoCluster struct {
	mu        sync.Mutex // guards the endpoints' conditions: the view reads what the script writes
	endpoints [3]*demoEndpoint
	resolver  *upstream.Server
	file      string // of EndpointSlices
}

// demoEndpoint is one CoreDNS pod with the conditions that the API shows of it.
type demoEndpoint struct {
	upstream.Endpoint
	server *upstream.Server
	gone   bool // not in the slices
}

// demoDelay is what a server takes to answer, on top of loopback: the network
// of a zone, of the next zone, and recursion. It keeps the numbers credible.
var demoDelays = [...]time.Duration{100 * time.Microsecond, 400 * time.Microsecond, 1200 * time.Microsecond}

const demoRecursion = 5 * time.Millisecond

func newDemoCluster(zone *names.Zone, dir string) (*demoCluster, error) {
	c := &demoCluster{file: filepath.Join(dir, "endpoints.yaml")}
	var errs []error
	for i, at := range [...][2]string{{"n1", "za"}, {"n2", "za"}, {"n3", "zb"}} {
		e := &demoEndpoint{Endpoint: upstream.Endpoint{
			Pod: fmt.Sprintf("coredns-%d", i+1), Node: at[0], Zone: at[1], Ready: true, Serving: true,
		}}
		var err error
		e.server, err = startDemoServer(zone, fmt.Sprintf("127.0.0.%d", 11+i), demoDelays[i])
		c.endpoints[i] = e
		errs = append(errs, err)
	}
	var err error
	c.resolver, err = startDemoServer(zone, "127.0.0.14", demoRecursion)
	if err = errors.Join(append(errs, err)...); err != nil {
		c.close()
		return nil, err
	}
	return c, c.publish()
}

func startDemoServer(zone *names.Zone, ip string, delay time.Duration) (*upstream.Server, error) {
	s, err := upstream.New(upstream.Config{
		Zone: zone, Addr: netip.AddrPortFrom(netip.MustParseAddr(ip), 0), Faults: upstream.Faults{Delay: delay},
	})
	if err != nil {
		return nil, err
	}
	return s, s.Start()
}

// local is the endpoint on the node of the demonstration.
func (c *demoCluster) local() *demoEndpoint { return c.endpoints[0] }

func (c *demoCluster) close() {
	for _, e := range c.endpoints {
		if e != nil && e.server != nil {
			e.server.Close()
		}
	}
	if c.resolver != nil {
		c.resolver.Close()
	}
}

// take does a step of the script.
func (c *demoCluster) take(ctx context.Context, step demoStep) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return step.do(ctx, c)
}

// conditions are the endpoints' states in the API.
func (c *demoCluster) conditions() (all [3]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.endpoints {
		all[i] = e.condition()
	}
	return all
}

// publish shows the endpoints as they are now.
func (c *demoCluster) publish() error {
	var shown []upstream.Endpoint
	for _, e := range c.endpoints {
		if !e.gone {
			e.Addr = e.server.Addr()
			shown = append(shown, e.Endpoint)
		}
	}
	return upstream.Publish(c.file, shown)
}

// condition is what a person would call the endpoint's state in the API.
func (e *demoEndpoint) condition() string {
	switch {
	case e.gone:
		return "gone"
	case e.Terminating:
		return "terminating"
	case e.Ready:
		return "ready"
	}
	return "not ready"
}

// demoStep is something that happens to the cluster at a point of the run.
type demoStep struct {
	at   float64 // share of the whole run, 0 to 1
	does string
	// fails names the way in which the local server stops answering while the
	// API still calls it ready; "" if it does not.
	fails string
	do    func(ctx context.Context, c *demoCluster) error
}

// demoPhase is a named part of the run, from one share of it to the next.
type demoPhase struct {
	name string
	from float64
}

// demoScript is the demonstration: what every CoreDNS pod goes through
// some day, all of it in one run.
func demoScript() ([]demoPhase, []demoStep) {
	phases := []demoPhase{{"steady", 0}, {"upgrade", 0.2}, {"crash", 0.4}, {"blackhole", 0.6}, {"back", 0.8}}
	return phases, []demoStep{
		{0.20, "upgrade: the API marks the local pod terminating; it goes on serving for a while", "", terminateLocal},
		{0.27, "upgrade: the old pod has gone", "", removeLocal},
		{0.32, "upgrade: the new pod is there and ready", "", readyLocal},
		{0.40, "crash: the local pod is killed, and the API does not know", "crash", crashLocal},
		{0.45, "crash: the kubelet has noticed: not ready", "", unreadyLocal},
		{0.52, "crash: restarted and ready", "", readyLocal},
		{0.60, "blackhole: the local pod takes queries and never answers; the API calls it ready all the time", "blackhole", blackholeLocal},
		{0.80, "back: the local pod answers again", "", healLocal},
	}
}

func terminateLocal(_ context.Context, c *demoCluster) error {
	e := c.local()
	e.Ready, e.Terminating = false, true
	return c.publish()
}

func removeLocal(_ context.Context, c *demoCluster) error {
	c.local().server.Close()
	c.local().gone = true
	return c.publish()
}

func readyLocal(_ context.Context, c *demoCluster) error {
	e := c.local()
	if err := e.server.Start(); err != nil {
		return err
	}
	e.gone, e.Ready, e.Serving, e.Terminating = false, true, true, false
	return c.publish()
}

func crashLocal(_ context.Context, c *demoCluster) error {
	c.local().server.Kill()
	return nil
}

func unreadyLocal(_ context.Context, c *demoCluster) error {
	e := c.local()
	e.Ready, e.Serving = false, false
	return c.publish()
}

func blackholeLocal(_ context.Context, c *demoCluster) error {
	return c.local().server.Set(upstream.Faults{Blackhole: true})
}

func healLocal(_ context.Context, c *demoCluster) error {
	return c.local().server.Set(upstream.Faults{Delay: demoDelays[0]})
}
