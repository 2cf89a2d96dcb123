package main

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/cost"
	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
)

// Bounds of the released binary, in MiB.
const (
	maxBinary = 40
	maxIdle   = 30
	budget    = 32  // cache.size of the test
	overhead  = 1.6 // times the budget, beside the idle memory, at the peak
)

func mib(octets uint64) float64 { return float64(octets) / (1 << 20) }

// buildBinary builds the program as it is released.
func buildBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodens")
	c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	c.Env = append(c.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// TestFootprint fills and churns the cache of the real program with names that
// are asked once each, and looks at what the kernel gives the process.
func TestFootprint(t *testing.T) {
	if testing.Short() {
		t.Skip("churns for some seconds")
	}
	asked := space.Form[uint64](200_000, 400_000)
	binary := buildBinary(t)
	if size := fileSize(t, binary); mib(size) > maxBinary {
		t.Errorf("the binary has %.1f MiB, want at most %d", mib(size), maxBinary)
	}
	mix, server := startServer(t)
	at := space.Free(t)
	config := filepath.Join(t.TempDir(), "nodens.yaml")
	write(t, config, fmt.Sprintf("version: v1\nlisten: [%q]\nadmin: {address: 127.0.0.1:0}\ncache: {size: %dMi}\nroutes: [{zones: [.], servers: [%q]}]\n", at, budget, server))
	var log bytes.Buffer
	process := startProcess(t, &log, []string{"GODEBUG=gctrace=1"}, binary, "serve", "-config", config)
	untilListens(t, at)
	idle := sample(t, process)
	if mib(idle.RSS) > maxIdle {
		t.Errorf("idle: %.1f MiB resident, want at most %d", mib(idle.RSS), maxIdle)
	}
	suffix, err := names.Wire(names.WildSuffix)
	if err != nil {
		t.Fatal(err)
	}
	run, err := load.New(load.Config{
		Target: at, Outstanding: 64, Sockets: 8, Transport: load.UDP, Stages: []load.Stage{{}}, Queries: asked, Timeout: 30 * time.Second,
		Source: func(int) load.Source { return mix.Zone().Unique(suffix, 1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := run.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Total.Right+report.Total.Late != asked {
		t.Errorf("%+v of %d names", report.Total, asked)
	}
	peak := sample(t, process)
	if limit := overhead*budget + mib(idle.RSS); mib(peak.PeakRSS) > limit {
		t.Errorf("%.1f MiB resident at the peak, want at most %.1f", mib(peak.PeakRSS), limit)
	}
	_ = process.Process.Kill() // so that the log is whole
	_ = process.Wait()
	gc := regexp.MustCompile(`gc \d+ @[\d.]+s (\d+)%`).FindAllStringSubmatch(log.String(), -1)
	if len(gc) == 0 {
		t.Fatalf("no collection was traced:\n%s", &log)
	}
	t.Logf("%d names; idle %.1f MiB, peak %.1f MiB; %d collections took %s %% of the CPU time",
		report.Total.Sent, mib(idle.RSS), mib(peak.PeakRSS), len(gc), gc[len(gc)-1][1])
}

func sample(t *testing.T, c *exec.Cmd) cost.Sample {
	t.Helper()
	s, err := cost.Read(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if s.RSS == 0 || s.PeakRSS == 0 {
		t.Fatal("the process has ended")
	}
	return s
}

// untilListens waits for the TCP side, which is bound after the UDP side.
func untilListens(t *testing.T, at netip.AddrPort) {
	t.Helper()
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", at.String()); err == nil {
			_ = c.Close()
			time.Sleep(500 * time.Millisecond) // until the start is over
			return
		}
	}
	t.Fatalf("nothing listens on %v", at)
}

func fileSize(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(info.Size())
}
