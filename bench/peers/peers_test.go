package peers_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/peers"
)

func setup(t *testing.T) peers.Setup {
	t.Helper()
	return peers.Setup{
		Listen: netip.MustParseAddrPort("127.0.0.1:10001"), Admin: netip.MustParseAddrPort("127.0.0.1:10002"),
		Upstreams: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.11:10011"), netip.MustParseAddrPort("127.0.0.12:10012")},
		Dir:       t.TempDir(),
	}
}

// Every server is told where to listen, whom to ask, and to keep to one thread
// where it could use more.
func TestConfigurations(t *testing.T) {
	for _, p := range peers.All() {
		s := setup(t)
		c, err := p.Command("/bin/true", s)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(c.Args, " ")
		files, err := filepath.Glob(filepath.Join(s.Dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		want := []string{"127.0.0.1", "10001"}
		if !p.Fixed {
			want = append(want, "127.0.0.11", "10011", "127.0.0.12", "10012")
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not know %s:\n%s", p.Name, w, text)
			}
		}
	}
}

func TestMissingPrograms(t *testing.T) {
	t.Setenv("PATH", "")
	for _, p := range peers.All() {
		path, err := p.Find("")
		switch {
		case p.Fixed && err != nil:
			t.Errorf("%s is built in: %v", p.Name, err)
		case err != nil && !strings.Contains(err.Error(), "-bin "+p.Name+"=FILE"):
			t.Errorf("%s: %v does not say what to do", p.Name, err)
		case err == nil && !filepath.IsAbs(path):
			t.Errorf("%s is %s", p.Name, path)
		}
	}
	if _, err := peers.All()[0].Find("/nowhere/nodens"); err == nil {
		t.Error("a program that is given and missing is found")
	}
}

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	start := func(script string) *peers.Process {
		t.Helper()
		p, err := peers.Command{Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir, CPUs: peers.Usable()[:1]}.Start()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ends := start("echo some trouble; exit 3")
	<-ends.Ended()
	if err := ends.Failed(); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "some trouble") {
		t.Errorf("%v", err)
	}
	ends.Stop() // of one that has ended

	for name, end := range map[string]func(*peers.Process){"stop": (*peers.Process).Stop, "kill": (*peers.Process).Kill} {
		p := start("sleep 100")
		if p.Failed() != nil {
			t.Errorf("%s: failed while it runs", name)
		}
		began := time.Now()
		end(p)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

// One that does not listen is killed, with what it started.
func TestDeafProcessIsKilled(t *testing.T) {
	p, err := peers.Command{Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; sleep 100 & wait; wait"}, Dir: t.TempDir()}.Start()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // let it go deaf
	began := time.Now()
	p.Stop()
	if took := time.Since(began); took < time.Second || took > 10*time.Second {
		t.Errorf("it took %v, want about 3 s", took)
	}
}

// A command may start the server and wait for it, or leave it behind: either way
// nothing runs on.
func TestWhatACommandStartsEndsWithIt(t *testing.T) {
	for name, script := range map[string]string{
		"it waits":           "sleep 1000 & echo $! >child.new; mv child.new child; wait",
		"it leaves it":       "sleep 1000 & echo $! >child.new; mv child.new child",
		"the child is deaf":  "(trap '' TERM; exec sleep 1000) & echo $! >child.new; sleep 0.2; mv child.new child; wait",
		"child of the child": "sh -c 'sleep 1000 & echo $! >child.new; mv child.new child; wait' & wait",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p, err := peers.Command{Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir}.Start()
			if err != nil {
				t.Fatal(err)
			}
			child := ""
			for deadline := time.Now().Add(time.Minute); child == "" && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				data, _ := os.ReadFile(filepath.Join(dir, "child"))
				child = strings.TrimSpace(string(data))
			}
			p.Stop()
			if child == "" {
				t.Fatalf("it started nothing: %s", p.Output())
			}
			stat, _ := os.ReadFile(filepath.Join("/proc", child, "stat"))
			if strings.Contains(string(stat), "(sleep)") && !strings.Contains(string(stat), ") Z ") {
				t.Errorf("what it started runs on: %s", stat)
			}
		})
	}
}
