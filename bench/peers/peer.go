package peers

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Setup is what a server is to do.
type Setup struct {
	// Listen is where it answers. Required.
	Listen netip.AddrPort
	// Admin is an address for a server that has one beside DNS. Required.
	Admin netip.AddrPort
	// Upstreams are the servers it asks, all of them for every name. Required.
	Upstreams []netip.AddrPort
	// Endpoints is a file of EndpointSlices that lists the upstreams, for a
	// server that can follow one. Optional.
	Endpoints string
	// Dir is an empty folder for its files. Required.
	Dir string
	// Entries is the number of answers its cache must hold. Default 100 000.
	Entries int
	// Sockets is the number of UDP sockets, for a server that lets it be
	// chosen. Default 0: its own default, one where it has none.
	Sockets int
}

// Peer is a server that can be compared.
type Peer struct {
	// Name is what a report calls it.
	Name string
	// Binaries are names under which its program is looked for.
	Binaries []string
	// Program is the peer whose program it runs too, if it is another.
	Program string
	// Debian is the package that has it, for messages; empty if none has.
	Debian string
	// Fixed says that it gives a fixed answer: its content is not judged.
	Fixed bool
	// Sockets, if set, takes the place of that of the Setup.
	Sockets int
	// version are the arguments that make it print its version.
	version []string
	// files are its configuration, by file name.
	files func(s Setup) map[string]string
	// args start it in the foreground.
	args func(s Setup) []string
	// metrics says that its admin address counts what it allocated.
	metrics bool
	// profiles says that its admin address gives CPU profiles.
	profiles bool
}

// All lists the peers in the order of a report.
func All() []Peer {
	return []Peer{
		nodens(), nodensOneSocket(), reflector(), coredns(), bareCoreDNS(), nodeCache(),
		unbound(), dnsmasq(), recursor(), dnsdist(), knot(),
	}
}

// Find looks for the peer's program: where given says, beside this program, in
// the path, and where system programs are. The error says how to get it.
func (p Peer) Find(given string) (string, error) {
	if given != "" {
		if _, err := exec.LookPath(given); err != nil {
			return "", fmt.Errorf("peers: %s: %w", p.Name, err)
		}
		return filepath.Abs(given)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("peers: find this program: %w", err)
	}
	if p.Fixed {
		return self, nil
	}
	for _, dir := range append([]string{filepath.Dir(self)}, append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin")...) {
		for _, name := range p.Binaries {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return filepath.Abs(path)
			}
		}
	}
	how := fmt.Sprintf("give it with -bin %s=FILE", p.Name)
	if p.Debian != "" {
		how = "install the package " + p.Debian + ", or " + how
	}
	return "", fmt.Errorf("peers: %s is not installed: %s", p.Name, how)
}

// Version asks a program for its version: the first line it prints that has a
// digit, without the time that some put in front.
func (p Peer) Version(path string) string {
	if len(p.version) == 0 {
		return "built in"
	}
	out, _ := exec.Command(path, p.version...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.ContainsAny(line, "0123456789") {
			return strings.TrimSpace(logTime().ReplaceAllString(line, ""))
		}
	}
	return "unknown"
}

// Profile is the URL of a CPU profile of so many seconds, "" if it has none.
func (p Peer) Profile(s Setup, seconds int) string {
	if !p.profiles {
		return ""
	}
	return fmt.Sprintf("http://%v/debug/pprof/profile?seconds=%d", s.Admin, seconds)
}

func logTime() *regexp.Regexp { return regexp.MustCompile(`^[A-Z][a-z]{2} +\d+ [\d:]+ `) }

func (s Setup) withDefaults() Setup {
	if s.Entries == 0 {
		s.Entries = 100_000
	}
	return s
}
