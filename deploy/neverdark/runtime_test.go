package neverdark

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// runtime runs containers as a kubelet has them run, by runc, without an engine: with
// the user, capabilities, no_new_privs, system calls, read-only root and mounts of a
// manifest, in the network of the node or of a pod.
type runtime struct {
	n    *node
	dir  string
	made int
}

func newRuntime(n *node) *runtime {
	n.t.Helper()
	_, err := exec.LookPath("runc")
	space.Needs(n.t, "runc", err == nil)
	_, err = exec.LookPath("setcap")
	space.Needs(n.t, "setcap", err == nil)
	r := &runtime{n: n, dir: n.dir}
	// The image: the binary with its capability, and the folders of distroless static.
	for _, folder := range []string{"etc", "run", "tmp", "var/lib"} {
		if err := os.MkdirAll(filepath.Join(r.dir, "rootfs", folder), 0o755); err != nil {
			n.t.Fatal(err)
		}
	}
	binary := filepath.Join(r.dir, "rootfs", "nodens")
	text, err := os.ReadFile(nodens)
	if err == nil {
		err = os.WriteFile(binary, text, 0o755)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	if out, err := exec.Command("setcap", "cap_net_bind_service+p", binary).CombinedOutput(); err != nil {
		n.t.Fatalf("setcap: %v: %s", err, out)
	}
	return r
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
	path := filepath.Join(r.dir, "volumes", name)
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

// object is a part of a container's specification.
type object = map[string]any

// specification is what a kubelet and its engine make of a container in a network.
func (r *runtime) specification(c container, network space.Space) object {
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755", "size=64k"}},
		{"destination": "/sys", "type": "none", "source": "/sys", "options": []string{"rbind", "ro", "nosuid", "noexec", "nodev"}},
	}
	for _, m := range c.VolumeMounts {
		options := []string{"rbind", "rw"}
		if m.ReadOnly {
			options = []string{"rbind", "ro"}
		}
		mounts = append(mounts, object{"destination": m.MountPath, "type": "bind", "source": r.volume(m.Name), "options": options})
	}
	capabilities := c.Security.capabilities()
	linux := object{"namespaces": []object{
		{"type": "pid"},
		{"type": "ipc"},
		{"type": "uts"},
		{"type": "mount"},
		{"type": "network", "path": fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), network.FD())},
	}}
	if c.Security.confined() {
		linux["seccomp"] = allowed()
	}
	uid, gid := c.Security.user()
	return object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": uid, "gid": gid}, "cwd": "/",
			"args": append([]string{"/nodens"}, c.Args...), "env": append([]string{"NODE_NAME=n1"}, c.environ...),
			"capabilities":    object{"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
			"noNewPrivileges": c.Security.keepsPrivileges(),
		},
		"root":   object{"path": filepath.Join(r.dir, "rootfs"), "readonly": c.Security.ReadOnlyRootFilesystem},
		"mounts": mounts,
		"linux":  linux,
	}
}

// run starts a container in a network.
func (r *runtime) run(c container, network space.Space) *running {
	r.n.t.Helper()
	r.made++
	id := fmt.Sprintf("neverdark-%d-%d", os.Getpid(), r.made)
	bundle := filepath.Join(r.dir, id)
	text, err := json.Marshal(r.specification(c, network))
	if err == nil {
		err = os.Mkdir(bundle, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o644)
	}
	if err != nil {
		r.n.t.Fatal(err)
	}
	r.n.t.Cleanup(func() { _ = r.runc("delete", "--force", id).Run() })
	process := r.n.Start(r.n.t, r.runc("run", "--bundle", bundle, id))
	return &running{process, r, id}
}

// runc is a command of it.
func (r *runtime) runc(args ...string) *exec.Cmd {
	return exec.Command("runc", append([]string{"--root", filepath.Join(r.dir, "runc")}, args...)...)
}

// running is a container.
type running struct {
	*space.Process
	runtime *runtime
	id      string
}

// pid is the number of its process, 0 before it runs.
func (c *running) pid() int {
	var state struct{ Pid int }
	out, err := c.runtime.runc("state", c.id).Output()
	if err != nil || json.Unmarshal(out, &state) != nil {
		return 0
	}
	return state.Pid
}

// expect waits for a line in the output, and skips where runc itself cannot work.
func (c *running) expect(t *testing.T, line string) {
	t.Helper()
	waitFor(t, c.id+" says "+line, 20*time.Second, func() bool {
		if !c.Running() {
			if strings.Contains(c.Said(), "runc run failed") && strings.Contains(c.Said(), "cgroup") {
				t.Skipf("runc cannot work here: %s", c.Said())
			}
			t.Fatalf("%s has ended:\n%s", c.id, c.Said())
		}
		return strings.Contains(c.Said(), line)
	})
}

// exec runs a command in it, as the kubelet's probes do.
func (c *running) exec(args ...string) error {
	out, err := c.runtime.runc(append([]string{"exec", c.id}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%q in %s: %w: %s", args, c.id, err, out)
	}
	return nil
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
	pid, flag := c.pid(), map[bool]int{true: 1}
	set := fmt.Sprintf("%016x", want.capabilities)
	for field, value := range map[string]string{
		"Uid":        strings.TrimSpace(strings.Repeat(fmt.Sprint(want.uid)+" ", 4)),
		"NoNewPrivs": fmt.Sprint(flag[want.noNewPrivs]), "CapPrm": set, "CapBnd": set, "CapAmb": fmt.Sprintf("%016x", 0),
		"Seccomp": fmt.Sprint(2 * flag[want.confined]),
	} {
		if got := status(t, pid, field); got != value {
			t.Errorf("%s: %s is %q, want %q", c.id, field, got, value)
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
