package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
)

// TestCacheMakesRoom has somebody else in the cgroup take what is left of its memory and
// some of the cache's: the cache gives it up, and nobody is killed.
func TestCacheMakesRoom(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a cache")
	}
	space.Needs(t, "root", os.Geteuid() == 0)
	const allowed, size = 96 << 20, 16 << 20
	const most = allowed / 100 * 95 // others take no more: it is tight, and nobody is killed
	group := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("nodens-relief-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("needs the first version of memory cgroups: %v", err)
	}
	t.Cleanup(func() { await(t, "the end of the cgroup", func() bool { return os.Remove(group) == nil }) })
	write(t, filepath.Join(group, "memory.limit_in_bytes"), fmt.Sprint(allowed))
	mix, server := startServer(t)
	at, admin := space.Free(t), space.Free(t)
	config := filepath.Join(t.TempDir(), "nodens.yaml")
	write(t, config, fmt.Sprintf("version: v1\nlisten: [%q]\nadmin: {address: %q}\ncache: {size: 16Mi}\nroutes: [{zones: [.], servers: [%q]}]\n", at, admin, server))
	var log bytes.Buffer
	startProcess(t, &log, nil, "sh", "-c", "echo $$ > "+group+"/tasks && exec "+buildBinary(t)+" serve -config "+config)
	untilListens(t, at)
	untilListens(t, admin)
	fillCache(t, at, mix, func() bool { return cacheNow(t, admin).Bytes > size*9/10 })

	room := makeRoom(t, group)
	before := room.used()
	// All that is free, and half a cache.
	for want, limit := most-before+size/2, time.Now().Add(2*time.Minute); room.taken < want; {
		if time.Now().After(limit) {
			t.Fatalf("the cache gave up too little: %d of %d bytes were there to take, %d in use before; %+v", room.taken, want, before, cacheNow(t, admin))
		}
		if room.used() > most {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		room.take(t)
	}
	now := cacheNow(t, admin)
	t.Logf("%.1f MiB in use with a full cache; %.1f taken by others, and the cache is %.1f of %.1f MiB", mib(uint64(before)), mib(uint64(room.taken)), mib(uint64(now.Bytes)), mib(uint64(now.Limit)))
	if now.Limit >= size || now.Bytes > now.Limit {
		t.Errorf("the cache is %+v", now)
	}
	client := dns.Client{Timeout: 30 * time.Second}
	if _, _, err := client.Exchange(new(dns.Msg).SetQuestion("localhost.", dns.TypeA), at.String()); err != nil {
		t.Error(err)
	}
}

// fillCache asks for names until the cache is full.
func fillCache(t *testing.T, at netip.AddrPort, mix *names.Mix, full func() bool) {
	t.Helper()
	suffix, err := names.Wire(names.WildSuffix)
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(1); !full(); seed++ {
		if seed > 60 {
			t.Fatal("the cache does not fill up")
		}
		churn, err := load.New(load.Config{
			Target: at, Outstanding: 64, Sockets: 8, Transport: load.UDP, Stages: []load.Stage{{For: 2 * time.Second}}, Timeout: 30 * time.Second,
			Source: func(int) load.Source { return mix.Zone().Unique(suffix, seed) },
		})
		if err == nil {
			_, err = churn.Run(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cacheNow is what a daemon says of its cache.
func cacheNow(t *testing.T, admin netip.AddrPort) cacheReport {
	t.Helper()
	body, err := askAdmin(t.Context(), admin.String(), http.MethodGet, "/statusz", url.Values{"format": {"json"}})
	if err != nil {
		t.Fatalf("it was killed: %v", err)
	}
	defer body.Close()
	var r struct{ Cache cacheReport }
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r.Cache
}

// room is memory of a cgroup: a file system in memory that only its processes fill.
type room struct {
	group, dir string
	taken      int
}

func makeRoom(t *testing.T, group string) *room {
	t.Helper()
	r := &room{group: group, dir: t.TempDir()}
	if err := unix.Mount("tmpfs", r.dir, "tmpfs", 0, "size=256m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(r.dir, 0); err != nil {
			t.Error(err)
		}
	})
	return r
}

// take takes a mebibyte.
func (r *room) take(t *testing.T) {
	t.Helper()
	r.taken += 1 << 20
	script := fmt.Sprintf("echo $$ > %s/tasks && exec head -c 1048576 /dev/zero > %s/%d", r.group, r.dir, r.taken)
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// used is the memory in bytes that the kernel cannot take back.
func (r *room) used() int {
	return int(cgroup{r.group[1:], firstFiles()}.used(os.DirFS("/")))
}
