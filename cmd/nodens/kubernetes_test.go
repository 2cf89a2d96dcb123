package main

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
)

func TestClusterIPComesFromTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		name   string
		file   string
		env    map[string]string
		want   []netip.AddrPort
		source string
	}{
		{"none", "", nil, nil, "kube-system/kube-dns"},
		{"of the Service", "", map[string]string{"KUBE_DNS_SERVICE_HOST": "10.96.0.10"}, addrPorts("10.96.0.10:53"), "kube-system/kube-dns"},
		{"of its copy first", "", map[string]string{"KUBE_DNS_SERVICE_HOST": "10.96.0.10", "KUBE_DNS_UPSTREAM_SERVICE_HOST": "10.96.0.11"}, addrPorts("10.96.0.11:53"), "kube-system/kube-dns"},
		{"of another name", "service: rke2-coredns", map[string]string{"RKE2_COREDNS_SERVICE_HOST": "fd00::a", "KUBE_DNS_SERVICE_HOST": "10.96.0.10"}, addrPorts("[fd00::a]:53"), "kube-system/rke2-coredns"},
		{"written down", "clusterIP: [10.0.0.1]", map[string]string{"KUBE_DNS_SERVICE_HOST": "10.96.0.10"}, addrPorts("10.0.0.1:53"), "kube-system/kube-dns"},
		{"where we listen", "", map[string]string{"KUBE_DNS_SERVICE_HOST": "192.0.2.99"}, nil, "kube-system/kube-dns"},
		{"nonsense", "", map[string]string{"KUBE_DNS_SERVICE_HOST": "kube-dns"}, nil, "kube-system/kube-dns"},
		{"of a file: none", "file: /f", map[string]string{"KUBE_DNS_SERVICE_HOST": "10.96.0.10"}, nil, "/f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := "version: v1\nlisten: [192.0.2.99:53]\nroutes: [{zones: [cluster.local], topology: {" + c.file + "}}]\n"
			got, err := readConfig("f", []byte(file), func(name string) string { return c.env[name] })
			if err != nil {
				t.Fatal(err)
			}
			r := got.Routes[0]
			if diff := cmp.Diff(c.want, r.Topology.ClusterIP, byValue()); diff != "" {
				t.Errorf("ClusterIP (-want +got):\n%s", diff)
			}
			if want := "endpoints "; !strings.HasPrefix(r.source(), want) || !strings.HasSuffix(r.source(), c.source) {
				t.Errorf("source %q, want one that ends in %s", r.source(), c.source)
			}
		})
	}
}

func TestTopologySettings(t *testing.T) {
	file := `
version: v1
node: {name: n1, labelsFile: LABELS}
kubernetes: {server: "https://192.0.2.1:6443", caFile: /ca, tokenFile: /token, snapshots: /s, readNode: false}
routes:
- zones: [cluster.local]
  topology:
    namespace: dns
    service: coredns
    managedBy: [a, b]
    ports: {udp: udp-53, tcp: tcp-53}
    hints: ignore
    local: [169.254.20.11]
    clusterIP: [10.96.0.10, "fd00::a"]
    fallback: ["192.0.2.1:5353"]
`
	labels := filepath.Join(t.TempDir(), "labels")
	write(t, labels, "a=\"b\"\ntopology.kubernetes.io/zone=\"za\"\n")
	path := filepath.Join(t.TempDir(), "f.yaml")
	write(t, path, strings.Replace(file, "LABELS", labels, 1))
	got, err := loadConfig(path, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got.Node.Zone != "za" {
		t.Errorf("zone %q, want that of the labels", got.Node.Zone)
	}
	want := TopologyConfig{
		Namespace: "dns", Service: "coredns", ManagedBy: []string{"a", "b"}, UDPPort: "udp-53", TCPPort: "tcp-53",
		Hints: "ignore", Domain: "cluster.local.", Local: addrPorts("169.254.20.11:53"), ClusterIP: addrPorts("10.96.0.10:53", "[fd00::a]:53"), Fallback: addrPorts("192.0.2.1:5353"),
	}
	if diff := cmp.Diff(want, got.Routes[0].Topology, byValue()); diff != "" {
		t.Errorf("topology (-want +got):\n%s", diff)
	}
	kubernetes := KubernetesConfig{Server: "https://192.0.2.1:6443", CAFile: "/ca", TokenFile: "/token", Snapshots: "/s"}
	if got.Kubernetes != kubernetes {
		t.Errorf("kubernetes %+v", got.Kubernetes)
	}
}

// refusing is an API server that grants nothing; it returns the settings for it.
func refusing(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	write(t, filepath.Join(folder, "ca"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, filepath.Join(folder, "token"), "t")
	return fmt.Sprintf("kubernetes: {server: %q, caFile: %s/ca, tokenFile: %s/token, snapshots: %s/kept}\n", server.URL, folder, folder, folder)
}

// Without any permission the daemon serves, over the ClusterIP, and says so.
func TestServeWithoutPermission(t *testing.T) {
	service := newScripted(t, 7, 0)
	began := time.Now()
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nnode: {name: n1}\n%sroutes: [{zones: [cluster.local], topology: {clusterIP: [%q]}}]\n",
		refusing(t), service.address))
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("ready after %v", took)
	}
	h.expect("udp", h.address(0), "a.cluster.local.", 0, "NOERROR 192.0.2.7")
	await(t, "the refusals", func() bool {
		s := h.snapshot()
		return s.Routes[0].API.Counters.Failures > 0 && s.Routes[0].Node.LastError != ""
	})
	notes := strings.Join(h.report().Routes[0].Notes, "\n")
	for _, want := range []string{"(forbidden): grant list and watch of endpointslices in namespace kube-system", "ClusterIP or the fallback is asked"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	if n := h.logs.FilterMessageSnippet("no endpoint is known yet; the ClusterIP or the fallback is asked").Len(); n != 1 {
		t.Errorf("%d lines that the ClusterIP is asked, want one", n)
	}
	got := gather(t, h.snapshot())
	for name, want := range map[string]string{
		"nodens_topology_fallback":   "route=cluster.local. 1",
		"nodens_topology_zone_known": "route=cluster.local. 0",
	} {
		if v := got[name].values; len(v) != 1 || v[0] != want {
			t.Errorf("%s is %v, want %s", name, v, want)
		}
	}
	if n := h.logs.FilterMessageSnippet("of no help").Len(); n != 1 {
		t.Errorf("%d lines about the API server, want one", n)
	}
	if n := h.logs.FilterMessageSnippet("Node of this node").Len(); n != 0 {
		t.Errorf("%d lines about the Node before any endpoint is known", n)
	}
}

// named is a server that answers every query with one address record, or none.
func named(t *testing.T, rcode int, ip string) netip.AddrPort {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	up := make(chan struct{})
	server := &dns.Server{PacketConn: packets, NotifyStartedFunc: func() { close(up) }}
	server.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetRcode(query, rcode)
		if ip != "" {
			reply.Answer = append(reply.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: query.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 5},
				A:   net.ParseIP(ip),
			})
		}
		_ = w.WriteMsg(reply)
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ActivateAndServe()
	}()
	<-up
	t.Cleanup(func() {
		_ = server.Shutdown()
		<-done
	})
	return netip.MustParseAddrPort(packets.LocalAddr().String())
}

func TestIdentityOfAnEndpoint(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	who := identity([]string{"in-addr.arpa.", "example.local.", "."})
	if who.name != "kubernetes.default.svc.example.local." {
		t.Errorf("asks for %s", who.name)
	}
	silent := newScripted(t, 8, 0)
	silent.silent.Store(true)
	for _, c := range []struct {
		name   string
		server netip.AddrPort
		want   bool
	}{
		{"this cluster's", named(t, dns.RcodeSuccess, "10.96.0.1"), true},
		{"another cluster's", named(t, dns.RcodeSuccess, "10.43.0.1"), false},
		{"no cluster's", named(t, dns.RcodeNameError, ""), false},
		{"one without its API", named(t, dns.RcodeServerFailure, ""), false},
		{"nobody", silent.address, false},
		{"nobody, with an ICMP error", netip.MustParseAddrPort("127.0.0.1:1"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if got := who.verify(ctx, c.server); got != c.want {
				t.Errorf("verified %v, want %v", got, c.want)
			}
		})
	}
}

// TestProbesNameTheAPIServer: what is known of the API server's address holds for
// the name that probes ask by default.
func TestProbesNameTheAPIServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	for probe, want := range map[string]string{
		"kubernetes.default.svc.cluster.local.": "10.96.0.1",
		"other.svc.cluster.local.":              "invalid IP",
	} {
		route := RouteConfig{Zones: []string{"cluster.local."}, Probe: probe, Topology: TopologyConfig{Service: "kube-dns"}}
		if got := groupConfig(routeSpec{config: route}, base{}).ProbeAddr.String(); got != want {
			t.Errorf("%s: %s, want %s", probe, got, want)
		}
	}
}

// Who waits for servers is told which variable would give one, and which Service.
func TestWithoutServers(t *testing.T) {
	for _, test := range []struct {
		name  string
		route RouteConfig
		want  string
	}{
		{"of the default", RouteConfig{}, "KUBE_DNS_UPSTREAM_SERVICE_HOST has none; the kubelet sets it where the pod's namespace has a Service kube-dns-upstream"},
		{"of another name", RouteConfig{Topology: TopologyConfig{Service: "rke2-coredns"}}, "RKE2_COREDNS_SERVICE_HOST has none; the kubelet sets it where the pod's namespace has a Service rke2-coredns"},
		{"with a ClusterIP", RouteConfig{Topology: TopologyConfig{ClusterIP: addrPorts("10.96.0.10:53")}}, "the ClusterIP or the fallback is asked"},
		{"of a file", RouteConfig{ResolvConf: "/etc/resolv.conf"}, "no servers are known yet"},
	} {
		if got := withoutServers(&test.route); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
