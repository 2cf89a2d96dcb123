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

// groupMemory is the limit of a group, in bytes.
const groupMemory = 256 << 20

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
	g.write("memory.limit_in_bytes", groupMemory)
	g.write("cgroup.procs", d.PID())
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", d.PID()), []byte("1000"), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// exhaust takes the rest of the group's memory. The kernel kills the nodens, however much
// the other one holds: its score is what it has and the limit of the group beside it.
func (g group) exhaust(d *daemon) {
	g.t.Helper()
	hog := exec.Command("/proc/self/exe")
	hog.Env = append(os.Environ(), "NEVERDARK_HOG="+g.dir)
	p := d.n.Start(g.t, hog)
	select {
	case <-d.Done():
	case <-time.After(20 * time.Second):
		g.t.Fatalf("nobody ran out of memory; the hog said:\n%s", p.Said())
	}
	p.End(syscall.SIGKILL)
}

// hog enters the group and takes memory until it is killed, a step at a time. It is one,
// and it pauses: whoever asks for memory at the limit looks in the kernel for some to take
// back, and several at once leave no CPU time for those who ask and answer.
func hog(dir string) {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) // threads that start later have it too
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var kept [][]byte
	for range 2 * groupMemory >> 20 {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		kept = append(kept, block)
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(time.Minute)
	fmt.Println(len(kept), "MB held")
	os.Exit(0)
}
