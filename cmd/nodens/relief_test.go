package main

import (
	"fmt"
	"testing"
	"testing/fstest"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nodens-dns/nodens/forwarder/cache"
)

// memoryFiles are a cgroup of the second version with the memory that is used of 100 MiB.
func memoryFiles(used int) fstest.MapFS {
	return fstest.MapFS{
		"proc/self/cgroup":                 {Data: []byte("0::/pod\n")},
		"sys/fs/cgroup/pod/memory.max":     {Data: []byte("104857600\n")},
		"sys/fs/cgroup/pod/memory.current": {Data: fmt.Appendf(nil, "%d\n", (used+4)<<20)},
		"sys/fs/cgroup/pod/memory.stat":    {Data: fmt.Appendf(nil, "anon %d\ninactive_file %d\nactive_file %d\n", used<<20, 3<<20, 1<<20)},
	}
}

// TestRelief: while memory is tight the cache gives up one part after another, and it
// gets them back one by one when there was room for a while.
func TestRelief(t *testing.T) {
	const size = 16 << 20
	core, logs := observer.New(zap.InfoLevel)
	r := relief{log: zap.New(core)}
	c, err := cache.New(cache.Config{Bytes: size})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		used, looks int
		want        int64 // eighths in use
		shrinks     uint64
	}{
		{used: 50, looks: 20, want: 8},
		{used: 92, looks: 20, want: 8},
		{used: 93, looks: 1, want: 7, shrinks: 1},
		{used: 99, looks: 2, want: 5, shrinks: 3},
		{used: 85, looks: 30, want: 5, shrinks: 3}, // enough, and no more
		{used: 120, looks: 30, want: 1, shrinks: 7},
		{used: 50, looks: 9, want: 1, shrinks: 7},
		{used: 85, looks: 1, want: 1, shrinks: 7},
		{used: 50, looks: 9, want: 1, shrinks: 7},
		{used: 50, looks: 1, want: 2, shrinks: 7},
		{used: 50, looks: 30, want: 5, shrinks: 7},
		{used: 50, looks: 100, want: 8, shrinks: 7},
	} {
		r.root = memoryFiles(step.used)
		for range step.looks {
			r.look(c, size, 0)
		}
		if got := c.Stats().Limit; got != size/8*step.want || r.shrinks.Load() != step.shrinks {
			t.Errorf("step %d: %d of %d bytes, %d times smaller; want %d eighths and %d times", i, got, size, r.shrinks.Load(), step.want, step.shrinks)
		}
	}
	if n := logs.FilterLevelExact(zap.WarnLevel).Len(); n != 7 {
		t.Errorf("%d lines say that the cache is smaller, want 7", n)
	}
	if n := logs.FilterLevelExact(zap.InfoLevel).Len(); n != 7 {
		t.Errorf("%d lines say that it is larger, want 7", n)
	}
}

// A cache that a reload has made is as small as the one before it.
func TestReliefAfterReload(t *testing.T) {
	r := relief{log: zap.NewNop(), root: memoryFiles(95)}
	for i, c := range []struct{ size, want int64 }{
		{16 << 20, 14 << 20},
		{32 << 20, 24 << 20},
		{1 << 20, 1 << 20}, // the least there is
	} {
		made, err := cache.New(cache.Config{Bytes: c.size})
		if err != nil {
			t.Fatal(err)
		}
		r.look(made, c.size, 0)
		if got := made.Stats().Limit; got != c.want {
			t.Errorf("cache %d: %d bytes of %d, want %d", i, got, c.size, c.want)
		}
	}
	if got := r.shrinks.Load(); got != 2 {
		t.Errorf("%d times smaller, want 2", got)
	}
}

func TestCgroupFullness(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"no bound": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "1000\n"}, 0},
		"version 2, the parent is fuller": {map[string]string{
			"proc/self/cgroup":               "0::/pod/c\n",
			"sys/fs/cgroup/pod/c/memory.max": "1000\n", "sys/fs/cgroup/pod/c/memory.current": "100\n",
			"sys/fs/cgroup/pod/memory.max": "2000\n", "sys/fs/cgroup/pod/memory.current": "1900\n", "sys/fs/cgroup/pod/memory.stat": "inactive_file 300\n",
		}, 0.8},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:memory:/c\n",
			"sys/fs/cgroup/memory/c/memory.limit_in_bytes": "1000\n",
			"sys/fs/cgroup/memory/c/memory.usage_in_bytes": "900\n",
			"sys/fs/cgroup/memory/c/memory.stat":           "inactive_file 1\ntotal_inactive_file 100\ntotal_active_file 50\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":   "5000\n",
		}, 0.75},
		"without statistics all counts": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "950\n",
		}, 0.95},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroupFullness(root); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
