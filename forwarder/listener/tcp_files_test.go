package listener_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// childMark tells the test's own process that it is the child.
const childMark = "NODENS_TEST_FEW_FILES"

// Without file descriptors accepting does not lock out: who sends nothing goes.
// While all are busy it waits, and does not spin. A child process does it,
// because the limit holds for a process.
func TestTCPWithoutFileDescriptors(t *testing.T) {
	if os.Getenv(childMark) != "" {
		acceptWithoutFiles(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestTCPWithoutFileDescriptors$", "-test.v")
	cmd.Env = append(os.Environ(), childMark+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func acceptWithoutFiles(t *testing.T) {
	const queued, allowed = 30, 10
	release := make(chan struct{})
	h := &handler{lookup: everyThirdMisses, resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		<-release
		return append(dst, q...), listener.Answered
	}}
	checkLeaks(t)
	l, err := listener.ListenTCP(listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h, MessageTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	// The kernel completes these before the listener accepts any: first some
	// that send nothing, then more that keep a miss waiting than it may accept.
	var asking []net.Conn
	for i := range 2 * queued {
		c := dial(t, "tcp", l.Addr())
		if i >= queued {
			mustWrite(t, c, framed(query(3*i)))
			asking = append(asking, c)
		}
	}
	limitFiles(t, allowed)
	start(t, l.Run)
	eventually(t, "all that may be are busy", func() bool {
		s := l.Stats()
		return s.EvictedSilent == queued && s.InFlight > 0 && s.InFlight == s.Connections
	})
	before, began := l.Stats().AcceptErrors, time.Now()
	eventually(t, "accepting goes on", func() bool { return l.Stats().AcceptErrors >= before+20 })
	if took := time.Since(began); took < 20*10*time.Millisecond || l.Stats().EvictedBusy > 0 {
		t.Errorf("20 failed accepts in %v: %+v", took, l.Stats())
	}
	close(release)
	for i, c := range asking {
		if got := read(t, c); got != 3*(queued+i) {
			t.Errorf("got %d", got)
		}
	}
}

// limitFiles lets the process open n files more than it has.
func limitFiles(t *testing.T, n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = uint64(len(open) - 1 + n) // without the directory itself
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
}
