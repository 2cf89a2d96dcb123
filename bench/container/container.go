package container

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/bench/space"
)

// Config says what is run, and with what rights.
type Config struct {
	// Name is a part of the container's id, for people.
	Name string
	// Space is the network that it is in. Required.
	Space space.Space
	// Args follow the entry point, and Env are lines NAME=VALUE.
	Args, Env []string
	// UID and GID are its user. Default: root.
	UID, GID uint32
	// Capabilities are all that it can have, without "CAP_".
	Capabilities []string
	// NoNewPrivileges and ReadOnlyRoot are as in a securityContext, where the first is
	// called allowPrivilegeEscalation and turned around. Default: false.
	NoNewPrivileges, ReadOnlyRoot bool
	// Confined gives it the engine's list of system calls, RuntimeDefault. Default: all.
	Confined bool
	// Mounts are its volumes.
	Mounts []Mount
	// Memory is its limit in bytes. Default: none.
	Memory int64
}

// Mount is a folder or a file of the machine that the container sees.
type Mount struct {
	Source, Path string
	ReadOnly     bool
}

// DefaultCapabilities are those that engines give to a container which drops none.
func DefaultCapabilities() []string {
	return []string{
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
		"NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
	}
}

// Container is a running container. Its signals go to its first process.
type Container struct {
	*space.Process
	// ID is the name that runc knows it by.
	ID    string
	state string // folder
}

// Start starts a container. Each has a root of its own.
func (i Image) Start(t testing.TB, c Config) *Container {
	t.Helper()
	bundle, err := os.MkdirTemp(i.dir, fmt.Sprintf("nodens-%d-%s-", os.Getpid(), c.Name))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(bundle, "root")
	err = os.Chmod(bundle, 0o755) // another user has to find its binary
	if err == nil {
		err = i.unpack(root)
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(c.specification(root))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &Container{ID: filepath.Base(bundle), state: filepath.Join(i.dir, "runc")}
	t.Cleanup(func() { _ = r.runc(context.Background(), "delete", "--force", r.ID).Run() })
	r.Process = c.Space.Start(t, r.runc(context.Background(), "run", "--bundle", bundle, r.ID))
	return r
}

func (c *Container) runc(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "runc", append([]string{"--root", c.state}, args...)...)
}

// FirstPID is the number of its first process as the machine counts, 0 before it runs.
func (c *Container) FirstPID() int {
	var state struct{ Pid int }
	out, err := c.runc(context.Background(), "state", c.ID).Output()
	if err != nil || json.Unmarshal(out, &state) != nil {
		return 0
	}
	return state.Pid
}

// Exec runs a command in the container with the container's rights, as exec probes do,
// and returns what it printed. It is an error if the command fails.
func (c *Container) Exec(ctx context.Context, command ...string) (string, error) {
	out, err := c.runc(ctx, append([]string{"exec", c.ID}, command...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s in %s: %w: %s", strings.Join(command, " "), c.ID, err, out)
	}
	return string(out), err
}

// CannotRun tells whether runc itself cannot work on this machine, and what it said.
func (c *Container) CannotRun() (said string, cannot bool) {
	said = c.Said()
	return said, !c.Running() && strings.Contains(said, "runc run failed") && strings.Contains(said, "cgroup")
}
