// Package machine says on what, and with what, something was measured. It
// starts no goroutines.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is where a measurement was made and with which build of this program.
type Machine struct {
	Time   time.Time `json:"time"`
	CPU    string    `json:"cpu"`
	Cores  int       `json:"cores"`  // that this process may use
	Memory uint64    `json:"memory"` // octets
	Kernel string    `json:"kernel"`
	OS     string    `json:"os"`
	Go     string    `json:"go"`
	// Commit is that of the source, with "modified" if it was changed.
	Commit string `json:"commit"`
	// Load is the load average of the last minute when it began: how quiet the
	// machine was.
	Load string `json:"load"`
}

// Describe describes this machine now. version is what the linker says of the
// source, "" if it says nothing; the Go command may know the commit itself.
func Describe(version string) Machine {
	return Machine{
		Time:   time.Now().Round(time.Second),
		CPU:    value("/proc/cpuinfo", "model name"),
		Cores:  runtime.NumCPU(),
		Memory: memory(),
		Kernel: kernel(),
		OS:     strings.Trim(value("/etc/os-release", "PRETTY_NAME"), `"`),
		Go:     runtime.Version(),
		Commit: commit(version),
		Load:   load(),
	}
}

// String is one line for a report.
func (m Machine) String() string {
	return fmt.Sprintf("%d x %s, %.1f GiB, Linux %s, %s, %s, commit %s, load average %s, %s",
		m.Cores, m.CPU, float64(m.Memory)/(1<<30), m.Kernel, m.OS, m.Go, m.Commit, m.Load, m.Time.Format("2006-01-02 15:04 MST"))
}

// value is what stands behind a key in a file of lines "key: value" or
// "key=value".
func value(file, key string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(strings.TrimLeft(rest, " \t:="))
		}
	}
	return "unknown"
}

func memory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return info.Totalram * uint64(info.Unit)
}

func kernel() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}

func commit(version string) string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	return revision + modified
}
