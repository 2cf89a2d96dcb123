package neverdark

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// group is a control group of the memory controller, version 1.
type group struct {
	t   *testing.T
	dir string
}

func newGroup(t *testing.T) group {
	t.Helper()
	g := group{t, fmt.Sprintf("/sys/fs/cgroup/memory/nodens-neverdark-%d", os.Getpid())}
	err := os.Mkdir(g.dir, 0o755)
	space.Needs(t, "cgroup1", err == nil)
	// Registered before the processes, so that they are gone first.
	t.Cleanup(func() { _ = os.Remove(g.dir) })
	return g
}

func (g group) write(file string, value int) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.Itoa(value)), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// take puts a nodens into the group, and makes it the one that the kernel kills.
func (g group) take(d *daemon) {
	g.t.Helper()
	g.write("memory.limit_in_bytes", 256<<20)
	g.write("cgroup.procs", d.PID())
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", d.PID()), []byte("1000"), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// exhaust takes the rest of the group's memory from another process.
func (g group) exhaust(d *daemon) {
	g.t.Helper()
	hog := exec.Command("/proc/self/exe")
	hog.Env = append(os.Environ(), "NEVERDARK_HOG="+g.dir)
	p := d.n.Start(g.t, hog)
	select {
	case <-d.Done():
	case <-p.Done():
		<-d.Done()
	case <-time.After(20 * time.Second):
		g.t.Fatalf("nobody ran out of memory; the hog said:\n%s", p.Said())
	}
	p.End(syscall.SIGKILL)
}

// hog enters the group, where it may not be killed, and takes memory until that is
// more than there is.
func hog(dir string) {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0o644)
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var kept [][]byte
	for range 512 {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		kept = append(kept, block)
	}
	fmt.Println(len(kept), "MB taken")
	os.Exit(1)
}
