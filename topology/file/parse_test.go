package file_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/file"
)

// full is a slice with every field that is read, and some that are not.
const full = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kube-dns-x
  namespace: kube-system
  generation: 7
  labels: {kubernetes.io/service-name: kube-dns, endpointslice.kubernetes.io/managed-by: me}
  annotations: {endpoints.kubernetes.io/last-change-trigger-time: "2026-01-02T03:04:05.5Z"}
addressType: IPv4
ports:
- {name: dns, protocol: UDP, port: 53}
- {protocol: TCP, port: 5353, appProtocol: dns}
- {name: open}
endpoints:
- addresses: [127.0.0.1, 127.0.0.2]
  conditions: {ready: false, serving: true, terminating: true}
  nodeName: n1
  zone: za
  hostname: ignored
  targetRef: {kind: Pod, uid: u1, namespace: kube-system, name: p1}
  hints: {forNodes: [{name: n1}], forZones: [{name: za}, {name: zb}]}
- addresses: [127.0.0.3]
`

func TestParseReadsEveryField(t *testing.T) {
	yes, no := true, false
	want := []topology.Slice{{
		Namespace: "kube-system", Name: "kube-dns-x", Service: "kube-dns", ManagedBy: "me",
		AddressType: "IPv4", AllowLoopback: true,
		Changed: time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC),
		Ports:   []topology.Port{{Name: "dns", Protocol: "UDP", Number: 53}, {Protocol: "TCP", Number: 5353}, {Name: "open"}},
		Endpoints: []topology.SliceEndpoint{{
			Addresses: []string{"127.0.0.1", "127.0.0.2"}, Ready: &no, Serving: &yes, Terminating: &yes,
			Node: "n1", Zone: "za", ForNodes: []string{"n1"}, ForZones: []string{"za", "zb"},
			TargetUID: "u1", TargetNamespace: "kube-system", TargetName: "p1",
		}, {Addresses: []string{"127.0.0.3"}}},
	}}
	got, err := file.Parse("f", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The pieces of which files are put together below.
const (
	body   = `"metadata":{"name":"NAME"},"addressType":"IPv4"`
	typed  = `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",` + body + `}`
	noKind = `{` + body + `}`
)

func named(object, name string) string { return strings.ReplaceAll(object, "NAME", name) }

func TestParseForms(t *testing.T) {
	list := func(head, item string) string {
		return `{` + head + `,"items":[` + named(item, "a") + `,` + named(item, "b") + `]}`
	}
	const sliceList = `"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSliceList"`
	cases := map[string]struct {
		text string
		want string
	}{
		"one slice":                    {named(typed, "a"), "a"},
		"typed list":                   {list(sliceList, noKind), "a b"},
		"typed list, items with kinds": {list(sliceList, typed), "a b"},
		"list of kubectl":              {list(`"apiVersion":"v1","kind":"List"`, typed), "a b"},
		"empty list of kubectl":        {`{"apiVersion":"v1","kind":"List","items":[]}`, ""},
		"bare list":                    {`[` + named(typed, "a") + `,` + named(noKind, "b") + `]`, "a b"},
		"bare empty list":              {"[]\n", ""},
		"JSON with tabs":               {"{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"List\",\n\t\"items\": []\n}", ""},
		"documents": {"# of two\n---\n" + named(typed, "a") + "\n--- # the next\n" + named(typed, "b") +
			"\n---\n# nothing\n---\n", "a b"},
		"documents ended by dots":     {named(typed, "a") + "\n...\n" + named(typed, "b") + "\n...\n", "a b"},
		"document on the marker line": {"--- " + named(typed, "a"), "a"},
		"Windows line ends":           {"---\r\n" + strings.ReplaceAll(strings.TrimSpace(full), "\n", "\r\n") + "\r\n---\r\n" + named(typed, "b"), "kube-dns-x b"},
		"dashes inside a text":        {"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: a\n  annotations:\n    x: |\n      ---\n      y\naddressType: IPv4\n", "a"},
		"byte order mark":             {"\xef\xbb\xbf" + full, "kube-dns-x"},
		"FQDN is not for us to judge": {strings.Replace(named(typed, "a"), `IPv4"`, `FQDN","endpoints":[{"addresses":["x.example"]}]`, 1), "a"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			list, err := file.Parse("f", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range list {
				got = append(got, s.Name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("slices %v, want %s", got, c.want)
			}
		})
	}
}

func TestParseReportsEveryMistake(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string // one part of each line of the error, in order
	}{
		"empty":              {" \n", []string{"f: the file is empty"}},
		"only comments":      {"# nothing\n---\n", []string{"the file is empty"}},
		"truncated JSON":     {named(typed, "a")[:60], []string{"document 1: neither JSON nor YAML"}},
		"truncated YAML":     {full[:len(full)-9], []string{"document 1: neither JSON nor YAML"}},
		"a text":             {"hello", []string{"document 1: want an object or a list"}},
		"key given twice":    {"kind: List\nkind: List\n", []string{`document 1: neither JSON nor YAML`}},
		"unknown kind":       {"apiVersion: v1\nkind: Endpoints\n", []string{`document 1: unknown kind "Endpoints" of apiVersion "v1"`}},
		"old version":        {strings.Replace(full, "/v1", "/v1beta1", 1), []string{`apiVersion "discovery.k8s.io/v1beta1"`}},
		"list without items": {"apiVersion: v1\nkind: List\n", []string{"document 1: a List without items"}},
		"kindless in a List": {`{"apiVersion":"v1","kind":"List","items":[` + named(noKind, "a") + `]}`, []string{`document 1, item 1: unknown kind ""`}},
		"kindless document":  {named(noKind, "a"), []string{`document 1: unknown kind ""`}},
		"list in a list":     {`[[]]`, []string{"document 1, item 1: "}},
		"same slice twice":   {named(typed, "a") + "\n---\n[" + named(typed, "a") + "]", []string{"document 2, item 1: slice /a was there already: document 1:"}},
		"one good, others not, each with all it has": {
			full + "---\n[{addressType: ipv6}, {metadata: {name: b}, addressType: IPv4, ports: [{port: 70000}, {port: -1, protocol: udp}]}]\n---\n" +
				"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: c}, addressType: IPv6, endpoints: [{addresses: [10.0.0.1, x]}, {nodeName: 1}]}\n---\n" +
				"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: d}, addressType: IPv6, endpoints: [{addresses: [10.0.0.1, x]}]}",
			[]string{
				"document 2, item 1: metadata.name is missing",
				`document 2, item 1: addressType is "ipv6"`,
				"document 2, item 2: ports[0].port is 70000",
				`document 2, item 2: ports[1].name "" is not unique`,
				`document 2, item 2: ports[1].protocol is "udp"`,
				"document 2, item 2: ports[1].port is -1",
				"document 3: json: cannot unmarshal number",
				"document 4: endpoints[0].addresses[0] 10.0.0.1 is not of addressType IPv6",
				`document 4: endpoints[0].addresses[1] "x" is not an IP address`,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			list, err := file.Parse("f", []byte(c.text))
			if err == nil || list != nil {
				t.Fatalf("no error; slices %v", list)
			}
			joined, ok := err.(interface{ Unwrap() []error })
			if !ok || len(joined.Unwrap()) != len(c.want) {
				t.Fatalf("want %d mistakes, got:\n%v", len(c.want), err)
			}
			for i, mistake := range joined.Unwrap() {
				if !strings.HasPrefix(mistake.Error(), "f:") || !strings.Contains(mistake.Error(), c.want[i]) {
					t.Errorf("mistake %d: %v\nwant %s", i, mistake, c.want[i])
				}
			}
		})
	}
}

// FuzzParse: whatever the file, Parse gives slices or an error, never both.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{full, named(typed, "a"), "[]", "---\n...\n", "[null, 1, {}]", "a: &a [*a]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := file.Parse("f", data)
		if err != nil && (list != nil || err.Error() == "") {
			t.Errorf("%d slices and %v", len(list), err)
		}
		for i := range list {
			topology.Project(&list[i], topology.Rules{})
		}
	})
}
