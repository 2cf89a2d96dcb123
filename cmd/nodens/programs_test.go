package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// program is a real one that looks up names with the resolver of its kind.
type program struct {
	name  string
	needs []string // what must be installed
	// make prepares it in a folder and returns its command, to which the name is
	// added.
	make func(t *testing.T, dir string) []string
	env  []string
	// habit names the outcomes that are its own, of those of dnstest.
	habit func(t *testing.T, command []string) string
}

func programs() []program {
	self := func(*testing.T, string) []string { return []string{os.Args[0]} }
	libc := always("glibc")
	return []program{
		{name: "glibc", needs: []string{"cc"}, make: compiled("libc.c", "cc"), habit: libc},
		{name: "musl", needs: []string{"musl-gcc"}, make: compiled("libc.c", "musl-gcc", "-static"), habit: muslHabit},
		{name: "go", make: self, env: []string{"NODENS_TEST_LOOKUP=yes", "GODEBUG=netdns=go"}, habit: always("go")},
		{name: "go with cgo", needs: []string{"cc"}, make: self, env: []string{"NODENS_TEST_LOOKUP=yes", "GODEBUG=netdns=cgo"}, habit: libc},
		{name: "c-ares", needs: []string{"cc", "c-ares"}, make: compiled("cares.c", "cc", "-lcares"), habit: caresHabit},
		{name: "busybox", needs: []string{"busybox"}, make: func(*testing.T, string) []string { return []string{"busybox", "nslookup"} }, habit: always("busybox")},
		{name: "node", needs: []string{"node"}, make: script("lookup.js", "node"), habit: caresHabit},
		{name: "java", needs: []string{"java", "javac"}, make: func(t *testing.T, dir string) []string {
			toBuild(t, "javac", "-d", dir, "testdata/clients/Lookup.java")
			return []string{"java", "-cp", dir, "Lookup"}
		}, habit: libc},
	}
}

func always(habit string) func(*testing.T, []string) string {
	return func(*testing.T, []string) string { return habit }
}

// muslHabit goes by the version, which the dynamic loader tells.
func muslHabit(t *testing.T, _ []string) string {
	t.Helper()
	loaders, _ := filepath.Glob("/lib/ld-musl-*.so.1")
	space.Needs(t, "musl-gcc", len(loaders) > 0)
	out, _ := exec.Command(loaders[0]).CombinedOutput() // without a program it fails
	t.Logf("%s", out)
	for _, before := range []string{"Version 1.1.", "Version 1.2.0", "Version 1.2.1", "Version 1.2.2", "Version 1.2.3"} {
		if strings.Contains(string(out), before) {
			return "musl 1.2.3"
		}
	}
	return "musl 1.2.4"
}

// caresHabit goes by the version, which the program tells.
func caresHabit(t *testing.T, command []string) string {
	t.Helper()
	out, err := exec.Command(command[0], append(command[1:], "-version")...).CombinedOutput()
	for _, known := range []string{"1.18", "1.34"} {
		if strings.HasPrefix(string(out), known+".") {
			return "c-ares " + known
		}
	}
	t.Skipf("there is no script of c-ares %s (%v)", out, err)
	return ""
}

// compiled makes a program of C; what starts with -l goes to the end.
func compiled(source, compiler string, flags ...string) func(*testing.T, string) []string {
	return func(t *testing.T, dir string) []string {
		t.Helper()
		out := filepath.Join(dir, "lookup")
		toBuild(t, compiler, append([]string{"-Wall", "-D_GNU_SOURCE", "-o", out, filepath.Join("testdata/clients", source)}, flags...)...)
		return []string{out}
	}
}

func script(source, interpreter string) func(*testing.T, string) []string {
	return func(t *testing.T, _ string) []string {
		t.Helper()
		path, err := filepath.Abs(filepath.Join("testdata/clients", source))
		if err != nil {
			t.Fatal(err)
		}
		return []string{interpreter, path}
	}
}

func toBuild(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// present says whether a program, or c-ares for C, is installed.
func present(t *testing.T, what string) bool {
	t.Helper()
	if what != "c-ares" {
		return installed(what)
	}
	return exec.Command("cc", "-E", "-include", "ares.h", "-o", os.DevNull, "-xc", os.DevNull).Run() == nil
}

// lookUp is what this test binary does as the Go program.
func lookUp(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, err := net.DefaultResolver.LookupIPAddr(ctx, name)
	var failure *net.DNSError
	switch {
	case err == nil:
		for _, a := range found {
			fmt.Println(a.IP)
		}
	case errors.As(err, &failure) && failure.IsNotFound:
		fmt.Println("none")
	case errors.As(err, &failure) && failure.IsTemporary:
		fmt.Println("again")
	default:
		fmt.Println(err)
	}
	os.Exit(0)
}

// TestPrograms has real programs meet each situation of a server: what they
// find, and how many queries that takes. A program that is missing skips.
func TestPrograms(t *testing.T) {
	space.Needs(t, "root", os.Geteuid() == 0)
	space.Needs(t, "unshare", installed("unshare", "mount"))
	var ready []*looker
	// Addresses that no other run of this test has: nodens shares its own.
	high, low := byte(64+rand.IntN(128)), byte(rand.IntN(256))
	for i, p := range programs() {
		dir := t.TempDir()
		t.Run(p.name, func(t *testing.T) {
			for _, what := range p.needs {
				space.Needs(t, what, present(t, what))
			}
			ready = append(ready, newLooker(t, p, netip.AddrFrom4([4]byte{127, high, low, byte(i + 1)}), dir))
		})
	}
	var waiting sync.WaitGroup // for servers that are silent
	for _, l := range ready {
		l.serve(t)
		waiting.Go(func() { l.play(t) })
	}
	waiting.Wait()
}

// looker is a program that looks up names, with a daemon of its own.
type looker struct {
	program
	at         netip.AddrPort
	command    []string
	outcomes   map[string]dnstest.Found
	situations []dnstest.Situation
	server     *dnstest.Server
	daemon     *house
	conf       string // what it finds in the place of /etc/resolv.conf
}

// newLooker prepares a program in a folder.
func newLooker(t *testing.T, p program, address netip.Addr, dir string) *looker {
	t.Helper()
	l := &looker{program: p, at: netip.AddrPortFrom(address, 53)}
	l.command = p.make(t, dir)
	l.outcomes = dnstest.Outcomes()[p.habit(t, l.command)]
	return l
}

func (l *looker) serve(t *testing.T) {
	t.Helper()
	l.situations = dnstest.Situations(t)
	l.server = dnstest.Serve(t, dnstest.ByLabel(l.situations))
	l.daemon = serve(t, fmt.Sprintf("listen: [%q]\nroutes: [{zones: [.], servers: [%q], timeout: %v}]\n", l.at, l.server.Addr(), dnstest.Budget))
	l.conf = filepath.Join(t.TempDir(), "resolv.conf")
	write(t, l.conf, fmt.Sprintf("nameserver %v\n", l.at.Addr()))
}

// play takes the program through all situations. How long others' programs wait
// is not ours to say: what a busy machine spoiled is tried again, some times, with a
// name that nobody has asked for.
func (l *looker) play(t *testing.T) {
	t.Helper()
	for _, s := range l.situations {
		var failure string
		for try := range 5 {
			if failure = l.meet(s, fmt.Sprintf("%s.try%d.test.", s.Name, try)); failure == "" {
				break
			}
			t.Logf("%s, %s: %s", l.name, s.Name, failure)
		}
		if failure != "" {
			t.Errorf("%s, %s: %s", l.name, s.Name, failure)
		}
	}
}

// meet has the program look up one name; the text is what went wrong.
func (l *looker) meet(s dnstest.Situation, name string) string {
	before := l.daemon.queries()
	out := l.lookUp(name)
	after := l.daemon.queries()
	got := dnstest.Found{Answer: answerIn(out, l.at), UDP: after[0] - before[0], TCP: after[1] - before[1]}
	want := l.outcomes[s.Name]
	if s.Name == "drop" && got.UDP == want.UDP+1 {
		// Its patience with a silent server follows what it measured of others,
		// and ended before ours.
		got.UDP--
		s.Asked = l.server.SeenFor(name)
	}
	if got != want {
		return fmt.Sprintf("%v; want %v", got, want)
	}
	if asked := l.server.SeenFor(name); asked != s.Asked {
		return fmt.Sprintf("the server was asked %d times, want %d", asked, s.Asked)
	}
	return ""
}

// lookUp runs the program.
func (l *looker) lookUp(name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	args := append([]string{"--mount", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, l.conf}, l.command...)
	c := exec.CommandContext(ctx, "unshare", append(args, name)...)
	c.Env = append(os.Environ(), l.env...)
	out, _ := c.CombinedOutput() // what it prints tells
	return string(out)
}

// queries are those of clients so far, by transport.
func (h *house) queries() (n [2]int) {
	for _, z := range h.current.Load().forwarder.Stats().Zones {
		for proto := range n {
			for _, families := range z.Requests[proto] {
				for _, count := range families {
					n[proto] += int(count)
				}
			}
		}
	}
	return n
}

// answerIn counts the addresses that a program printed, each once, without its
// server's own; or it is the word for what went wrong.
func answerIn(out string, server netip.AddrPort) string {
	var count [2]int
	seen := map[netip.Addr]bool{server.Addr(): true}
	for _, field := range strings.Fields(out) {
		a, err := netip.ParseAddr(field)
		switch {
		case err != nil || seen[a]:
			continue
		case a.Is4():
			count[0]++
		default:
			count[1]++
		}
		seen[a] = true
	}
	switch {
	case count[0]+count[1] > 0:
		return dnstest.Tally(count[0], count[1])
	case strings.Contains(out, "SERVFAIL"): // busybox
		return "again"
	}
	return strings.TrimSpace(out)
}
