package main

import (
	"testing"
	"testing/fstest"
)

func TestCgroupMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no cgroups": {nil, 0},
		"version 2, none": {map[string]string{
			"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n",
		}, 0},
		"version 2, the parent's is less": {map[string]string{
			"proc/self/cgroup":                          "0::/kubepods/pod1/c1\n",
			"sys/fs/cgroup/kubepods/pod1/c1/memory.max": "268435456\n", "sys/fs/cgroup/kubepods/pod1/memory.max": "134217728\n",
			"sys/fs/cgroup/kubepods/memory.max": "max\n",
		}, 128 << 20},
		"version 2 in a container": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "67108864\n",
		}, 64 << 20},
		"version 2, path of the host": {map[string]string{
			"proc/self/cgroup": "0::/kubepods/pod1/c1\n", "sys/fs/cgroup/memory.max": "67108864\n",
		}, 64 << 20},
		"version 1": {map[string]string{
			"proc/self/cgroup": "12:pids:/p\n5:memory:/kubepods/c1\n1:name=systemd:/x\n0::/y\n",
			"sys/fs/cgroup/memory/kubepods/c1/memory.limit_in_bytes": "209715200\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":             "9223372036854771712\n",
		}, 200 << 20},
		"version 1, none": {map[string]string{
			"proc/self/cgroup": "5:cpu,memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		"nonsense": {map[string]string{"proc/self/cgroup": "x\n0::/\n", "sys/fs/cgroup/memory.max": "-5\n"}, 0},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroupMemory(root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

func TestFitCache(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ wanted, bound, cache, limit int64 }{
		{32 * mib, 0, 32 * mib, 32*mib*8/5 + 56*mib},         // no bound
		{32 * mib, 200 * mib, 32 * mib, 32*mib*8/5 + 56*mib}, // wide
		{32 * mib, 80 * mib, 25 * mib, 72 * mib},             // less cache
		{32 * mib, 30 * mib, 1 * mib, 22 * mib},              // too little: the least there is
		{1024 * mib, 1024 * mib, (1024*9/10 - 32) * mib * 5 / 8, 1024 * mib * 9 / 10},
	} {
		cache := fitCache(c.wanted, c.bound)
		limit := memoryFor(cache, c.bound)
		near := func(got, want int64) bool { return got >= want-mib/2 && got <= want+mib/2 }
		if !near(cache, c.cache) || !near(limit, c.limit) {
			t.Errorf("%d MiB in %d: cache %d, limit %d, want %d and %d", c.wanted/mib, c.bound/mib, cache/mib, limit/mib, c.cache/mib, c.limit/mib)
		}
		if c.bound > 0 && limit >= c.bound {
			t.Errorf("%d MiB in %d: the limit %d leaves no room", c.wanted/mib, c.bound/mib, limit/mib)
		}
	}
}
