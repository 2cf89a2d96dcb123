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

// cgroup is a memory cgroup that this process is in.
type cgroup struct {
	folder string
	files  cgroupFiles
}

// cgroupFiles are the names of its files, and of the part of memory.stat that holds
// copies of files.
type cgroupFiles struct {
	bound, used string
	copies      []string
}

func firstFiles() cgroupFiles {
	return cgroupFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"}}
}

func secondFiles() cgroupFiles {
	return cgroupFiles{"memory.max", "memory.current", []string{"inactive_file", "active_file"}}
}

// cgroups are those whose memory counts for this process, innermost first. root is the
// root of the file system.
func cgroups(root fs.FS) []cgroup {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var all []cgroup
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		// Number, controllers, path; neither number nor controllers in version 2.
		words := strings.SplitN(lines.Text(), ":", 3)
		if len(words) != 3 {
			continue
		}
		switch {
		case words[0] == "0" && words[1] == "":
			all = append(all, lineage("sys/fs/cgroup", words[2], secondFiles())...)
		case slices.Contains(strings.Split(words[1], ","), "memory"):
			all = append(all, lineage("sys/fs/cgroup/memory", words[2], firstFiles())...)
		}
	}
	return all
}

// lineage is a group and those it is in. In a container the mount may begin at our own
// group, and the path be that of the host: some of these are not there.
func lineage(mount, group string, files cgroupFiles) []cgroup {
	var all []cgroup
	for {
		all = append(all, cgroup{path.Join(mount, group), files})
		if group == "/" || group == "." || group == "" {
			return all
		}
		group = path.Dir(group)
	}
}

// bound is the memory that it allows in bytes, 0 for any.
func (g cgroup) bound(root fs.FS) int64 {
	if n := g.read(root, g.files.bound); n < noBound {
		return n
	}
	return 0
}

// used is the memory in bytes that the kernel cannot take back by forgetting copies of
// files.
func (g cgroup) used(root fs.FS) int64 {
	used := g.read(root, g.files.used)
	text, _ := fs.ReadFile(root, path.Join(g.folder, "memory.stat")) // without it all of it counts
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && slices.Contains(g.files.copies, name) {
			used -= n
		}
	}
	return max(used, 0)
}

// read is the number in a file, 0 without one.
func (g cgroup) read(root fs.FS, file string) int64 {
	text, _ := fs.ReadFile(root, path.Join(g.folder, file))
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// cgroupMemory is the least memory that the cgroups of this process allow, in bytes; 0
// when they do not bound it.
func cgroupMemory(root fs.FS) int64 {
	var least int64
	for _, g := range cgroups(root) {
		if bound := g.bound(root); bound > 0 && (least == 0 || bound < least) {
			least = bound
		}
	}
	return least
}

// cgroupFullness is the part that is used of the memory that a cgroup of this process
// allows, of the fullest; 0 when none bounds it.
func cgroupFullness(root fs.FS) float64 {
	var fullest float64
	for _, g := range cgroups(root) {
		if bound := g.bound(root); bound > 0 {
			fullest = max(fullest, float64(g.used(root))/float64(bound))
		}
	}
	return fullest
}
