package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// noBound is where a number means that there is no bound: the first version of cgroups
// writes a very large one.
const noBound = 1 << 60

// cgroupMemory is the least memory that the cgroups of this process allow, in bytes; 0
// when they do not bound it. root is the root of the file system.
func cgroupMemory(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	var least int64
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		// Number, controllers, path; neither number nor controllers in version 2.
		words := strings.SplitN(lines.Text(), ":", 3)
		if len(words) != 3 {
			continue
		}
		bound := int64(0)
		switch {
		case words[0] == "0" && words[1] == "":
			bound = leastBound(root, "sys/fs/cgroup", words[2], "memory.max")
		case slices.Contains(strings.Split(words[1], ","), "memory"):
			bound = leastBound(root, "sys/fs/cgroup/memory", words[2], "memory.limit_in_bytes")
		}
		if bound > 0 && (least == 0 || bound < least) {
			least = bound
		}
	}
	return least
}

// leastBound reads a bound of a group and of those it is in. In a container the mount
// may begin at our own group, and the path be that of the host: what is not there sets
// no bound.
func leastBound(root fs.FS, mount, group, file string) int64 {
	var least int64
	for {
		data, _ := fs.ReadFile(root, path.Join(mount, group, file)) // none: see above
		bound, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err == nil && bound > 0 && bound < noBound && (least == 0 || bound < least) {
			least = bound
		}
		if group == "/" || group == "." || group == "" {
			return least
		}
		group = path.Dir(group)
	}
}
