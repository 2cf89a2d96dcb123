package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// aclCorefile is a Corefile with the rules in its only block.
func aclCorefile(rules ...string) string {
	return ".:53 {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n acl {\n  " + strings.Join(rules, "\n  ") + "\n }\n}\n"
}

// What an acl says of clients comes to lists that hold for every name.
func TestCorefileACL(t *testing.T) {
	for rules, want := range map[string]string{
		"allow net 10.0.0.0/8 | block":                 "10.0.0.0/8 refuse",
		"allow net 10.0.0.0/8 fd00::/8 | drop net *":   "10.0.0.0/8 fd00::/8 drop",
		"block net 10.0.0.0/8":                         "not 10.0.0.0/8 refuse",
		"allow net 10.1.0.0/16 | block net 10.0.0.0/8": "10.1.0.0/16 0.0.0.0/0 ::/0 not 10.0.0.0/8 refuse",
		"block net 10.0.0.0/8 | allow net 10.1.0.0/16": "not 10.0.0.0/8 refuse",
		"block type * net 192.0.2.7":                   "not 192.0.2.7/32 refuse",
		"block net 10.1.2.3/8":                         "not 10.0.0.0/8 refuse",
		"block":                                        "not 0.0.0.0/0 ::/0 refuse",
		"block net ::/0":                               "0.0.0.0/0 not ::/0 refuse",
		"allow | block net 10.0.0.0/8":                 "refuse",
		"allow net 10.0.0.0/8":                         "refuse",
	} {
		c, err := readCorefileText(t, aclCorefile(strings.Split(rules, " | ")...), kubeDNS{})
		if err != nil {
			t.Errorf("%s: %v", rules, err)
			continue
		}
		words := texts(c.Clients.Allow)
		if len(c.Clients.Deny) > 0 {
			words = append(append(words, "not"), texts(c.Clients.Deny)...)
		}
		if got := strings.Join(append(words, c.Clients.Denied), " "); got != want {
			t.Errorf("%s: %s, want %s", rules, got, want)
		}
	}
}

// For types it is an answer of the block, whoever asks.
func TestCorefileACLForTypes(t *testing.T) {
	c, err := readCorefileText(t, aclCorefile("block type ANY AXFR net *", "filter type AAAA"), kubeDNS{})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", c.Routes[0].Rules.Answers)
	want := fmt.Sprintf("%+v", []AnswerConfig{{Types: []uint16{dns.TypeANY, dns.TypeAXFR}, RCode: dns.RcodeRefused}, {Types: []uint16{dns.TypeAAAA}}})
	if got != want || len(c.Clients.Allow)+len(c.Clients.Deny) > 0 {
		t.Errorf("%s, want %s; %+v", got, want, c.Clients)
	}
}

// What would change answers is a mistake with its line.
func TestCorefileACLMistakes(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("10.%d.0.0/16", i)
	}
	for text, want := range map[string]string{
		aclCorefile("block net 10.0.0.0/8", "drop net 192.0.2.0/24"): "Corefile:7: acl blocks some clients and drops others",
		aclCorefile("filter net 10.0.0.0/8"):                         "Corefile:6: acl filter for networks has no equivalent",
		aclCorefile("block type A net 10.0.0.0/8"):                   "Corefile:6: acl is for some types and some clients",
		aclCorefile("allow net 10.0.0.0/8", "block type ANY"):        "Corefile:7: acl is for some types and some clients",
		aclCorefile("drop type ANY"):                                 "Corefile:6: acl drop for types has no equivalent",
		aclCorefile("allow type A"):                                  "Corefile:6: acl allow for types has no equivalent",
		aclCorefile("blok"):                                          `Corefile:6: acl has no option "blok"; did you mean "block"?`,
		aclCorefile("block net nine"):                                `Corefile:6: acl block has "nine"`,
		aclCorefile("block 10.0.0.0/8"):                              `Corefile:6: acl block has "10.0.0.0/8"`,
		aclCorefile("block type NONE"):                               `Corefile:6: acl block has "NONE"`,
		aclCorefile("block net " + strings.Join(many, " ")):          "Corefile:6: acl blocks 65 networks; name at most 64",
		". {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n acl a.example {\n  block\n }\n}\n":                                                                                                        "Corefile:5: acl is for a part of . only",
		". {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n acl {\n  block net 10.0.0.0/8\n }\n}\na.example {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n}\n":                                    "Corefile:6: acl differs between the blocks for . and a.example.",
		". {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n acl {\n  block net 10.0.0.0/8\n }\n}\na.example {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n acl {\n  drop net 10.0.0.0/8\n }\n}\n": "Corefile:14: acl differs between the blocks for . and a.example.",
	} {
		_, err := readCorefileText(t, text, kubeDNS{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v, want %q", text, err, want)
		}
	}
	// A snippet is read twice, and what is wrong with it told once.
	_, err := readCorefileText(t, "(who) {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n acl {\n  blok\n }\n}\n. {\n import who\n}\na.example {\n import who\n}\n", kubeDNS{})
	if err == nil || strings.Count(err.Error(), "blok") != 1 {
		t.Errorf("a mistake in a snippet: %v", err)
	}
}

// The lists decide for every client as the first rule that fits does.
func TestCorefileACLDecidesTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	address := func() netip.Addr { // few, so that networks lie in each other
		return netip.AddrFrom4([4]byte{byte(10 + random.IntN(2)), byte(random.IntN(4)), byte(random.IntN(4)), byte(random.IntN(4))})
	}
	for range 300 {
		var rules []string
		var nets []netip.Prefix
		for range 1 + random.IntN(6) {
			net := netip.PrefixFrom(address(), 30-random.IntN(31)).Masked()
			nets = append(nets, net)
			rules = append(rules, []string{"allow", "block"}[random.IntN(2)]+" net "+net.String())
		}
		if random.IntN(2) == 0 {
			rules, nets = append(rules, "block"), append(nets, netip.MustParsePrefix("0.0.0.0/0"))
		}
		c, err := readCorefileText(t, aclCorefile(rules...), kubeDNS{})
		if err != nil {
			t.Fatalf("%q: %v", rules, err)
		}
		gate, err := newGate(&c)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			client := address()
			first := slices.IndexFunc(nets, func(n netip.Prefix) bool { return n.Contains(client) })
			want := first < 0 || strings.HasPrefix(rules[first], "allow")
			if got := gate == nil || !gate.Denies(client); got != want {
				t.Fatalf("%q lets %v in: %t, want %t; %+v", rules, client, got, want, c.Clients)
			}
		}
	}
}
