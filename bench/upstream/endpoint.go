package upstream

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// Endpoint is what the Kubernetes API shows of a server.
type Endpoint struct {
	Pod, Node, Zone string
	Addr            netip.AddrPort
	// Hinted adds the hints of trafficDistribution, which the controller gives to
	// endpoints that are ready only.
	Hinted                      bool
	Ready, Serving, Terminating bool
}

// Publish writes the EndpointSlices of the Service kube-dns to a file as their
// controller would, one for each endpoint, since a slice has one port for all of
// its endpoints. Who follows the file never sees a part of it.
func Publish(file string, endpoints []Endpoint) error {
	var text strings.Builder
	for _, e := range endpoints {
		e.slice(&text)
	}
	if len(endpoints) == 0 {
		text.WriteString("[]\n")
	}
	next := file + ".next"
	if err := os.WriteFile(next, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write the endpoints: %w", err)
	}
	return os.Rename(next, file)
}

func (e Endpoint) slice(b *strings.Builder) {
	hints := ""
	if e.Hinted && e.Ready {
		hints = fmt.Sprintf("  hints: {forZones: [{name: %s}], forNodes: [{name: %s}]}\n", e.Zone, e.Node)
	}
	fmt.Fprintf(b, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-%[1]s, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports:
- {name: dns, protocol: UDP, port: %[2]d}
- {name: dns-tcp, protocol: TCP, port: %[2]d}
endpoints:
- addresses: [%[3]v]
  nodeName: %[4]s
  zone: %[5]s
%[6]s  conditions: {ready: %[7]t, serving: %[8]t, terminating: %[9]t}
  targetRef: {kind: Pod, namespace: kube-system, name: %[1]s, uid: %[1]s}
`, e.Pod, e.Addr.Port(), e.Addr.Addr(), e.Node, e.Zone, hints, e.Ready, e.Serving, e.Terminating)
}
