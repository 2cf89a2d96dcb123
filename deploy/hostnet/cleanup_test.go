package hostnet_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// picture is all of rules and addresses.
func picture(t *testing.T, s space.Space) string {
	t.Helper()
	times := regexp.MustCompile(`valid_lft \S+ preferred_lft \S+`)
	return ruleset(t, s) + times.ReplaceAllString(s.Run(t, "ip", "addr"), "")
}

// nodeCache puts the link and the rules of a node-cache on the host, as they are with
// a comment or as old releases wrote them.
func (n node) nodeCache(t *testing.T, comment bool, list ...string) {
	t.Helper()
	n.Run(t, "ip", "link", "add", "nodelocaldns", "type", "ifb")
	for _, a := range list {
		length := "/32"
		if addrs(a)[0].Is6() {
			length = "/128"
		}
		n.Address(t, "nodelocaldns", a+length)
	}
	n.nodeCacheTables(t, "nft", comment, list...)
}

// nodeCacheTables puts its rules, by one of the two programs that are called iptables.
func (n node) nodeCacheTables(t *testing.T, kind string, comment bool, list ...string) {
	t.Helper()
	for _, a := range list {
		command := "iptables-" + kind
		if addrs(a)[0].Is6() {
			command = "ip6tables-" + kind
		}
		for _, r := range nodeCacheRules() {
			words := strings.Fields(strings.ReplaceAll(r, "ADDR", a))
			if comment {
				text := map[bool]string{true: "skip conntrack", false: "allow DNS traffic"}[strings.Contains(r, "NOTRACK")]
				words = append(words, "-m", "comment", "--comment", "NodeLocal DNS Cache: "+text)
			}
			n.Run(t, command, words...)
		}
	}
}

func nodeCacheRules() []string {
	var out []string
	for _, p := range []string{"tcp", "udp"} {
		out = append(
			out,
			"-t raw -I PREROUTING -p "+p+" -d ADDR --dport 53 -j NOTRACK",
			"-t filter -I INPUT -p "+p+" -d ADDR --dport 53 -j ACCEPT",
			"-t raw -I OUTPUT -p "+p+" -s ADDR --sport 53 -j NOTRACK",
			"-t filter -I OUTPUT -p "+p+" -s ADDR --sport 53 -j ACCEPT",
			"-t raw -I OUTPUT -p "+p+" -d ADDR --dport 53 -j NOTRACK",
		)
	}
	return append(
		out,
		"-t raw -I OUTPUT -p tcp -d ADDR --dport 8080 -j NOTRACK",
		"-t raw -I OUTPUT -p tcp -s ADDR --sport 8080 -j NOTRACK",
	)
}

// others puts rules that are nobody's business, which look much like node-cache's.
func (n node) others(t *testing.T) {
	t.Helper()
	for _, r := range []string{
		"-t raw -A PREROUTING -p udp -d 10.9.9.9 --dport 53 -j NOTRACK",
		"-t raw -A PREROUTING -p udp -d 169.254.20.10 --dport 53 -m comment --comment mine -j NOTRACK",
		"-t raw -A PREROUTING -p udp -d 169.254.20.10 --dport 53 -m limit --limit 5/s -j NOTRACK",
		"-t raw -A PREROUTING -p udp -d 169.254.20.10 ! --dport 53 -j NOTRACK",
		"-t raw -A PREROUTING -d 169.254.20.10 -j NOTRACK",
		"-t raw -A OUTPUT -p udp -s 10.1.0.1 -d 169.254.20.10 --dport 53 -j NOTRACK",
		"-t filter -A INPUT -p tcp -d 169.254.20.10 --dport 53 -j DROP",
		"-t filter -A INPUT -p tcp -d 169.254.0.0/16 --dport 53 -j ACCEPT",
		"-t filter -A INPUT -i lo -p tcp -d 169.254.20.10 --dport 53 -j ACCEPT",
		"-t filter -A FORWARD -p tcp -d 169.254.20.10 --dport 53 -j ACCEPT",
		"-t filter -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
	} {
		n.Run(t, "iptables-nft", strings.Fields(r)...)
	}
	// The tables and chains that iptables makes stay when its rules go.
	for _, command := range []string{"iptables-nft", "ip6tables-nft"} {
		for _, place := range []string{"raw PREROUTING", "raw OUTPUT", "filter INPUT", "filter OUTPUT"} {
			table, chain, _ := strings.Cut(place, " ")
			n.Run(t, command, "-t", table, "-A", chain, "-j", "ACCEPT")
			n.Run(t, command, "-t", table, "-D", chain, "-j", "ACCEPT")
		}
	}
}

func TestCleanupLeavesNothing(t *testing.T) {
	for _, comment := range []bool{false, true} {
		for name, state := range map[string]hostnet.State{"link-local": linkLocal(), "service": service()} {
			t.Run(name+map[bool]string{true: ", rules with a comment"}[comment], func(t *testing.T) {
				n := node{Node: space.Node{Space: space.New(t)}}
				n.host = n.openHost(t)
				n.others(t)
				before := picture(t, n.Space)

				list := []string{own4, own6}
				if state.Mode == hostnet.Service {
					list = append(list, cluster4)
				}
				n.nodeCache(t, comment, list...)
				n.apply(t, state)
				found, err := n.host.Read(hostnet.State{})
				if err != nil {
					t.Fatal(err)
				}
				if want := len(list)*len(nodeCacheRules()) + 1; len(found.Leftovers) != want {
					t.Errorf("%d leftovers, want %d:\n%s", len(found.Leftovers), want, strings.Join(found.Leftovers, "\n"))
				}
				report, err := n.host.Cleanup(state, nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, picture(t, n.Space)); diff != "" {
					t.Errorf("rules and addresses (-before +after):\n%s\nreport %q", diff, report.Changed)
				}
				if again, err := n.host.Cleanup(state, nil); err != nil || len(again.Changed) != 0 {
					t.Errorf("the second Cleanup: %q, %v", again.Changed, err)
				}
			})
		}
	}
}

// TestLeftoversDisableTheFallbackOfTCP and their removal brings it back, with the
// addresses on our link all the while. UDP is tracked in spite of them.
func TestLeftoversDisableTheFallbackOfTCP(t *testing.T) {
	n := newNode(t)
	n.nodeCache(t, true, own4, own6)
	state := oneTarget(linkLocal())
	report := n.apply(t, state)
	if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, "nodelocaldns as well") {
		t.Errorf("notes %q, want the other link named", notes)
	}
	pod := client{space: n.Bridged}
	answers(t, "with leftovers", pod, "refused", []cell{{"tcp", dns(own4)}, {"tcp", dns(own6)}})
	answers(t, "with leftovers", pod, "coredns", []cell{{"udp", dns(own4)}, {"udp", dns(own6)}})
	if _, err := n.host.RemoveLeftovers(state); err != nil {
		t.Fatal(err)
	}
	answers(t, "without", pod, "coredns", cells(own4, own6))
	n.server(t, own4, own6)
	answers(t, "with a server", pod, "server", cells(own4, own6))
}

// TestLeftoversOfLegacy are rules that we do not delete: as long as they are there,
// there is no fallback of TCP.
func TestLeftoversOfLegacy(t *testing.T) {
	n := newNode(t)
	n.nodeCacheTables(t, "legacy", true, own4, own6)
	state := oneTarget(linkLocal())
	n.apply(t, state)
	if _, err := n.host.RemoveLeftovers(state); err != nil {
		t.Fatal(err)
	}
	pod := client{space: n.Bridged}
	answers(t, "with leftovers", pod, "refused", []cell{{"tcp", dns(own4)}, {"tcp", dns(own6)}})
	answers(t, "with leftovers", pod, "coredns", []cell{{"udp", dns(own4)}, {"udp", dns(own6)}})
	for _, command := range []string{"iptables-legacy", "ip6tables-legacy"} {
		n.Run(t, command, "-t", "raw", "-F")
	}
	answers(t, "without", pod, "coredns", cells(own4, own6))
}

func TestTheLinkOfNodeCacheMayBeOurs(t *testing.T) {
	n := node{Node: space.Node{Space: space.New(t)}}
	n.host = n.openHost(t)
	state := linkLocal()
	state.Link = "nodelocaldns"
	n.apply(t, state)
	if _, err := n.host.RemoveLeftovers(state); err != nil {
		t.Fatal(err)
	}
	found, err := n.host.Read(state)
	if err != nil {
		t.Fatal(err)
	}
	if missing := found.Missing(state); len(missing) > 0 || len(found.Leftovers) > 0 {
		t.Errorf("missing %q, leftovers %q", missing, found.Leftovers)
	}
}

// TestAForeignRuleThatWeCannotRead stops nothing, and is named.
func TestAForeignRuleThatWeCannotRead(t *testing.T) {
	n := node{Node: space.Node{Space: space.New(t)}}
	n.host = n.openHost(t)
	n.load(t, `table ip raw {
		chain PREROUTING { type filter hook prerouting priority -300; ct original ip saddr 192.0.2.1 accept; }
		chain OUTPUT { type filter hook output priority -300; ip daddr 169.254.20.10 udp dport 53 notrack; }
	}`)
	found, err := n.host.Read(linkLocal())
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Unread) != 1 || len(found.Leftovers) != 1 {
		t.Errorf("unread %q, leftovers %q: want one each", found.Unread, found.Leftovers)
	}
	if report, err := n.host.Cleanup(linkLocal(), nil); err != nil || len(report.Changed) != 1 || len(report.Notes) != 1 {
		t.Errorf("Cleanup: %+v, %v", report, err)
	}
}
