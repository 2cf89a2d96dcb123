package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// daemon is the nodens of one node.
type daemon struct {
	t       *testing.T
	node    int
	place   place
	at      netip.AddrPort // where pods ask
	admin   netip.AddrPort
	process *space.Process
	http    http.Client
}

// outside is a route for all names that are not the cluster's, to no more
// servers than given.
func outside(servers ...netip.AddrPort) string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("- zones: [\".\"]\n  servers: [%s]\n", strings.Join(list, ", "))
}

// startNodens starts the nodens of a node and waits until it is ready. budget
// is the longest that a query of the cluster may take; more is further routes.
func (c *cluster) startNodens(node int, budget time.Duration, more string) *daemon {
	c.t.Helper()
	d := &daemon{t: c.t, node: node, place: c.ground.node(node), at: c.ground.listen(node), admin: c.ground.admin(node)}
	d.http = http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: d.dial}}
	path := filepath.Join(c.dir, fmt.Sprintf("nodens-%d.yaml", node))
	write(c.t, path, fmt.Sprintf(`version: v1
listen: [%q]
admin: {address: %q}
node: {name: n%d, zone: %s}
routes:
- zones: [cluster.local, in-addr.arpa, ip6.arpa]
  topology: {file: %q, namespace: kube-system, service: kube-dns}
  timeout: %v
%slog: {level: warn, format: console}
`, d.at, d.admin, node, zoneOf(node), c.file(node), budget, more))
	d.process = d.place.start(c.t, nodens, "serve", "-config", path)
	waitFor(c.t, fmt.Sprintf("nodens of node %d", node), 20*time.Second, func() bool {
		if !d.process.Running() {
			c.t.Fatalf("nodens has ended:\n%s", d.process.Said())
		}
		return asks(c.ground.client(node), d.at) == nil
	})
	return d
}

func (d *daemon) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = d.place.do(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// status is what of the status report these tests read.
type status struct {
	Routes []struct {
		Served []struct {
			Tier    string
			Replies uint64
			tierEvents
		}
		Servers []server
	}
	Rates   struct{ Total map[string]uint64 }
	Listens []struct {
		Dropped uint64
		Reasons []string
	}
}

// tierEvents are what happened in a tier beside replies.
type tierEvents struct{ Hedges, Spills, Suspicions, Ejections uint64 }

// server is one server of a route.
type server struct {
	Tier, Address, State, Why string
	Healthy                   bool
	Sent, Forced, Failed      uint64
}

// status asks until it is told: a daemon answers queries a moment before it listens
// for HTTP, and on a busy machine one request may run into its deadline.
func (d *daemon) status() status {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s, err := d.askStatus()
		if err == nil && len(s.Routes) > 0 {
			return s
		}
		if time.Now().After(end) {
			d.t.Fatalf("the status of node %d: %d routes, error %v\n%s", d.node, len(s.Routes), err, d.process.Said())
		}
	}
}

func (d *daemon) askStatus() (s status, err error) {
	response, err := d.http.Get(fmt.Sprintf("http://%v/statusz?format=json", d.admin))
	if err != nil {
		return s, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&s)
	return s, err
}

// served is the replies to the cluster's route by tier.
func (s status) served() map[string]uint64 {
	out := make(map[string]uint64)
	for _, tier := range s.Routes[0].Served {
		out[tier.Tier] = tier.Replies
	}
	return out
}

// share is the part of the replies since before that came from a tier.
func (s status) share(before status, tier string) float64 {
	was, now := before.served(), s.served()
	var all uint64
	for t := range now {
		all += now[t] - was[t]
	}
	return float64(now[tier]-was[tier]) / float64(max(all, 1))
}

// at finds a server by its address.
func (s status) at(address netip.AddrPort) server {
	for _, server := range s.Routes[0].Servers {
		if server.Address == address.String() {
			return server
		}
	}
	return server{}
}

// suspicions are how many servers of all tiers but one were suspected.
func (s status) suspicions(except string) (n uint64) {
	for _, tier := range s.Routes[0].Served {
		if tier.Tier != except {
			n += tier.Suspicions
		}
	}
	return n
}

// othersHealthy tells whether all servers but one are in use.
func (s status) othersHealthy(except netip.AddrPort) bool {
	for _, server := range s.Routes[0].Servers {
		if server.Address != except.String() && !server.Healthy {
			return false
		}
	}
	return true
}

// events are those of all tiers.
func (s status) events() (all tierEvents) {
	for _, tier := range s.Routes[0].Served {
		all.Hedges += tier.Hedges
		all.Spills += tier.Spills
		all.Suspicions += tier.Suspicions
		all.Ejections += tier.Ejections
	}
	return all
}

// shareOf is the part of the questions put to servers since before that went to one.
func (s status) shareOf(before status, at netip.AddrPort) float64 {
	var all uint64
	for _, server := range s.Routes[0].Servers {
		all += server.Sent
	}
	for _, server := range before.Routes[0].Servers {
		all -= server.Sent
	}
	return float64(s.at(at).Sent-before.at(at).Sent) / float64(max(all, 1))
}

// dropped says which queries were dropped and why.
func (s status) dropped() string {
	var why []string
	for _, l := range s.Listens {
		why = append(why, l.Reasons...)
	}
	return strings.Join(why, ", ")
}
