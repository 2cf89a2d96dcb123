package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
)

// TestTightCgroup churns a cache that is configured larger than its cgroup allows the
// whole process: it is smaller, and nobody is killed.
func TestTightCgroup(t *testing.T) {
	if testing.Short() {
		t.Skip("churns for some seconds")
	}
	space.Needs(t, "root", os.Geteuid() == 0)
	const allowed = 80 << 20
	group := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("nodens-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("needs the first version of memory cgroups: %v", err)
	}
	t.Cleanup(func() { await(t, "the end of the cgroup", func() bool { return os.Remove(group) == nil }) })
	if err := os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), fmt.Append(nil, allowed), 0o600); err != nil {
		t.Fatal(err)
	}
	mix, server := startServer(t)
	at, admin := space.Free(t), space.Free(t)
	config := filepath.Join(t.TempDir(), "nodens.yaml")
	write(t, config, fmt.Sprintf("version: v1\nlisten: [%q]\nadmin: {address: %q}\ncache: {size: 128Mi}\nroutes: [{zones: [.], servers: [%q]}]\n", at, admin, server))
	var log bytes.Buffer
	process := startProcess(t, &log, nil, "sh", "-c", "echo $$ > "+group+"/tasks && exec "+buildBinary(t)+" serve -config "+config)
	untilListens(t, at)
	untilListens(t, admin)
	suffix, err := names.Wire(names.WildSuffix)
	if err != nil {
		t.Fatal(err)
	}
	churn, err := load.New(load.Config{
		Target: at, Outstanding: 64, Sockets: 8, Transport: load.UDP, Stages: []load.Stage{{For: 6 * time.Second}}, Timeout: 30 * time.Second,
		Source: func(int) load.Source { return mix.Zone().Unique(suffix, 1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := churn.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Total.Right+report.Total.Late != report.Total.Sent {
		t.Errorf("%+v", report.Total)
	}
	body, err := askAdmin(t.Context(), admin.String(), http.MethodGet, "/statusz", url.Values{"format": {"json"}})
	if err != nil {
		t.Fatalf("it was killed: %v", err)
	}
	defer body.Close()
	var r struct {
		Cache  cacheReport
		Memory memoryReport
	}
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	if r.Cache.Limit >= 32<<20 || r.Memory.Limit >= allowed {
		t.Errorf("in %d bytes the cache may take %d and the process %d", int64(allowed), r.Cache.Limit, r.Memory.Limit)
	}
	peak := sample(t, process)
	failures, err := os.ReadFile(filepath.Join(group, "memory.failcnt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d names; cache of %.0f MiB full to %.1f, peak %.1f MiB of %d; the kernel had to reclaim %s times",
		report.Total.Sent, mib(uint64(r.Cache.Limit)), mib(uint64(r.Cache.Bytes)), mib(peak.PeakRSS), allowed>>20, strings.TrimSpace(string(failures)))
}
