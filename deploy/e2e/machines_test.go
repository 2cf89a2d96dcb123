package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
)

// machines gives the pods of a stage what they lack: addresses on a bridge of
// this machine, and a CoreDNS each.
type machines struct {
	t     *testing.T
	s     *cluster.Stage
	link  string
	alive map[string]*space.Process
}

// newMachines makes the bridge; the kernel of the tests has no dummy links.
func newMachines(t *testing.T, s *cluster.Stage) *machines {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "root", "only root can make a bridge")
	}
	if os.Getenv("NODENS_COREDNS") == "" {
		missing(t, "coredns", "NODENS_COREDNS names no CoreDNS; use make e2e")
	}
	m := &machines{t: t, s: s, link: fmt.Sprintf("ndns%d", os.Getpid()), alive: make(map[string]*space.Process)}
	m.ip("link", "add", m.link, "type", "bridge")
	t.Cleanup(func() { m.ip("link", "del", m.link) })
	m.ip("link", "set", m.link, "up")
	return m
}

func (m *machines) ip(args ...string) {
	m.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		m.t.Fatalf("ip %v: %v\n%s", args, err, out)
	}
}

// apiAddress is what the pods take for the ClusterIP of the API server: who
// knows it is a DNS server of this cluster.
const apiAddress = "10.96.0.1"

// boot makes a pod whose CoreDNS answers every A question for cluster.local
// with its own address, and makes it ready once it does.
func (m *machines) boot(pod, node string) {
	m.t.Helper()
	m.s.AddPod(pod, node)
	address, _ := m.s.Addresses(pod)
	m.ip("address", "add", address.String()+"/32", "dev", m.link)
	m.alive[pod] = space.Space{}.Start(m.t, exec.Command(os.Getenv("NODENS_COREDNS"), "-conf", m.corefile(pod, address)))
	server := netip.AddrPortFrom(address, 53)
	waitFor(m.t, "CoreDNS of "+pod, patience, func() bool {
		got, err := ask(m.t, server, "start.cluster.local.")
		return err == nil && got == address
	})
	m.s.Ready(pod, true)
}

func (m *machines) corefile(pod string, address netip.Addr) string {
	m.t.Helper()
	path := filepath.Join(m.t.TempDir(), pod)
	text := fmt.Sprintf(`cluster.local:53 {
	bind %[1]v
	template IN A cluster.local {
		match ^kubernetes[.]default[.]svc[.]
		answer "{{ .Name }} 5 IN A %[2]s"
		fallthrough
	}
	template IN A cluster.local {
		answer "{{ .Name }} 5 IN A %[1]v"
	}
	template IN AAAA cluster.local {
		rcode NOERROR
	}
}
`, address, apiAddress)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// leave ends the CoreDNS of a terminating pod, and the pod.
func (m *machines) leave(pod string) {
	m.t.Helper()
	m.alive[pod].End(syscall.SIGTERM)
	m.s.Remove(pod)
}

// crash kills the CoreDNS of a pod. Its address stays, so that a query is
// refused, as in a pod whose container is gone.
func (m *machines) crash(pod string) { m.alive[pod].End(syscall.SIGKILL) }

// ask asks a server for the one IPv4 address of a name, and gives up when the C
// library of a client does.
func ask(t *testing.T, server netip.AddrPort, name string) (netip.Addr, error) {
	return askFor(t, 5*time.Second, server, name)
}

func askFor(t *testing.T, patience time.Duration, server netip.AddrPort, name string) (netip.Addr, error) {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.String())
	}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found, err := resolver.LookupNetIP(ctx, "ip4", name)
	if err != nil {
		return netip.Addr{}, err
	}
	return found[0].Unmap(), nil
}
