package peers

import (
	"fmt"
	"net/netip"
	"strings"
)

// coredns counts its queries, as nodens does, and reports errors: so it runs in
// clusters.
func coredns() Peer {
	return Peer{
		Name: "coredns", Binaries: []string{"coredns"}, version: []string{"-version"},
		files: func(s Setup) map[string]string {
			return map[string]string{"Corefile": corefile(s, counting(s))}
		},
		args:    func(Setup) []string { return []string{"-conf", "Corefile"} },
		metrics: true,
	}
}

// bareCoreDNS counts nothing. It shows what the counting costs CoreDNS.
func bareCoreDNS() Peer {
	p := coredns()
	p.Name, p.Program, p.metrics = "coredns-bare", p.Name, false
	p.files = func(s Setup) map[string]string { return map[string]string{"Corefile": corefile(s, "")} }
	return p
}

func counting(s Setup) string { return fmt.Sprintf("    errors\n    prometheus %s\n", s.Admin) }

// nodeCache leaves the node's interfaces and firewall alone.
func nodeCache() Peer {
	return Peer{
		Name: "node-cache", Binaries: []string{"node-cache"}, version: []string{"-version"},
		files: func(s Setup) map[string]string {
			return map[string]string{"Corefile": corefile(s, counting(s))}
		},
		args: func(s Setup) []string {
			return []string{
				"-localip", s.Listen.Addr().String(), "-conf", "Corefile", "-basecorefile", "Corefile",
				"-setupinterface=false", "-setupiptables=false", "-skipteardown=true",
			}
		},
		metrics: true,
	}
}

func corefile(s Setup, more string) string {
	return fmt.Sprintf(`.:%d {
    bind %s
    cache 3600 {
        success %d 3600
        denial %d 3600
    }
%s    forward . %s {
        policy sequential
    }
}
`, s.Listen.Port(), s.Listen.Addr(), s.Entries, s.Entries, more, spaced(s.Upstreams))
}

func spaced(addrs []netip.AddrPort) string {
	var all []string
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return strings.Join(all, " ")
}
