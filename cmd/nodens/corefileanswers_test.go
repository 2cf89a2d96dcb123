package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Rewrites that CoreDNS would do differently are mistakes or notes with their line.
func TestCorefileRewrites(t *testing.T) {
	for text, want := range map[string]string{
		". {\n rewrite name suffix x.org b.com\n forward . 192.0.2.1\n}\n":                                                   "Corefile:2: rewrite name suffix x.org also fits",
		". {\n rewrite continue name exact a b\n rewrite name exact b c\n forward . 192.0.2.1\n}\n":                          "Corefile:2: rewrite continue goes on",
		"x.org {\n rewrite name suffix x.org b.com\n rewrite continue name exact a.x.org b.x.org\n forward . 192.0.2.1\n}\n": "",
	} {
		_, err := readCorefileText(t, text, kubeDNS{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\ngives %v, want %q", text, err, want)
		}
	}
	c, err := readCorefileText(t, ". {\n rewrite name suffix .a.com .b.com\n forward . 192.0.2.1\n}\n", kubeDNS{})
	if err != nil || !slices.ContainsFunc(c.Notes, func(n string) bool {
		return strings.HasPrefix(n, "Corefile:2: rewrite name suffix takes a.com. itself, too")
	}) {
		t.Errorf("%q, %v", c.Notes, err)
	}
}

// Answers of hosts and template have the TTL that CoreDNS's cache gives them.
func TestCorefileTTLOfRules(t *testing.T) {
	const rules = " hosts {\n  10.6.6.6 x.example\n  fallthrough\n }\n template IN A y.example {\n  answer \"{{ .Name }} 99 IN A 192.0.2.1\"\n }\n forward . 192.0.2.1\n}\n"
	for cache, want := range map[string]struct {
		hosts  time.Duration
		record string
	}{
		"cache 30": {30 * time.Second, "30 A 192.0.2.1"},
		"cache":    {time.Hour, "99 A 192.0.2.1"},
		"minimal":  {time.Hour, "99 A 192.0.2.1"},
	} {
		c, err := readCorefileText(t, ". {\n "+cache+"\n"+rules, kubeDNS{})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Routes[0].Rules
		if r.Hosts.TTL != want.hosts || r.Answers[0].Records[0] != want.record {
			t.Errorf("%s: %v, %q", cache, r.Hosts.TTL, r.Answers[0].Records)
		}
		if r.Hosts.File != "/etc/hosts" {
			t.Errorf("%s: entries stand beside the file %q, not that of the system", cache, r.Hosts.File)
		}
	}
}

// The servers of a file are asked in the place where it stands.
func TestCorefileOrderOfFiles(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	write(t, one, "nameserver 192.0.2.1\nnameserver 192.0.2.2\n")
	write(t, two, "nameserver 192.0.2.4\n")
	c, err := readCorefileText(t, ". {\n forward . "+one+" 192.0.2.3 "+two+" 192.0.2.5 {\n  policy sequential\n }\n}\n", kubeDNS{})
	if err != nil {
		t.Fatal(err)
	}
	want := "192.0.2.1:53 192.0.2.2:53 192.0.2.3:53 192.0.2.4:53 192.0.2.5:53"
	if got := addressList(c.Routes[0].Servers); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
