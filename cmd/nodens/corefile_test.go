package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// nodeEnviron is the environment of a pod in kube-system.
func nodeEnviron() []string {
	return []string{
		"COREDNS_SERVICE_HOST=10.233.0.3", "KUBE_DNS_SERVICE_HOST=10.96.0.10", "KUBE_DNS_UPSTREAM_SERVICE_HOST=10.96.0.11",
		"NODE_NAME=node-1",
	}
}

func nodeOptions(path string) corefileOptions {
	return corefileOptions{
		Path: path, LocalIPs: []netip.Addr{netip.MustParseAddr("169.254.20.10")}, Upstream: "kube-dns-upstream",
		Namespace: "kube-system", Environ: nodeEnviron(), IPv6: true,
	}
}

func readCorefileText(t *testing.T, text string, kube kubeDNS) (Config, error) {
	t.Helper()
	return readCorefile(nodeOptions("Corefile"), []byte(text), kube)
}

// Every Corefile of the corpus comes to the configuration beside it, and that is
// read into what the Corefile was read into. NODENS_UPDATE=1 writes the expected files
// anew.
func TestConvert(t *testing.T) {
	files, err := filepath.Glob("testdata/corefiles/*.corefile")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d Corefiles found: %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, err := loadCorefile(nodeOptions(path), kubeDNS{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := yamlOf(&c)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(path, ".corefile") + ".yaml"
			if os.Getenv("NODENS_UPDATE") != "" {
				write(t, golden, string(text))
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			o := nodeOptions("")
			again, err := readConfig(path, text, o.variable)
			if err != nil {
				t.Fatalf("what convert prints is refused: %v\n%s", err, text)
			}
			if diff := cmp.Diff(c, again, sameConfig()...); diff != "" {
				t.Errorf("what convert prints is read as something else (-Corefile +YAML):\n%s", diff)
			}
		})
	}
}

// sameConfig compares all but where a configuration came from.
func sameConfig() cmp.Options {
	return cmp.Options{
		byValue(),
		cmpopts.IgnoreFields(Config{}, "Path", "Hash", "Notes", "Imports"),
		cmpopts.IgnoreFields(RouteConfig{}, "Note"),
	}
}

// All mistakes are told at once, each with its line and what to do.
func TestCorefileMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"several": {
			".:53 {\n forwrd . 192.0.2.1\n cache 0\n bind nowhere0\n whoami\n}\nb.example:x {\n forward . https://192.0.2.1\n}\n",
			[]string{
				`Corefile:2: there is no directive "forwrd"; did you mean "forward"?`,
				`Corefile:3: cache says "0", which is no number of seconds from 1 on; write a whole number`,
				`Corefile:4: bind names "nowhere0", which is neither an address nor an interface`,
				`Corefile:5: whoami has no equivalent, and answers would differ without it`,
				`Corefile:7: "b.example:x" has no port behind the colon`,
				`Corefile:8: forward names "https://192.0.2.1": https is not spoken here`,
			},
		},
		"an open brace beside other mistakes": {
			"a.example {\n forward . nowhere\n}\n.:53 {\n",
			[]string{`Corefile:2: forward names "nowhere"`, "this is no Corefile"},
		},
		"nothing":                 {"", []string{"Corefile:1: there is no server block"}},
		"comments":                {"# nothing\n", []string{"Corefile:1: there is no server block"}},
		"a file not found":        {"import nowhere.conf\n", []string{"this is no Corefile: File to import not found"}},
		"a zone twice":            {"a:53 {\n bind 127.0.0.1\n forward . 192.0.2.1\n}\na {\n bind 127.0.0.2\n forward . 192.0.2.2\n}\n", []string{`Corefile:5: the zone "a." is in two blocks; keep it in one (the first is on line 1)`}},
		"an option unknown":       {". {\n forward . 192.0.2.1 {\n  force_udp\n }\n cache {\n  sucess 1\n }\n}\n", []string{`Corefile:3: forward has no option "force_udp"; did you mean "force_tcp"?`, `Corefile:6: cache has no option "sucess"; did you mean "success"?`}},
		"a loop":                  {". {\n bind 127.0.0.1\n forward . 127.0.0.1\n}\n", []string{"Corefile:3: forward names 127.0.0.1:53, where nodens itself listens (127.0.0.1:53)"}},
		"a name in letters":       {"bücher.example {\n forward . 192.0.2.1\n}\n", []string{"Corefile:1: ", "it has characters that no query has"}},
		"a scheme":                {"tls://.:853 {\n forward . 192.0.2.1\n}\n", []string{"Corefile:1: the block serves tls://, which is not spoken here"}},
		"the installer's":         {"__PILLAR__DNS__DOMAIN__:53 {\n forward . 192.0.2.1\n}\n", []string{"Corefile:1: ", "the placeholder is replaced by whoever installs"}},
		"a private authority":     {". {\n forward . tls://192.0.2.1 {\n  tls /ca.pem\n }\n}\n", []string{"Corefile:3: tls names files"}},
		"an address for metrics":  {". {\n forward . 192.0.2.1\n prometheus nine\n health 1:2:3\n}\n", []string{`Corefile:3: prometheus is to be at "nine"`, `Corefile:4: health is to be at "1:2:3"`}},
		"bind without variable":   {"(s) {\n forward . {$NO_SERVER}\n}\n. {\n bind {$NO_SUCH}\n import s\n}\n", []string{`Corefile:5: bind names "", which is neither an address nor an interface of this machine with one; write an IP address; the variable NO_SUCH is not set`, "Corefile:2: forward names ", "the variable NO_SERVER is not set"}},
		"a block of an import":    {"(s) {\n bind 127.0.0.1\n forward . 192.0.2.1\n}\na.test {\n import s\n}\na.test {\n import s\n}\n", []string{`Corefile:8: the zone "a.test." is in two blocks`, "the first is on line 5"}},
		"a Service beside others": {". {\n forward . __PILLAR__CLUSTER__DNS__ 192.0.2.1\n}\n", []string{"Corefile:2: forward names a Service beside other servers"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readCorefileText(t, test.text, kubeDNS{})
			if err == nil {
				t.Fatal("it is taken")
			}
			if strings.Contains(err.Error(), "names no address") && !slices.Contains(test.want, "names no address") {
				t.Errorf("it says of one address two things:\n%v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it says\n%v\nand not %q", err, want)
				}
			}
		})
	}
}

// What has no equivalent and changes no answer is one line with its number.
func TestCorefileNotes(t *testing.T) {
	c, err := readCorefileText(t, `.:53 {
 bind 127.0.0.1
 log
 trace
 pprof
 cache 100000 {
  keepttl
  disable denial
  prefetch 3 1m
 }
 forward . 192.0.2.1 {
  max_concurrent 100
  policy round_robin
  except deny.example
 }
 prometheus {$NOT_SET}:9253
}
a.example:53 {
 forward . 192.0.2.1
}
`, kubeDNS{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Corefile:1: the block for . is not bound to every address that is served; it is answered at 0.0.0.0:53 [::]:53 too",
		"Corefile:3: log has a format and a bound of its own; at most 100 queries a second are written",
		"Corefile:4: trace has no equivalent; there are metrics for the time of servers and replies",
		"Corefile:5: pprof is to be at 127.0.0.1:6053; profiles are at http://127.0.0.1:9253/debug/pprof/, for this machine",
		"Corefile:6: cache says 100000 seconds; the most there is counts: 24h",
		"Corefile:7: keepttl has no equivalent; the TTL of an answer counts down while it is kept",
		"Corefile:8: disable denial has no equivalent; what it names is kept for 1s, for all names of the block",
		"Corefile:9: duration and percentage of prefetch have no equivalent; hits count over the life of an answer, which is renewed in its last tenth",
		"Corefile:11: except keeps deny.example. from being forwarded; unless another block or forward has it, it is answered with NXDOMAIN, where CoreDNS says SERVFAIL",
		"Corefile:12: max_concurrent bounds one forward; the bound of every route is limits.upstreamInFlight, above which clients get SERVFAIL, not REFUSED",
		"Corefile:13: policy round_robin has no equivalent; servers are chosen at random, which spreads the same",
		"Corefile:16: the variable NOT_SET is not set; nothing stands in its place",
		"Corefile:18: the block for a.example. has no cache; answers are kept for 1s all the same, so that identical queries are asked once",
		"Corefile:18: the block for a.example. is not bound to every address that is served; it is answered at 127.0.0.1:53 too",
	}
	if diff := cmp.Diff(want, c.Notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A profile is where the metrics are, and every name of a block is answered at each of its
// ports.
func TestCorefileNotesOfPlaces(t *testing.T) {
	for text, want := range map[string]string{
		". {\n bind 127.0.0.1\n pprof\n forward . 192.0.2.1\n cache\n prometheus :9153\n}\n":                            "Corefile:3: pprof is to be at 127.0.0.1:6053; profiles are at http://127.0.0.1:9153/debug/pprof/, for this machine",
		"# ports\na.test:53 b.test:54 {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n}\n":                            "Corefile:2: the block gives its zones different ports; each zone is answered at all of them: 53 54",
		"a.test:53 a.test:54 b.test:53 b.test:54 {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n}\n":                 "",
		"10.0.0.0/8:53 10.0.0.0/8:54 {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n}\n":                             "",
		"10.0.0.0/15:53 b.test:54 {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n}\n":                                "Corefile:1: the block gives its zones different ports; each zone is answered at all of them: 53 54",
		"(s) {\n bind 127.0.0.1\n forward . 192.0.2.1\n}\n\na.test,\nb.test {\n import s\n}\n":                          "Corefile:6: the block for a.test. b.test. has no cache; answers are kept for 1s all the same, so that identical queries are asked once",
		"(s) {\n bind 127.0.0.1\n forward . 192.0.2.1\n}\n\na.test\n{\n import s\n}\n":                                  "Corefile:6: the block for a.test. has no cache; answers are kept for 1s all the same, so that identical queries are asked once",
		"(a.test) {\n bind 127.0.0.1\n forward . 192.0.2.1\n}\n{$NO_BLOCK} {\n cache\n}\na.test {\n import a.test\n}\n": "Corefile:5: the variable NO_BLOCK is not set; nothing stands in its place\nCorefile:8: the block for a.test. has no cache; answers are kept for 1s all the same, so that identical queries are asked once",
		"\na.test\nbind 127.0.0.1\nforward . 192.0.2.1\n":                                                               "Corefile:2: the block for a.test. has no cache; answers are kept for 1s all the same, so that identical queries are asked once",
	} {
		c, err := readCorefileText(t, text, kubeDNS{})
		if got := strings.Join(c.Notes, "\n"); err != nil || got != want {
			t.Errorf("%s\ngives %v and\n%s\nwant\n%s", text, err, got, want)
		}
	}
}

// What a block says of names that its hosts do not have is said once, and true.
func TestCorefileNotesOfHosts(t *testing.T) {
	for option, want := range map[string]struct {
		notes []string
		rcode string
	}{
		"": {[]string{
			"1: the block forwards a.test. to nobody; what its hosts and templates do not answer does not exist",
			"3: hosts is without fallthrough; names of the block that are not in the list do not exist, where CoreDNS says SERVFAIL",
		}, "NXDOMAIN"},
		"fallthrough": {[]string{"1: the block forwards a.test. to nobody; what its hosts and templates do not answer is SERVFAIL"}, "SERVFAIL"},
	} {
		path := filepath.Join(t.TempDir(), "Corefile")
		write(t, path, "a.test:0 {\n bind 127.0.0.1\n hosts /dev/null {\n  192.0.2.1 x.a.test\n  "+option+"\n }\n cache 30\n}\n")
		f, err := parseNodeCache(strings.Fields("-setupinterface=false -setupiptables=false -metrics-listen-address 127.0.0.1:0 -basecorefile "+path), &strings.Builder{})
		if err != nil {
			t.Fatal(err)
		}
		h := serveNodeCache(t, f)
		if got := answerOf(ask(t, "udp", h.address(0), "other.a.test.", 0)); got != want.rcode {
			t.Errorf("%q: %s, want %s", option, got, want.rcode)
		}
		for i, note := range want.notes {
			want.notes[i] = path + ":" + note
		}
		if diff := cmp.Diff(want.notes, h.began.Notes); diff != "" {
			t.Errorf("%q (-want +got):\n%s", option, diff)
		}
	}
}

// Which addresses are endpoints of a Service, and why the others are not.
func TestCorefileTopology(t *testing.T) {
	for forward, want := range map[string]struct{ service, clusterIP, note string }{
		"__PILLAR__CLUSTER__DNS__":  {"kube-system/kube-dns-upstream", "10.96.0.11:53", ""},
		"10.233.0.3":                {"kube-system/coredns", "10.233.0.3:53", ""},
		"10.96.0.10:53":             {"kube-system/kube-dns", "10.96.0.10:53", ""},
		"service:kube-dns":          {"kube-system/kube-dns", "10.96.0.10:53", ""},
		"service:dns/resolver":      {"dns/resolver", "", ""},
		"10.96.0.10:5353":           {"", "", "10.96.0.10:5353 is no Service that the environment tells"},
		"192.0.2.1":                 {"", "", "192.0.2.1:53 is no Service that the environment tells"},
		"10.96.0.10 10.96.0.11":     {"", "", "several servers are named, which are taken as they are"},
		"tls://10.96.0.10":          {"", "", ""},
		"tls://192.0.2.1%a.example": {"", "", ""},
		"/etc/resolv.conf":          {"", "", ""},
	} {
		c, err := readCorefileText(t, ". {\n bind 127.0.0.1\n forward . "+forward+"\n}\n", kubeDNS{})
		if err != nil {
			t.Errorf("%s: %v", forward, err)
			continue
		}
		r := c.Routes[0]
		got := struct{ service, clusterIP, note string }{"", addressList(r.Topology.ClusterIP), r.Note}
		if r.topological() {
			got.service = r.Topology.Namespace + "/" + r.Topology.Service
		}
		if got.service != want.service || got.clusterIP != want.clusterIP || !strings.Contains(got.note, want.note) || want.note == "" && got.note != "" {
			t.Errorf("%s: %+v, want %+v", forward, got, want)
		}
	}
}

// The ConfigMap kube-dns names servers for all other names, and for domains.
func TestKubeDNS(t *testing.T) {
	const corefile = ". {\n bind 127.0.0.1\n forward . __PILLAR__UPSTREAM__SERVERS__ {\n  force_tcp\n }\n cache 30\n}\n"
	dir := t.TempDir()
	read := func(files map[string]string) (Config, error) {
		t.Helper()
		for _, name := range []string{"stubDomains", "upstreamNameservers"} {
			write(t, filepath.Join(dir, name), files[name])
		}
		kube, err := readKubeDNS(dir)
		if err != nil {
			return Config{}, err
		}
		return readCorefileText(t, corefile, kube)
	}
	c, err := read(map[string]string{
		"stubDomains":         `{"consul.local": ["192.0.2.10:8600"], "Acme.example": ["192.0.2.11", "tls://192.0.2.12"]}`,
		"upstreamNameservers": `["192.0.2.1", "192.0.2.2:5353"]`,
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range c.Routes {
		got = append(got, strings.Join(r.Zones, " ")+" -> "+r.source())
	}
	want := []string{
		". localhost. invalid. onion. resolver.arpa. -> 192.0.2.1:53 192.0.2.2:5353",
		"acme.example. -> 192.0.2.11:53 tls://192.0.2.12:853#192.0.2.12",
		"consul.local. -> 192.0.2.10:8600",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Routes[0].ForceTCP {
		t.Error("servers of the ConfigMap are asked over TCP only, which node-cache does not do in this place")
	}
	if ttl := c.Routes[1].Cache.MaxTTL; ttl != 30*time.Second {
		t.Errorf("answers of a stub domain are kept for %v", ttl)
	}
	before := c.Hash
	if c, err = read(nil); err != nil {
		t.Fatal(err)
	}
	if r := c.Routes[0]; r.ResolvConf != "/etc/resolv.conf" || !r.ForceTCP || len(c.Routes) != 1 {
		t.Errorf("without servers of its own: %+v", r)
	}
	if c.Hash == before {
		t.Error("the hash does not depend on the ConfigMap")
	}
	for text, want := range map[string]string{
		`{"a b": ["192.0.2.1"]}`:                `stubDomains:1: "a b" is no domain`,
		"{\n\"a.example\": [\"ns.example\"]}":   `stubDomains:2: "ns.example" is no IP address`,
		"{\n\"a.example\": []}":                 `stubDomains:2: "a.example" has no servers`,
		"{\n\"a.example\": \"192.0.2.1\"}":      `stubDomains:2: this is not the JSON that is expected`,
		`{"a.example": ["0.0.0.0"]}`:            `stubDomains:1: 0.0.0.0 is named, which stands for every address`,
		"{\"a.example\": [\"192.0.2.1\"],\n\n}": `stubDomains:3: this is not the JSON`,
	} {
		if _, err := read(map[string]string{"stubDomains": text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := read(map[string]string{"upstreamNameservers": `["192.0.2.1","192.0.2.2","192.0.2.3","192.0.2.4"]`}); err == nil {
		t.Error("four servers are taken")
	}
	if kube, err := readKubeDNS(filepath.Join(dir, "nowhere")); err != nil || len(kube.files) != 0 {
		t.Errorf("a folder that is not there: %v, %v", kube, err)
	}
}

func TestReverseZones(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/8":      "10.in-addr.arpa.",
		"192.168.16.0/23": "16.168.192.in-addr.arpa. 17.168.192.in-addr.arpa.",
		"10.96.0.0/15":    "96.10.in-addr.arpa. 97.10.in-addr.arpa.",
		"192.0.2.7/32":    "7.2.0.192.in-addr.arpa.",
		"fd00::/8":        "d.f.ip6.arpa.",
		"2001:db8:4::/47": "4.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa. 5.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.",
		"0.0.0.0/0":       "",
	} {
		zones, _ := zonesOf(text)
		if got := strings.Join(zones, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// check and convert say what is wrong, or print a configuration that check takes.
func TestCorefileCommands(t *testing.T) {
	dir := t.TempDir()
	good, bad, native := filepath.Join(dir, "Corefile"), filepath.Join(dir, "bad"), filepath.Join(dir, "nodens.yaml")
	write(t, good, "cluster.local {\n bind __PILLAR__LOCAL__DNS__\n log\n forward . __PILLAR__CLUSTER__DNS__\n cache 30\n}\n")
	write(t, bad, ". {\n forward . nobody\n cachee\n}\n")
	command := func(line string) (status int, out, errs string) {
		var stdout, stderr strings.Builder
		status = run(t.Context(), strings.Fields(line), noEnv, &stdout, &stderr)
		return status, stdout.String(), stderr.String()
	}
	status, out, errs := command("check -corefile " + good + " -localip 169.254.20.10 -upstreamsvc dns/resolver")
	if status != 0 || !strings.Contains(out, "good; listens on 169.254.20.10:53") || !strings.Contains(out, "endpoints of dns/resolver") || !strings.Contains(errs, "Corefile:3: log") {
		t.Errorf("check: %d, %q, %q", status, out, errs)
	}
	if status, _, errs = command("check -corefile " + bad); status != 1 || strings.Count(errs, "\n") != 2 || !strings.Contains(errs, bad+":3: ") {
		t.Errorf("check of mistakes: %d, %q", status, errs)
	}
	status, out, _ = command("convert -corefile " + good + " -localip 169.254.20.10")
	if status != 0 || !strings.Contains(out, "version: v1") {
		t.Fatalf("convert: %d, %q", status, out)
	}
	write(t, native, out)
	if status, _, errs = command("check -config " + native); status != 0 {
		t.Errorf("check of what convert prints: %d, %q", status, errs)
	}
	for _, line := range []string{"convert", "check -corefile a -config b", "convert -corefile " + dir + "/nowhere", "convert -corefile " + good + " -localip nine"} {
		if status, _, errs = command(line); status == 0 || errs == "" {
			t.Errorf("%s: %d, %q", line, status, errs)
		}
	}
}

// What computes answers is refused, and what is left out of rules is told.
func TestCorefileRules(t *testing.T) {
	for directive, want := range map[string]string{
		"template IN A example {\n answer \"{{ .Name }} 60 IN A 10.{{ .Group.x }}\"\n}": "template computes its answer",
		"template IN NONE":                                     "which there is not",
		"template CH A":                                        "template is for \"CH A\"",
		"rewrite name regex (.*) b.example":                    "rewrite name regex has no equivalent",
		"rewrite stop {\n name exact a b\n answer name b a\n}": "rewrite { name ... } has no equivalent",
		"rewrite type A AAAA":                                  "rewrite type A AAAA has no equivalent",
		"hosts {\n nobody example\n}":                          "hosts has \"nobody example\"",
		"dns64 192.0.2.0/24":                                   "none for IPv4 addresses",
		"template IN A {\n match (\n rcode NXDOMAIN\n}":        "no regular expression",
		"rewrite name suffix old.example. .new.example.":       "rewrite name suffix has no equivalent",
	} {
		_, err := readCorefileText(t, ". {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n "+directive+"\n}\n", kubeDNS{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", directive, err, want)
		}
	}
	c, err := readCorefileText(t, ". {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n hosts /etc/hosts example {\n  ttl 5\n }\n dns64 {\n  allow_ipv4\n }\n}\n", kubeDNS{})
	if err != nil || len(c.Notes) != 3 || c.Routes[0].Rules.Hosts.File != "/etc/hosts" || !c.Routes[0].Rules.Hosts.Only {
		t.Errorf("%q, %+v, %v", c.Notes, c.Routes, err)
	}
}
