package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets this binary be the program itself, so that it finds its own
// reflector.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.ContainsFunc(commands(), func(c command) bool { return c.name == os.Args[1] }) {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// call runs the program with arguments.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	status = run(ctx, args, &out, &err)
	return status, out.String(), err.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMistakesStopBeforeAnyPacket(t *testing.T) {
	scenario := write(t, "s.yaml", "does: x\nphases:\n- {name: a, for: 1s, rate: 1}\nwarn: true\n")
	dot := write(t, "dot.yaml", "does: x\nload: {transport: dot}\nphases:\n- {name: a, for: 1s, rate: 1}\n")
	list := write(t, "names.txt", "example.com A\nexample.com AA\n")
	services := write(t, "svc.json", "{}")
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"nothing":            {nil, 2, "nodens-bench COMMAND -h"},
		"no command":         {[]string{"rnu"}, 2, `there is no command "rnu"`},
		"no server":          {[]string{"run"}, 1, "give one of -server, -target and -start"},
		"two servers":        {[]string{"run", "-server", "nodens", "-target", "127.0.0.1:53"}, 1, "give one of"},
		"no such server":     {[]string{"run", "-server", "bind"}, 1, "known are nodens, nodens-1, reflector"},
		"unknown flag":       {[]string{"run", "-sever", "x"}, 2, "flag provided but not defined"},
		"too much":           {[]string{"run", "-server", "nodens", "warm"}, 2, "takes 0 arguments"},
		"no such scenario":   {[]string{"run", "-server", "nodens", "-scenario", "hot"}, 1, `there is no scenario "hot"`},
		"bad scenario":       {[]string{"run", "-server", "nodens", "-scenario", scenario}, 1, scenario + `:4: unknown key "warn"`},
		"bad names":          {[]string{"run", "-target", "127.0.0.1:53", "-names", list}, 1, list + `:2: "AA" is no record type`},
		"bad services":       {[]string{"run", "-target", "127.0.0.1:53", "-services", services}, 1, services + ": the list of services has no items"},
		"both lists":         {[]string{"run", "-target", "127.0.0.1:53", "-services", services, "-names", list}, 1, "not both"},
		"not an address":     {[]string{"run", "-target", "localhost:53"}, 1, "-target"},
		"another machine":    {[]string{"run", "-target", "192.0.2.1:53"}, 1, "it would get up to 10000 queries/s for 10s"},
		"no rate":            {[]string{"run", "-target", "127.0.0.1:53", "-rate", "fast"}, 1, `takes no rate "fast"`},
		"rate of a loop":     {[]string{"compare", "-points", "saturated@5k"}, 1, `saturated takes no rate "5k"`},
		"bad point":          {[]string{"compare", "-points", "2k,lukewarm"}, 1, `there is no scenario "lukewarm"`},
		"restart compared":   {[]string{"compare", "-points", "restart"}, 1, "use run"},
		"bad pin":            {[]string{"compare", "-pin", "some"}, 1, `-pin is "some"`},
		"no rounds":          {[]string{"compare", "-rounds", "0"}, 1, "-rounds must be from 1 to 100"},
		"a peer twice":       {[]string{"compare", "-peers", "nodens,nodens"}, 1, "-peers has nodens twice"},
		"a point twice":      {[]string{"compare", "-points", "200,200"}, 1, "-points has 200 twice"},
		"out is a file":      {[]string{"compare", "-peers", "reflector", "-out", list}, 1, "report: mkdir " + list},
		"out below a file":   {[]string{"run", "-server", "reflector", "-out", list + "/x"}, 1, "report: mkdir " + list},
		"bad peer":           {[]string{"compare", "-peers", "nodens,bind"}, 1, `there is no server "bind"`},
		"bad -bin":           {[]string{"compare", "-bin", "nodens"}, 2, "is not NAME=FILE"},
		"no file":            {[]string{"report", "/nowhere/report.json"}, 1, "no such file"},
		"bad simulation":     {[]string{"simulate", "-replicas", "none"}, 1, "nodens-bench simulate"},
		"slice 0":            {[]string{"simulate", "-slice", "0"}, 1, "-slice must not be 0"},
		"jitter 0":           {[]string{"simulate", "-jitter", "0"}, 1, "-jitter must not be 0: the longest pause before a daemon's first list; -1s: none"},
		"pod 0":              {[]string{"simulate", "-pod", "0"}, 1, "-pod must not be 0"},
		"apiservers 0":       {[]string{"simulate", "-apiservers", "0"}, 1, "-apiservers must not be 0"},
		"window 0":           {[]string{"simulate", "-window", "0s"}, 1, "-window must not be 0"},
		"slice of a million": {[]string{"simulate", "-slice", "1000000"}, 1, "nodens-bench simulate: -slice is 1000000, want 1 to 1000"},
		"no nodes":           {[]string{"simulate", "-nodes", "0"}, 1, "nodens-bench simulate: -nodes must not be 0"},
		"no nodes in a list": {[]string{"simulate", "-nodes", "5,0", "-replicas", "3"}, 1, "nodens-bench simulate: -nodes is 0, want 1 to 100000"},
		"many replaced":      {[]string{"simulate", "-nodes", "5", "-replicas", "3", "-surge", "4"}, 1, "-surge is 4, want 1 to 3"},
		"bad show":           {[]string{"scenarios", "-show", "hot"}, 1, `there is no scenario "hot"`},
		"certificate":        {[]string{"run", "-target", "127.0.0.1:853", "-scenario", dot, "-ca", list}, 1, "holds no certificate"},
		"pid of nobody":      {[]string{"run", "-server", "reflector", "-pid", "1"}, 1, "-pid means nothing without -target"},
		"remote of nobody":   {[]string{"run", "-server", "reflector", "-allow-remote"}, 1, "-allow-remote means nothing without -target"},
		"ca without dot":     {[]string{"run", "-target", "127.0.0.1:53", "-insecure"}, 1, "-insecure means nothing without a scenario with transport dot"},
		"domain of nothing":  {[]string{"run", "-target", "127.0.0.1:53", "-domain", "x.y"}, 1, "-domain means nothing without -services"},
		"bin of another":     {[]string{"run", "-server", "reflector", "-bin", "unbound=/bin/true"}, 1, "unbound is not asked for"},
		"bin of nobody":      {[]string{"run", "-target", "127.0.0.1:53", "-bin", "unbound=/bin/true"}, 1, "unbound is not asked for"},
		"bin not compared":   {[]string{"compare", "-peers", "reflector", "-bin", "unbound=/bin/true"}, 1, "unbound is not asked for"},
		"nobody there":       {[]string{"run", "-target", "127.0.0.1:9"}, 1, "does not answer, so there is nothing to measure"},
		"program is missing": {[]string{"run", "-server", "unbound", "-bin", "unbound=/nowhere/unbound"}, 1, "/nowhere/unbound"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := call(t, c.args...)
			if status != c.status || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("status %d, want %d; it says\n%s%s\nwant %q", status, c.status, stdout, stderr, c.want)
			}
		})
	}
}

// interrupt ends a context once something is written.
type interrupt struct {
	bytes.Buffer
	at  string
	end context.CancelFunc
}

func (w *interrupt) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.at) {
		w.end()
	}
	return n, err
}

func TestCutShort(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		at   string // what is written when it is told to end
	}{
		"run":     {[]string{"run", "-server", "reflector", "-rate", "100", "-for", "5m"}, "sent  p50"},
		"compare": {[]string{"compare", "-peers", "reflector", "-points", "100", "-for", "2s", "-rounds", "100"}, "round 1 "},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var stdout bytes.Buffer
			stderr := &interrupt{at: c.at, end: cancel}
			status := run(ctx, c.args, &stdout, stderr)
			if status != 1 || !strings.Contains(stdout.String(), "CUT SHORT") || !strings.Contains(stderr.String(), "cut short") {
				t.Errorf("status %d, want 1\n%s%s", status, stdout.String(), stderr.String())
			}
		})
	}
}

func TestHangUpEndsTheProgram(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here")
	}
	ctx, stop := untilSignal()
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

func TestRunAndReportAgain(t *testing.T) {
	dir := t.TempDir()
	status, stdout, stderr := call(t, "run", "-server", "reflector", "-scenario", "warm", "-rate", "500", "-for", "1s", "-out", dir)
	if status != 0 || !strings.Contains(stdout, "CPU per query") {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	status, again, _ := call(t, "report", filepath.Join(dir, "report.json"))
	if status != 0 || again == "" || !strings.HasPrefix(stdout, strings.TrimSuffix(again, "\n")) {
		t.Errorf("status %d; the report differs:\n%s\n%s", status, stdout, again)
	}
	for _, name := range []string{"report.html", "report.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestOwnCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list := write(t, "names.txt", "a.example A\nb.example AAAA\n")
	status, stdout, stderr := call(t, "run", "-start", self+" reflector -addr {listen}", "-names", list, "-rate", "500", "-for", "500ms")
	if status != 0 || !strings.Contains(stdout, "250    250") {
		t.Errorf("status %d, want 250 right\n%s%s", status, stdout, stderr)
	}
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	status, stdout, stderr := call(t, "compare", "-peers", "reflector,node-cache", "-points", "500", "-for", "1s", "-rounds", "2", "-out", dir)
	if status != 0 || !strings.Contains(stdout, "1.00x") || !strings.Contains(stdout, "skipped node-cache: peers: node-cache is not installed") {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !bytes.Contains(page, []byte("not measured: node-cache")) {
		t.Errorf("the page: %v", err)
	}
}

func TestScenariosAndSimulate(t *testing.T) {
	if status, stdout, _ := call(t, "scenarios"); status != 0 || strings.Count(stdout, "\n") < 10 {
		t.Errorf("status %d\n%s", status, stdout)
	}
	if status, stdout, _ := call(t, "scenarios", "-show", "warm"); status != 0 || !strings.Contains(stdout, "does: ") {
		t.Errorf("status %d\n%s", status, stdout)
	}
	if status, stdout, stderr := call(t, "simulate", "-nodes", "100", "-jitter", "-1s", "-surge", "0"); status != 0 || !strings.Contains(stdout, "pause up to\n0s") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	status, stdout, _ := call(t, "simulate", "-nodes", "1000,15000", "-replicas", "3,nodes")
	if status != 0 || strings.Count(stdout, "\n") < 10 || !strings.Contains(stdout, "Assumed:") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}
