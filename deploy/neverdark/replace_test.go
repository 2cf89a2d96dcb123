package neverdark

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/world"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// unprivileged is how the chart runs nodens: its own user, and the right to bind ports
// below 1024. The image gives that by a file capability.
func unprivileged() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: 65532, Gid: 65532},
		AmbientCaps: []uintptr{unix.CAP_NET_BIND_SERVICE},
	}
}

// TestAnotherUserHasThePort changes from a CoreDNS of root, which is what a node-cache
// is, to a nodens of another user, and back. The guard's table stays all the while.
func TestAnotherUserHasThePort(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	coreDNS, _ := world.CoreDNS()
	corefile := n.write("old", strings.Replace(world.Server{Port: 53, Zone: filepath.Join(n.dir, "zone")}.Corefile(),
		"errors", "bind "+own4+" "+own6+"\n\terrors", 1))
	startOld := func() *daemon { return &daemon{n.Start(t, exec.Command(coreDNS, "-conf", corefile)), n} }
	old := startOld()
	waitFor(t, "the old one", 20*time.Second, func() bool {
		return asks(n.Routed, "udp", own4+":53") == nil && asks(n.Routed, "udp", "["+own6+"]:53") == nil
	})

	tr := n.ask(n.fromPods(own4, own6)...)
	warmUp()
	tr.mark("beside")
	d := n.startAs(unprivileged())
	ready := ""
	waitFor(t, "readiness while it waits", 10*time.Second, func() bool { ready, _ = n.get("/readyz"); return strings.HasPrefix(ready, "ready") })
	if !strings.Contains(ready, "waiting-for-port") {
		t.Errorf("ready says %q, want waiting-for-port", ready)
	}
	tr.kill(old, func(d *daemon) { d.Signal(syscall.SIGTERM) })
	took := waitFor(t, "nodens has the port", 10*time.Second, func() bool { return byNodens(n.Routed, own4+":53") && byNodens(n.Routed, "["+own6+"]:53") })
	time.Sleep(space.Form(300*time.Millisecond, 5*time.Second))

	tr.mark("back")
	select {
	case <-startOld().Done(): // it cannot have the port
	case <-time.After(20 * time.Second):
		t.Fatal("a CoreDNS of another user runs beside nodens")
	}
	d.stop()
	startOld()
	waitFor(t, "the old one again", 20*time.Second, func() bool { return asks(n.Routed, "udp", own4+":53") == nil })
	time.Sleep(space.Form(500*time.Millisecond, 3*time.Second))
	tr.stop().figure("CoreDNS of root, nodens of user 65532, and back", "nodens had the port %v after the end of the other", took.Round(time.Millisecond))
	tr.expectNone("", "begin")
	tr.expectNone("", "beside")
	tr.expectAtMost("", "kill", tr.mayLose(1)) // what the old one took with it
	tr.expectNone("", "after")
	tr.expectNone("", "back")
}
