package neverdark

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/bench/container"
	"github.com/nodens-dns/nodens/bench/space"
)

// runtime runs the containers of a manifest, with volumes of the same names.
type runtime struct {
	n     *node
	image container.Image
}

func newRuntime(n *node) *runtime {
	n.t.Helper()
	return &runtime{n, container.NewImage(n.t, n.dir, nodens)}
}

// fill puts files into the folder of a volume.
func (r *runtime) fill(volume string, files map[string]string) {
	r.n.t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(r.volume(volume), name), []byte(text), 0o644); err != nil {
			r.n.t.Fatal(err)
		}
	}
}

// volume is the folder of a volume, which everybody may write in as in an emptyDir, or
// the file of that name if there is one.
func (r *runtime) volume(name string) string {
	r.n.t.Helper()
	path := filepath.Join(r.n.dir, "volumes", name)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return path
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		r.n.t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		r.n.t.Fatal(err)
	}
	return path
}

// run starts a container in a network.
func (r *runtime) run(c manifested, network space.Space) *running {
	r.n.t.Helper()
	var mounts []container.Mount
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, container.Mount{Source: r.volume(m.Name), Path: m.MountPath, ReadOnly: m.ReadOnly})
	}
	uid, gid := c.Security.user()
	return &running{r.image.Start(r.n.t, container.Config{
		Name: c.Name, Space: network, Args: c.Args, Env: append([]string{"NODE_NAME=n1"}, c.environ...),
		UID: uid, GID: gid, Capabilities: c.Security.capabilities(), NoNewPrivileges: c.Security.keepsPrivileges(),
		ReadOnlyRoot: c.Security.ReadOnlyRootFilesystem, Confined: c.Security.confined(), Mounts: mounts,
	})}
}

// running is a container.
type running struct{ *container.Container }

// expect waits for a line in the output, and skips where runc itself cannot work.
func (c *running) expect(t *testing.T, line string) {
	t.Helper()
	waitFor(t, c.ID+" says "+line, patience, func() bool {
		if said, cannot := c.CannotRun(); cannot {
			t.Log(said)
			space.Needs(t, "runc", false)
		}
		if !c.Running() {
			t.Fatalf("%s has ended:\n%s", c.ID, c.Said())
		}
		return strings.Contains(c.Said(), line)
	})
}

// rights is what a process may do, as the kernel says.
type rights struct {
	uid          int
	noNewPrivs   bool
	capabilities uint64 // permitted, and bounding
	confined     bool   // to a list of system calls
}

// expectRights compares them with those of the container's process.
func (c *running) expectRights(t *testing.T, want rights) {
	t.Helper()
	pid, flag := c.FirstPID(), map[bool]int{true: 1}
	set := fmt.Sprintf("%016x", want.capabilities)
	for field, value := range map[string]string{
		"Uid":        strings.TrimSpace(strings.Repeat(fmt.Sprint(want.uid)+" ", 4)),
		"NoNewPrivs": fmt.Sprint(flag[want.noNewPrivs]), "CapPrm": set, "CapBnd": set, "CapAmb": fmt.Sprintf("%016x", 0),
		"Seccomp": fmt.Sprint(2 * flag[want.confined]),
	} {
		if got := status(t, pid, field); got != value {
			t.Errorf("%s: %s is %q, want %q", c.ID, field, got, value)
		}
	}
}

// status finds a field of /proc/PID/status.
func status(t *testing.T, pid int, field string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return ""
}
