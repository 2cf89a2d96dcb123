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

// exhaust takes the rest of the group's memory, half of it by one process that is content
// with that. So the kernel kills the nodens: its score is what it has and the limit of the
// group beside it, and who held all of the memory would have the same.
func (g group) exhaust(d *daemon) {
	g.t.Helper()
	var hogs []*space.Process
	for _, most := range []int{groupMemory / 2, groupMemory} {
		hog := exec.Command("/proc/self/exe")
		hog.Env = append(os.Environ(), "NEVERDARK_HOG="+g.dir, fmt.Sprintf("NEVERDARK_HOG_BYTES=%d", most))
		hogs = append(hogs, d.n.Start(g.t, hog))
	}
	select {
	case <-d.Done():
	case <-time.After(time.Minute):
		g.t.Fatalf("nobody ran out of memory; the hogs said:\n%s%s", hogs[0].Said(), hogs[1].Said())
	}
	for _, hog := range hogs {
		hog.End(syscall.SIGKILL)
	}
}

// hog enters the group and takes memory, a step at a time, until it has enough or is
// killed. One alone comes to the limit, and it pauses: whoever asks for memory there looks
// in the kernel for some to take back, and several at once leave no CPU time for those who
// ask and answer.
func hog(dir string) {
	most, err := strconv.Atoi(os.Getenv("NEVERDARK_HOG_BYTES"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	// Threads that start later have it too. Beside other tests it would get nowhere at the
	// lowest priority.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, space.Form(10, 19))
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var kept [][]byte
	for range most >> 20 {
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
