package hostnet_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// lacking is a kernel that does not know a word of nft: for a word that no kernel knows
// every kernel has the same answer. With a key it knows the word and not that key of it,
// which is the first attribute of the expression.
func lacking(word string, key byte) func([]byte) []byte {
	name := []byte(word + "\x00")
	return func(message []byte) []byte {
		at := bytes.Index(message, name)
		if at < 0 {
			return message
		}
		out := bytes.Clone(message)
		if key == 0 {
			copy(out[at:], strings.ToUpper(word))
			return out
		}
		if data := bytes.Index(out[at:], []byte{0, 0, 0, key}); data > 0 {
			out[at+data+3] = 99
		}
		return out
	}
}

// TestOlderKernels: what a kernel lacks is said in one sentence, nothing is left half made,
// and the addresses are there all the same, so that whoever listens there answers.
func TestOlderKernels(t *testing.T) {
	const socketWildcard = 2 // NFT_SOCKET_WILDCARD
	for name, c := range map[string]struct {
		word string
		key  byte
		want error
	}{
		"before 5.2: no nat in the family inet": {"nat", 0, unix.ENOENT},
		"before 5.10: no socket wildcard":       {"socket", socketWildcard, unix.EOPNOTSUPP},
		"without nft_socket":                    {"socket", 0, unix.ENOENT},
		"without nft_hash":                      {"hash", 0, unix.ENOENT},
		"without nft_masq":                      {"masq", 0, unix.ENOENT},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.host.Older(lacking(c.word, c.key))
			_, applied := n.host.Apply(linkLocal())
			for what, err := range map[string]error{"Try": n.host.Try(linkLocal()), "Apply": applied} {
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "this kernel lacks a part of what is needed") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if rules := ruleset(t, n.Space); strings.Contains(rules, "nodens") {
				t.Errorf("left is:\n%s", rules)
			}
			n.server(t, own4, own6)
			for _, cell := range cells(own4, own6) {
				if got := (client{space: n.Bridged}).ask(t, cell.proto, cell.addr); got != "server" {
					t.Errorf("%s %s: %q answers", cell.proto, cell.addr, got)
				}
			}
		})
	}
}

// TestWithoutIPv6: a node whose IPv6 is off has all of IPv4, and is told what it cannot have.
func TestWithoutIPv6(t *testing.T) {
	n := node{Node: space.Node{Space: space.New(t)}}
	n.Sysctl(t, "ipv6/conf/all/disable_ipv6", "1")
	n.Sysctl(t, "ipv6/conf/default/disable_ipv6", "1")
	n.host = n.openHost(t)
	both := linkLocal()
	if _, err := n.host.Apply(both); !errors.Is(err, hostnet.ErrLink) || !strings.Contains(err.Error(), own6+" cannot be put on link nodens (is IPv6 off?)") || strings.Contains(err.Error(), "\n") {
		t.Errorf("with an address of IPv6: %v", err)
	}
	if links := n.Run(t, "ip", "-o", "addr", "show", "nodens"); !strings.Contains(links, own4+"/32") || strings.Contains(links, own6) {
		t.Errorf("addresses:\n%s", links)
	}
	alone := linkLocal()
	alone.Own = addrs(own4)
	n.apply(t, alone)
	if again := n.apply(t, alone); len(again.Changed) > 0 {
		t.Errorf("the second time: %q", again.Changed)
	}
}

// TestWithoutNetfilter: a node whose kernel has nothing of netfilter has its link and its
// addresses, is told in one sentence what it cannot have, and is cleaned up.
func TestWithoutNetfilter(t *testing.T) {
	s := space.New(t)
	err := s.Try(func() error {
		if err := space.DenyNetfilter(); err != nil {
			return err
		}
		host, err := hostnet.New(hostnet.Config{})
		if err != nil {
			return err
		}
		defer host.Close()
		_, applied := host.Apply(linkLocal())
		for what, err := range map[string]error{"Try": host.Try(linkLocal()), "Apply": applied} {
			if err == nil || !strings.Contains(err.Error(), "this kernel lacks a part of what is needed") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", what, err)
			}
		}
		found, err := host.Read(linkLocal())
		if want := []string{"table nodens_v1: missing"}; err != nil || !slices.Equal(found.Missing(linkLocal()), want) {
			t.Errorf("it lacks %q, %v, want %q", found.Missing(linkLocal()), err, want)
		}
		if others, err := host.Others(); err != nil || len(others.Proxies)+len(others.Firewalls) > 0 {
			t.Errorf("others: %+v, %v", others, err)
		}
		if err := host.Hold(hostnet.Alive, time.Second, addrs(own4)...); err == nil {
			t.Error("a set without a table")
		}
		over, end := context.WithCancel(t.Context())
		end()
		if err := host.Watch(over, func() {}); err != nil {
			t.Errorf("watch: %v", err)
		}
		_, err = host.Cleanup(linkLocal(), nil)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if links := s.Run(t, "ip", "-o", "link", "show"); strings.Contains(links, "nodens") {
		t.Errorf("after the clean-up:\n%s", links)
	}
}
