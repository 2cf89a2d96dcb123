package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stockManifest is node-cache's manifest as an installer fills it, with our image.
func stockManifest(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/node-local-dns.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const image = "registry.k8s.io/dns/k8s-dns-node-cache:1.26.8"
	if strings.Count(string(data), image) != 1 {
		t.Fatalf("the manifest does not have the image %s once", image)
	}
	path := filepath.Join(t.TempDir(), "node-local-dns.yaml")
	text := strings.NewReplacer(
		"__PILLAR__DNS__DOMAIN__", "cluster.local", "__PILLAR__LOCAL__DNS__", ownAddress, "__PILLAR__DNS__SERVER__", clusterAddress,
		image, "ghcr.io/nodens-dns/nodens:0.1.0",
	).Replace(string(data))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// metrics reads a page of metrics on the node.
func (p *site) metrics(port int) string {
	p.t.Helper()
	text, err := p.kubelet.Get(p.t.Context(), fmt.Sprintf("127.0.0.1:%d", port), "metrics")
	p.must(err)
	return text
}

// has tells whether a page of metrics has a series other than 0, by parts of its line.
func has(page string, parts ...string) bool {
	for line := range strings.Lines(page) {
		fits := !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0\n")
		for _, part := range parts {
			fits = fits && strings.Contains(line, part)
		}
		if fits {
			return true
		}
	}
	return false
}

// asked is the label of the servers that are asked.
func asked(server string) []string {
	return []string{"coredns_proxy_request_duration_seconds_count", `to="` + server + `:53"`}
}

// The manifest of node-cache, of which nothing but the image is another, on a node with
// the API server of a cluster: from the first query to the last, and what is left then.
func TestStockManifest(t *testing.T) {
	p := newSite(t)
	before := p.picture()
	a := newApplier(t)
	manifest := objects(t, stockManifest(t))
	for _, object := range manifest {
		a.create(object)
	}
	p.until("endpoints of the second Service", func() bool { return len(p.ready("kube-dns-upstream")) == 2 })
	p.proxy()
	p.rounds("the DaemonSet is rolled out", func() bool { return p.rolled("node-local-dns") })
	p.answers(ownAddress, clusterAddress)

	if err := p.kubelet.Live("node-local-dns", "node-cache"); err != nil {
		t.Errorf("the liveness probe: %v", err)
	}
	upstream, err := shared.cluster.Admin.CoreV1().Services(p.s.Namespace).Get(t.Context(), "kube-dns-upstream", metav1.GetOptions{})
	p.must(err)
	for _, port := range []int{9253, 9353} {
		page := p.metrics(port)
		for _, series := range [][]string{
			{"coredns_dns_requests_total", `server="dns://169.254.20.10:53"`, `zone="cluster.local."`},
			{"coredns_dns_requests_total", `server="dns://10.96.0.10:53"`, `zone="."`, `proto="tcp"`},
			{"coredns_cache_hits_total"},
			asked(upstream.Spec.ClusterIP), // no right to watch endpoints
		} {
			if !has(page, series...) {
				t.Errorf("no %v at port %d:\n%s", series, port, page)
			}
		}
		if !strings.Contains(page, "coredns_nodecache_setup_errors_total") || has(page, "coredns_nodecache_setup_errors_total") {
			t.Errorf("errors of the set-up at port %d:\n%s", port, page)
		}
	}
	p.stubDomains()
	p.rolls()

	for _, object := range manifest {
		a.remove(object)
	}
	p.rounds("the pods are gone", func() bool { return p.gone("node-local-dns") })
	p.proxy()
	p.isAgain(before)
}

// stubDomains lets the ConfigMap kube-dns come and go wrong.
func (p *site) stubDomains() {
	p.t.Helper()
	maps := shared.cluster.Admin.CoreV1().ConfigMaps(p.s.Namespace)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"}, Data: map[string]string{"stubDomains": `{"corp.example": ["` + stubServer + `"]}`}}
	_, err := maps.Create(p.t.Context(), m, metav1.CreateOptions{})
	p.must(err)
	p.t.Cleanup(func() { _ = maps.Delete(p.t.Context(), m.Name, metav1.DeleteOptions{}) })
	number := 0
	stub := func() bool {
		number++
		return p.asks(p.Routed, "udp", ownAddress, fmt.Sprintf("n%d.corp.example.", number), "203.0.113.77") == nil
	}
	p.rounds("the stub domain", stub)

	m.Data["stubDomains"] = `{"corp.example": `
	_, err = maps.Update(p.t.Context(), m, metav1.UpdateOptions{})
	p.must(err)
	p.rounds("the mistake is counted", func() bool {
		return has(p.metrics(9353), "coredns_nodecache_setup_errors_total", `errortype="configmap"`)
	})
	p.until("the stub domain is as it was", stub)
	p.must(maps.Delete(p.t.Context(), m.Name, metav1.DeleteOptions{}))
	p.rounds("the stub domain is gone", func() bool {
		number++
		return p.asks(p.Routed, "udp", ownAddress, fmt.Sprintf("n%d.corp.example.", number), "203.0.113.80") == nil
	})
}

// rolls replaces the pod, and meanwhile gives its account the right to watch endpoints.
func (p *site) rolls() {
	p.t.Helper()
	rbac := shared.cluster.Admin.RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "node-local-dns"}, Rules: shippedRules(p.t, "rbac.yaml")}
	_, err := rbac.Roles(p.s.Namespace).Create(p.t.Context(), role, metav1.CreateOptions{})
	p.must(err)
	_, err = rbac.RoleBindings(p.s.Namespace).Create(p.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "node-local-dns", Namespace: p.s.Namespace}},
	}, metav1.CreateOptions{})
	p.must(err)

	at := p.ask("a pod at the Service's address", p.Routed, clusterAddress)
	own := p.ask("a pod at the node's own address", p.Routed, ownAddress)
	old := p.kubelet.Container("node-local-dns", "node-cache").ID
	p.change("node-local-dns", "1")
	p.rounds("the DaemonSet is rolled out again", func() bool { return p.rolled("node-local-dns") })
	if now := p.kubelet.Container("node-local-dns", "node-cache").ID; now == old {
		p.t.Errorf("%s still runs", old)
	}
	p.answers(ownAddress, clusterAddress)
	p.nothingLost(at)
	// Nobody else has this address: it is lost what is asked between the two pods, as
	// it is with node-cache.
	if c := own.stop(); c.Wrong+c.ServFail > 0 || c.Right == 0 {
		p.t.Errorf("at the node's own address: %+v", c)
	}
	p.nearestAnswers()
}
