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
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// runtime runs containers as a kubelet has them run, by runc, without an engine: with
// the user, capabilities, no_new_privs, read-only root and mounts of a manifest, in the
// network of the node. Seccomp profiles are the engine's and not tried.
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
	// The image: the binary with its capability, and nothing else.
	binary := filepath.Join(r.dir, "rootfs", "nodens")
	text, err := os.ReadFile(nodens)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(binary), 0o755)
	}
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

// volume is the folder of a volume, which everybody may write in as in an emptyDir.
func (r *runtime) volume(name string) string {
	r.n.t.Helper()
	path := filepath.Join(r.dir, "volumes", name)
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

// specification is what a kubelet and its engine make of a container.
func (r *runtime) specification(c container) object {
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
	var capabilities []string
	for _, name := range c.Security.Capabilities.Add {
		capabilities = append(capabilities, "CAP_"+name)
	}
	escalates := c.Security.AllowPrivilegeEscalation
	return object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": *c.Security.RunAsUser, "gid": *c.Security.RunAsGroup},
			"args": append([]string{"/nodens"}, c.Args...), "env": []string{"NODE_NAME=n1"}, "cwd": "/",
			"capabilities":    object{"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
			"noNewPrivileges": escalates != nil && !*escalates,
		},
		"root":   object{"path": filepath.Join(r.dir, "rootfs"), "readonly": c.Security.ReadOnlyRootFilesystem},
		"mounts": mounts,
		"linux": object{"namespaces": []object{
			{"type": "pid"},
			{"type": "ipc"},
			{"type": "uts"},
			{"type": "mount"},
			{"type": "network", "path": fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.n.FD())},
		}},
	}
}

// run starts a container.
func (r *runtime) run(c container) *running {
	r.n.t.Helper()
	r.made++
	id := fmt.Sprintf("neverdark-%d-%d", os.Getpid(), r.made)
	bundle := filepath.Join(r.dir, id)
	text, err := json.Marshal(r.specification(c))
	if err == nil {
		err = os.Mkdir(bundle, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o644)
	}
	if err != nil {
		r.n.t.Fatal(err)
	}
	root := filepath.Join(r.dir, "runc")
	r.n.t.Cleanup(func() { _ = exec.Command("runc", "--root", root, "delete", "--force", id).Run() })
	process := r.n.Start(r.n.t, exec.Command("runc", "--root", root, "run", "--bundle", bundle, id))
	return &running{process, r, id}
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
	out, err := exec.Command("runc", "--root", filepath.Join(c.runtime.dir, "runc"), "state", c.id).Output()
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

// TestManifestsRun runs the containers of a shipped manifest with exactly the rights it
// gives them.
func TestManifestsRun(t *testing.T) {
	const bind, admin = "0000000000000400", "0000000000001000" // NET_BIND_SERVICE, NET_ADMIN
	for _, name := range []string{"link-local.yaml", "link-local-1.25.yaml"} {
		t.Run(name, func(t *testing.T) {
			n := newNodeAlone(t, hostnet.LinkLocal)
			r := newRuntime(n)
			manifest := readManifest(t, filepath.Join("..", "manifests", name))
			config := r.volume("config")
			slices, err := os.ReadFile(filepath.Join(n.dir, "slices"))
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"slices": string(slices), "nodens.yaml": `version: v1
listen: ["169.254.20.10:53", "[fd00:90de:d95::1]:53"]
host: {mode: link-local}
routes: [{zones: [.], topology: {file: /etc/nodens/slices, namespace: kube-system, service: kube-dns}}]
log: {level: info, format: console}
`} {
				if err := os.WriteFile(filepath.Join(config, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			guard := r.run(manifest.find(t, "guard"))
			guard.expect(t, "nodens guards")
			serve := r.run(manifest.find(t, "nodens"))
			serve.expect(t, "nodens serves")
			for _, addr := range []string{own4 + ":53", "[" + own6 + "]:53"} {
				inARow(t, "nodens answers at "+addr, 10*time.Second, func() bool { return byNodens(n.Routed, addr) })
				if err := asks(n.Bridged, "tcp", addr); err != nil {
					t.Errorf("over TCP at %s: %v", addr, err)
				}
			}
			inARow(t, "the node's own queries reach it", 10*time.Second, func() bool { return byNodens(n.Space, own4+":53") })
			for _, c := range []struct {
				of          *running
				uid, rights string
			}{{guard, "0", admin}, {serve, "65532", bind}} {
				pid := c.of.pid()
				got := []string{status(t, pid, "Uid"), status(t, pid, "NoNewPrivs"), status(t, pid, "CapPrm"), status(t, pid, "CapBnd"), status(t, pid, "CapAmb")}
				want := []string{strings.TrimSpace(strings.Repeat(c.uid+" ", 4)), "1", c.rights, c.rights, strings.Repeat("0", 16)}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: user, no_new_privs, permitted, bounding and ambient set are %q, want %q", c.of.id, got, want)
				}
			}
		})
	}
}
