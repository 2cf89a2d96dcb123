package world

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Nodens is the binary to test: the one that NODENS_BINARY names, or this tree's,
// built into dir.
func Nodens(dir string) (string, error) {
	if path := os.Getenv("NODENS_BINARY"); path != "" {
		return path, nil
	}
	path := filepath.Join(dir, "nodens")
	build := exec.Command("go", "build", "-o", path, "github.com/nodens-dns/nodens/cmd/nodens")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// CoreDNS is the program that NODENS_COREDNS names, and whether it is there.
func CoreDNS() (path string, there bool) {
	path = os.Getenv("NODENS_COREDNS")
	_, err := os.Stat(path)
	return path, path != "" && err == nil
}

// Server is a CoreDNS that knows the names.
type Server struct {
	Port uint16
	// Bind is the address to listen on. Default: all.
	Bind netip.Addr
	// Health is the address of its health check, and LameDuck how long it serves on
	// after SIGTERM. Default: no check, no lame duck.
	Health   netip.AddrPort
	LameDuck time.Duration
	// Sockets share the port, each with a loop. Default: 1.
	Sockets int
	// Zone is the path of the file that ZoneFile wrote.
	Zone string
}

// Corefile is the server's configuration.
func (s Server) Corefile() string {
	var more string
	if s.Bind.IsValid() {
		more += fmt.Sprintf("\tbind %v\n", s.Bind)
	}
	if s.Health.IsValid() {
		more += fmt.Sprintf("\thealth %v {\n\t\tlameduck %v\n\t}\n", s.Health, s.LameDuck)
	}
	if s.Sockets > 1 {
		more += fmt.Sprintf("\tmultisocket %d\n", s.Sockets)
	}
	return fmt.Sprintf(`.:%d {
%s	errors
	template IN A pod.cluster.local {
		match ^(\d+)-(\d+)-(\d+)-(\d+)[.]pod[.]cluster[.]local[.]$
		answer "{{ .Name }} 30 IN A {{ index .Match 1 }}.{{ index .Match 2 }}.{{ index .Match 3 }}.{{ index .Match 4 }}"
	}
	file %s cluster.local
}
`, s.Port, more, s.Zone)
}
