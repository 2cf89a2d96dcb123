package peers

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

func nodens() Peer {
	return Peer{
		Name: "nodens", Binaries: []string{"nodens"}, version: []string{"version"},
		files:   func(s Setup) map[string]string { return map[string]string{"nodens.yaml": nodensConfig(s)} },
		args:    func(Setup) []string { return []string{"serve", "-config", "nodens.yaml"} },
		metrics: true, profiles: true,
	}
}

// nodensOneSocket is nodens with as many sockets as the reflector has.
func nodensOneSocket() Peer {
	p := nodens()
	p.Name, p.Program, p.Sockets = "nodens-1", p.Name, 1
	return p
}

// nodensConfig lets answers live as long as their TTLs say: the peers have no
// caps either.
func nodensConfig(s Setup) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: v1\nlisten: [%q]\nadmin: {address: %q}\nlog: {level: error}\n", s.Listen, s.Admin)
	fmt.Fprintf(&b, "cache: {size: %dMi}\n", max(32, s.Entries/1000))
	if s.Sockets > 0 {
		fmt.Fprintf(&b, "limits: {udpSockets: %d}\n", s.Sockets)
	}
	const keep = "{maxTTL: 1h, maxNegativeTTL: 1h}"
	b.WriteString("routes:\n")
	if s.Endpoints != "" {
		fmt.Fprintf(&b, "- zones: [cluster.local]\n  topology: {file: %q, namespace: kube-system, service: kube-dns}\n  cache: %s\n", s.Endpoints, keep)
		b.WriteString("- zones: [\".\"]\n")
		fmt.Fprintf(&b, "  topology: {file: %q, namespace: kube-system, service: kube-dns}\n  cache: %s\n", s.Endpoints, keep)
		b.WriteString("node: {name: n1, zone: za}\n")
		return b.String()
	}
	fmt.Fprintf(&b, "- zones: [cluster.local, \".\"]\n  servers: [%s]\n  cache: %s\n", quoted(s.Upstreams), keep)
	return b.String()
}

func quoted(addrs []netip.AddrPort) string {
	var all []string
	for _, a := range addrs {
		all = append(all, strconv.Quote(a.String()))
	}
	return strings.Join(all, ", ")
}

// reflector is this program itself, as a process of its own.
func reflector() Peer {
	return Peer{
		Name: "reflector", Fixed: true,
		files: func(Setup) map[string]string { return nil },
		args: func(s Setup) []string {
			return []string{"reflector", "-addr", s.Listen.String(), "-sockets", strconv.Itoa(max(1, s.Sockets))}
		},
	}
}
