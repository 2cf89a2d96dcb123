package hostnet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// TestOthersMeddle checks that what somebody else does is read, told by Watch, and
// repaired by the next Apply.
func TestOthersMeddle(t *testing.T) {
	for _, c := range []struct{ name, do, missing string }{
		{"flush of everything", "nft flush ruleset", "table nodens_v1: missing"},
		{"flush of the table", "nft flush table inet nodens_v1", "missing: rule 0 of chain arrive is"},
		{"flush of a chain", "nft flush chain inet nodens_v1 hide", "missing: rule 0 of chain hide is"},
		{"a rule before ours", "nft insert rule inet nodens_v1 arrive accept", "not wanted: rule 2 of chain arrive is"},
		{"a rule after ours", "nft add rule inet nodens_v1 fallback_udp4 drop", "not wanted: rule 2 of chain fallback_udp4 is"},
		{"a chain more", "nft add chain inet nodens_v1 other", "not wanted: chain other"},
		{"link down", "ip link set nodens down", "link nodens: down"},
		{"link gone", "ip link del nodens", "link nodens: missing"},
		{"address gone", "ip addr del 169.254.20.10/32 dev nodens", "missing: address 169.254.20.10"},
		{"address of IPv6 gone", "ip addr del fd00:90de:d95::1/128 dev nodens", "missing: address fd00:90de:d95::1"},
		{"address more", "ip addr add 192.0.2.1/32 dev nodens", "not wanted: address 192.0.2.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := node{Node: space.Node{Space: space.New(t)}}
			n.host = n.openHost(t)
			n.apply(t, linkLocal())
			told := n.watch(t)
			words := strings.Fields(c.do)
			n.Run(t, words[0], words[1:]...)
			select {
			case <-told:
			case <-time.After(time.Minute):
				t.Error("Watch said nothing")
			}
			found, err := n.host.Read(linkLocal())
			if err != nil {
				t.Fatal(err)
			}
			if missing := strings.Join(found.Missing(linkLocal()), "\n"); !strings.Contains(missing, c.missing) {
				t.Errorf("missing:\n%s\nwant %q", missing, c.missing)
			}
			n.apply(t, linkLocal())
			if found, err = n.host.Read(linkLocal()); err != nil {
				t.Fatal(err)
			}
			if missing := found.Missing(linkLocal()); len(missing) > 0 {
				t.Errorf("still missing after Apply: %q", missing)
			}
		})
	}
}

// watch returns a channel on which a change is told.
func (n node) watch(t *testing.T) <-chan struct{} {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	told, ended := make(chan struct{}, 16), make(chan error, 1)
	ready := make(chan struct{}, 16)
	go func() {
		ended <- n.host.Watch(ctx, func() {
			ready <- struct{}{}
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Watch ends with %v", err)
		}
	})
	n.waitFor(t, ready, told)
	return told
}

// waitFor makes changes until the watch tells one, and then drains it.
func (n node) waitFor(t *testing.T, ready, told <-chan struct{}) {
	t.Helper()
	for range 1000 {
		n.Run(t, "ip", "link", "set", "nodens", "mtu", "1400")
		n.Run(t, "ip", "link", "set", "nodens", "mtu", "1500")
		select {
		case <-ready:
			time.Sleep(200 * time.Millisecond) // the rest of the burst
			for len(told) > 0 {
				<-told
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("the watch does not start")
}

// TestSetsAreNotTold because they are renewed all the time, by ourselves.
func TestSetsAreNotTold(t *testing.T) {
	n := node{Node: space.Node{Space: space.New(t)}}
	n.host = n.openHost(t)
	n.apply(t, linkLocal())
	told := n.watch(t)
	for range 5 {
		n.hold(t, hostnet.Alive, own4, own6)
	}
	n.Run(t, "nft", "add", "table", "inet", "somebody")
	n.Run(t, "nft", "add", "chain", "inet", "somebody", "other")
	select {
	case <-told:
		t.Error("Watch told of a renewal or of a foreign table")
	case <-time.After(300 * time.Millisecond):
	}
}

func TestOtherLayoutsAreReplaced(t *testing.T) {
	n := node{Node: space.Node{Space: space.New(t)}}
	n.host = n.openHost(t)
	for _, name := range []string{"nodens_v0", "nodens_v9"} {
		n.Run(t, "nft", "add", "table", "inet", name)
		n.Run(t, "nft", "add chain inet "+name+" x { type filter hook prerouting priority -305; policy drop; }")
	}
	n.apply(t, linkLocal())
	if rules := ruleset(t, n.Space); strings.Contains(rules, "nodens_v0") || strings.Contains(rules, "nodens_v9") {
		t.Errorf("other layouts are still there:\n%s", rules)
	}
	n.Run(t, "nft", "add", "table", "inet", "nodens_v2")
	if _, err := n.host.Cleanup(hostnet.State{}, nil); err != nil {
		t.Fatal(err)
	}
	if rules := ruleset(t, n.Space); rules != "" {
		t.Errorf("after Cleanup:\n%s", rules)
	}
}

func TestWhatBelongsToOthersIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup []string
		state hostnet.State
	}{
		{"IPVS", []string{"ip link add kube-ipvs0 type ifb", "ip addr add 10.96.0.10/32 dev kube-ipvs0"}, service()},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := node{Node: space.Node{Space: space.New(t)}}
			n.host = n.openHost(t)
			for _, s := range c.setup {
				words := strings.Fields(s)
				n.Run(t, words[0], words[1:]...)
			}
			before := picture(t, n.Space)
			if _, err := n.host.Apply(c.state); !errors.Is(err, hostnet.ErrForeign) {
				t.Errorf("Apply: %v, want ErrForeign", err)
			}
			if _, err := n.host.Cleanup(c.state, nil); err != nil {
				t.Errorf("Cleanup: %v", err)
			}
			if after := picture(t, n.Space); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// TestBesideAForeignLinkThereIsAFallback for pods, and the link stays as it is.
func TestBesideAForeignLinkThereIsAFallback(t *testing.T) {
	for _, c := range []struct{ name, link string }{
		{"of another kind", "veth peer name other"},
		{"of the right kind, made by somebody", "bridge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t)
			n.Run(t, "ip", strings.Fields("link add nodens type "+c.link)...)
			link := n.Run(t, "ip", "addr", "show", "dev", "nodens")
			if _, err := n.host.Apply(oneTarget(linkLocal())); !errors.Is(err, hostnet.ErrForeign) || !errors.Is(err, hostnet.ErrLink) {
				t.Errorf("Apply: %v, want ErrForeign and ErrLink", err)
			}
			pod := client{space: n.Bridged}
			answers(t, "beside the link", pod, "coredns", cells(own4, own6))
			if _, err := n.host.Cleanup(linkLocal(), nil); err != nil {
				t.Errorf("Cleanup: %v", err)
			}
			if after := n.Run(t, "ip", "addr", "show", "dev", "nodens"); after != link {
				t.Errorf("before:\n%s\nafter:\n%s", link, after)
			}
			n.Run(t, "ip", "link", "del", "nodens")
			n.apply(t, linkLocal())
			n.server(t, own4, own6)
			answers(t, "without it", pod, "server", cells(own4, own6))
		})
	}
}

func TestTheKindOfTheLinkIsReported(t *testing.T) {
	n := node{Node: space.Node{Space: space.New(t)}}
	n.host = n.openHost(t)
	kind := n.apply(t, linkLocal()).Kind
	switch kind {
	case "dummy", "ifb", "bridge":
	default:
		t.Errorf("kind %q", kind)
	}
	if addr := n.Run(t, "ip", "-d", "addr", "show", "nodens"); !strings.Contains(addr, kind) || strings.Contains(addr, "tentative") {
		t.Errorf("want kind %s, and no address that waits for detection:\n%s", kind, addr)
	}
}
