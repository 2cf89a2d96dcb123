package neverdark

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// enter puts the shell into control groups that are made for it, and goes on in
// namespaces of its own, in which boot is run. FOLDER is that of the test, GROUP the
// name of the groups.
const enter = `
for c in /sys/fs/cgroup/*; do
	[ -e $c/cgroup.procs ] || continue
	mkdir -p $c/$GROUP
	[ ! -e $c/cpuset.cpus ] || { cat $c/cpuset.cpus > $c/$GROUP/cpuset.cpus; cat $c/cpuset.mems > $c/$GROUP/cpuset.mems; }
	echo $$ > $c/$GROUP/cgroup.procs
done
exec unshare --kill-child --mount --pid --fork --uts --ipc --cgroup --net sh -ec "$BOOT"
`

// boot makes a machine that has systemd, nodens and nothing else, and starts it.
const boot = `
mount --make-rprivate /
groups=$(cd /sys/fs/cgroup && ls -d */cgroup.procs | cut -d/ -f1)
mount -t proc proc /proc
mount -t tmpfs tmpfs /sys/fs/cgroup
for c in $groups; do
	mkdir /sys/fs/cgroup/$c
	case $c in
	systemd) mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/$c ;;
	unified) mount -t cgroup2 cgroup2 /sys/fs/cgroup/$c ;;
	*) mount -t cgroup -o $c $c /sys/fs/cgroup/$c ;;
	esac
done
mount -t tmpfs tmpfs /run
mkdir -p /run/etc/new /run/etc/work /run/local/new /run/local/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc/new,workdir=/run/etc/work /etc
mount -t overlay overlay -o lowerdir=/usr/local,upperdir=/run/local/new,workdir=/run/local/work /usr/local
mount -t tmpfs tmpfs /var/lib
mount --bind $FOLDER/targets /usr/lib/systemd/system
mount --bind $FOLDER/console /dev/console
ip link set lo up
install -D -m 755 $FOLDER/nodens /usr/local/bin/nodens
install -D -m 644 $UNITS/nodens.yaml /etc/nodens/nodens.yaml
install -D -m 644 $FOLDER/slices /etc/nodens/endpoints.yaml
install -D -m 644 $UNITS/sysusers.conf /etc/sysusers.d/nodens.conf
systemd-sysusers /etc/sysusers.d/nodens.conf
install -m 644 $UNITS/nodens-guard.service $UNITS/nodens.service /etc/systemd/system/
echo nameserver 192.0.2.1 > /etc/resolv.conf
export container=test
exec /lib/systemd/systemd --system --unit=test.target --log-target=console --show-status=yes
`

// machine is a systemd under way.
type machine struct {
	t      *testing.T
	outer  *exec.Cmd
	folder string
}

// boots starts it in the folder of a test. Its groups are taken away when it is gone.
func boots(t *testing.T, folder string) *machine {
	t.Helper()
	units, err := filepath.Abs("../systemd")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("nodens-systemd-%d", os.Getpid())
	m := &machine{t, exec.Command("sh", "-ec", enter), folder}
	m.outer.Env = append(os.Environ(), "FOLDER="+folder, "UNITS="+units, "GROUP="+name, "BOOT="+boot)
	var said bytes.Buffer
	m.outer.Stdout, m.outer.Stderr = &said, &said
	if err := m.outer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.outer.Process.Kill()
		_ = m.outer.Wait()
		if t.Failed() {
			console, _ := os.ReadFile(filepath.Join(folder, "console"))
			t.Logf("%s\n%s", &said, console)
		}
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
		waitFor(t, "the end of the groups", time.Minute, func() bool { return !slices.ContainsFunc(groups, stays) })
	})
	return m
}

// stays tells whether a control group cannot be taken away with those in it.
func stays(group string) bool {
	inner, _ := filepath.Glob(group + "/*/cgroup.procs")
	for _, file := range inner {
		if stays(filepath.Dir(file)) {
			return true
		}
	}
	err := os.Remove(group)
	return err != nil && !os.IsNotExist(err)
}

// run runs a shell command in the machine.
func (m *machine) run(command string) string {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", m.outer.Process.Pid))
	out, err := exec.Command("nsenter", "-t", strings.TrimSpace(string(children)), "-m", "-p", "-n", "-C", "sh", "-c", command).CombinedOutput()
	if err != nil {
		return strings.TrimSpace(fmt.Sprintf("%s %v", out, err))
	}
	return strings.TrimSpace(string(out))
}

// TestSystemdRunsTheUnits: a systemd takes the units as they are, hears that both are
// ready, and restarts and stops them. Only in a full run, since it takes control groups
// and namespaces of every kind.
func TestSystemdRunsTheUnits(t *testing.T) {
	space.Needs(t, "root", os.Geteuid() == 0)
	if !space.Full() {
		t.Skip("starts a systemd: set NODENS_FULL=1")
	}
	for _, program := range []string{"/lib/systemd/systemd", "systemd-sysusers", "unshare", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	n := &node{t: t, dir: t.TempDir()}
	n.showEndpoints(true)
	n.write("console", "")
	if err := os.Symlink(nodens, filepath.Join(n.dir, "nodens")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(n.dir, "targets"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"sysinit", "basic", "shutdown", "network", "network-pre", "nss-lookup", "multi-user", "umount", "final"} {
		n.write("targets/"+target+".target", "[Unit]\nDefaultDependencies=no\n")
	}
	n.write("targets/test.target", "[Unit]\nWants=nodens-guard.service nodens.service\n")
	m := boots(t, n.dir)
	const isActive = "systemctl is-active nodens-guard nodens"
	active := func(what string) {
		t.Helper()
		waitFor(t, what, time.Minute, func() bool { return m.run(isActive) == "active\nactive" })
	}
	active("both are ready")
	if uid := m.run("stat -c %u /proc/$(systemctl show -p MainPID --value nodens)"); uid != "65532" {
		t.Errorf("nodens runs as user %s", uid)
	}
	for _, what := range []string{"reload nodens", "restart nodens", "restart nodens-guard"} {
		if out := m.run("systemctl " + what); out != "" {
			t.Errorf("%s: %s", what, out)
		}
		active(what)
	}
	if out := m.run("systemctl stop nodens nodens-guard && systemctl show -p Result --value nodens nodens-guard"); out != "success\n\nsuccess" {
		t.Errorf("stopped: %q", out)
	}
}
