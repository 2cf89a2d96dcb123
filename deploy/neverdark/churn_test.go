package neverdark

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// growth is what should not grow.
type growth struct {
	goroutines, descriptors, tracked, rules, addresses int
	rss                                                int // bytes
}

func (g growth) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d tracked connections, %d lines of rules, %d addresses, %d MB",
		g.goroutines, g.descriptors, g.tracked, g.rules, g.addresses, g.rss>>20)
}

// measure looks at a nodens and at the node.
func (n *node) measure(d *daemon) growth {
	n.t.Helper()
	g := growth{
		descriptors: d.descriptors(), rss: d.rss(), rules: strings.Count(n.Run(n.t, "nft", "list", "ruleset"), "\n"),
		addresses: strings.Count(n.Run(n.t, "ip", "-o", "addr"), "\n"),
	}
	text, err := n.get("/debug/pprof/goroutine?debug=1")
	if err != nil {
		n.t.Fatal(err)
	}
	_, _ = fmt.Sscanf(text, "goroutine profile: total %d", &g.goroutines)
	n.In(n.t, func() error {
		data, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count")
		g.tracked, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return err
	})
	return g
}

// TestChurn changes endpoints and configuration all the time, under load.
func TestChurn(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	// So that the table of connections shows a leak within seconds.
	for _, key := range []string{"udp_timeout", "udp_timeout_stream", "tcp_timeout_time_wait", "tcp_timeout_close"} {
		n.Sysctl(t, "netfilter/nf_conntrack_"+key, "2")
	}
	d := n.start()
	tr := n.ask(n.fromPods(own4, own6)...)
	var before growth
	changes := 0
	length := space.Form(15*time.Second, 30*time.Minute)
	for began := time.Now(); time.Since(began) < length; changes++ {
		n.showEndpoints(changes%2 == 0)
		if changes%5 == 0 {
			n.configure(fmt.Sprintf("stopGrace: %ds\n", 5+changes%2))
		}
		time.Sleep(200 * time.Millisecond)
		if before.rss == 0 && time.Since(began) > length/3 {
			before = n.measure(d)
		}
	}
	n.showEndpoints(true)
	time.Sleep(time.Second)
	after := n.measure(d)
	tr.stop().figure(fmt.Sprintf("%v of churn, %d changes of endpoints", length, changes), "before %v; after %v", before, after)
	tr.expectNone("", "")
	for _, c := range []struct {
		what          string
		before, after int
		slack         float64
	}{
		{"goroutines", before.goroutines, after.goroutines, 1.3},
		{"descriptors", before.descriptors, after.descriptors, 1.3},
		{"tracked connections", before.tracked, after.tracked, 1.5},
		{"rules", before.rules, after.rules, 1.05},
		{"addresses", before.addresses, after.addresses, 1},
		{"memory", before.rss, after.rss, 1.3},
	} {
		if float64(c.after) > float64(c.before)*c.slack+20 {
			t.Errorf("%s grew from %d to %d", c.what, c.before, c.after)
		}
	}
}

// picture is all of rules and addresses, without what ends by itself.
func (n *node) picture() string {
	held := regexp.MustCompile(`\s*elements = \{[^}]* expires [^}]*\}`)
	times := regexp.MustCompile(`valid_lft \S+ preferred_lft \S+`)
	counts := regexp.MustCompile(`packets \d+ bytes \d+`)
	return held.ReplaceAllString(counts.ReplaceAllString(n.Run(n.t, "nft", "list", "ruleset"), ""), "") + times.ReplaceAllString(n.Run(n.t, "ip", "addr"), "")
}

// TestManyRestarts leave nothing behind, and clean-up leaves nothing at all.
func TestManyRestarts(t *testing.T) {
	n := newNodeAlone(t, hostnet.LinkLocal)
	bare := n.picture()
	n.guard = n.startGuard()
	guard := &daemon{n.guard, n}
	d := n.start()
	warmUp()
	d.stop()
	// It follows the servers itself when nobody tells it of them, at the end too.
	waitFor(t, "the guard follows the servers", 60*time.Second, func() bool { return strings.Contains(guard.Said(), "the guard follows them itself") })
	time.Sleep(time.Second)
	rules, descriptors := n.picture(), guard.descriptors()
	restarts := space.Form(10, 1000)
	for range restarts {
		d := n.start()
		d.stop()
	}
	for limit := time.Now().Add(10 * time.Second); n.picture() != rules; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("after %d restarts (-before +after):\n%s", restarts, cmp.Diff(rules, n.picture()))
		}
	}
	// More are open while it is at work.
	waitFor(t, "the guard has no more descriptors open than before", 60*time.Second, func() bool { return guard.descriptors() <= descriptors })
	guard.stop()
	if _, err := n.host.Cleanup(n.state(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bare, n.picture()); diff != "" {
		t.Errorf("after clean-up (-before +after):\n%s", diff)
	}
	keep(fmt.Sprintf("%d restarts, then clean-up", restarts), "rules, addresses and the guard's descriptors as before")
}
