package neverdark

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/nodens-dns/nodens/bench/upstream"
	"github.com/nodens-dns/nodens/bench/world"
)

// lightRole makes the test binary a server that stands for CoreDNS in the pods, where
// NODENS_LIGHT asks for one: CoreDNS takes so much CPU time for 20 000 queries/s that
// two cores do not do for it and for those who ask.
const lightRole = "NEVERDARK_LIGHT"

// light tells whether pods are answered so.
func light() bool { return os.Getenv("NODENS_LIGHT") != "" }

// answers is the server of a pod.
func (n *node) answers(coreDNS string) *exec.Cmd {
	if !light() {
		return exec.Command(coreDNS, "-conf", filepath.Join(n.dir, "Corefile"))
	}
	server := exec.Command("/proc/self/exe")
	server.Env = append(os.Environ(), lightRole+"=1")
	return server
}

// answerLightly answers what CoreDNS here would, until it is killed.
func answerLightly() {
	mix, err := world.NewMix(3600)
	if err == nil {
		var server *upstream.Server
		server, err = upstream.New(upstream.Config{Zone: mix.Zone(), Addr: netip.AddrPortFrom(netip.IPv6Unspecified(), podPort), Sockets: 2})
		if err == nil {
			err = server.Start()
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	select {}
}
