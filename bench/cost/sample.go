package cost

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sample is a process's account at one moment. Times and switches count from
// the process's start.
type Sample struct {
	At          time.Time     `json:"at"`
	User        time.Duration `json:"user_ns"`
	System      time.Duration `json:"system_ns"`
	Voluntary   uint64        `json:"voluntary"`   // context switches: it waited
	Involuntary uint64        `json:"involuntary"` // context switches: it was pushed aside
	RSS         uint64        `json:"rss"`         // octets
	PeakRSS     uint64        `json:"peak_rss"`    // octets, since its start
	Threads     int           `json:"threads"`
}

// CPU is user and system time together.
func (s Sample) CPU() time.Duration { return s.User + s.System }

// Read takes a sample of a process. The error says which account could not be
// read; a process that is gone is such a case.
func Read(pid int) (Sample, error) {
	s := Sample{At: time.Now()}
	cpu, err := cpuClock(pid)
	if err != nil {
		return s, fmt.Errorf("cost: read the CPU clock of process %d: %w", pid, err)
	}
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return s, fmt.Errorf("cost: read the account of process %d: %w", pid, err)
	}
	user, system, err := ticks(string(stat))
	if err != nil {
		return s, err
	}
	s.User, s.System = split(cpu, user, system)
	return s, s.readStatus(dir)
}

// Children is the number of processes that a process has started and that run,
// as far as the kernel says. Their accounts are not in its own.
func Children(pid int) int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/children", pid)) // of a good pattern: it cannot fail
	n := 0
	for _, path := range lists {
		list, _ := os.ReadFile(path) // of a thread that is gone: no children
		n += len(strings.Fields(string(list)))
	}
	return n
}

// cpuClock reads another process's CPU clock. The number of that clock is made
// as clock_getcpuclockid does.
func cpuClock(pid int) (time.Duration, error) {
	const sched = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}

// ticks finds user and system time in the text of a stat file, in clock ticks.
// The second field, the command's name in parentheses, may hold anything.
func ticks(stat string) (user, system uint64, err error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const utime, stime = 14 - 3, 15 - 3 // as numbered in proc(5), less those before
	if len(fields) <= stime {
		return 0, 0, fmt.Errorf("cost: stat has %d fields behind the name, want more than %d", len(fields), stime)
	}
	user, err = strconv.ParseUint(fields[utime], 10, 64)
	if err == nil {
		system, err = strconv.ParseUint(fields[stime], 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("cost: stat: %w", err)
	}
	return user, system, nil
}

// split divides CPU time as the ticks are divided.
func split(cpu time.Duration, user, system uint64) (time.Duration, time.Duration) {
	if user+system == 0 {
		return cpu, 0
	}
	u := time.Duration(float64(cpu) * float64(user) / float64(user+system))
	return u, cpu - u
}

// readStatus fills in memory and, thread by thread, context switches.
func (s *Sample) readStatus(dir string) error {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return fmt.Errorf("cost: read %s: %w", dir, err)
	}
	const kB = 1024
	s.RSS = number(string(status), "VmRSS:") * kB
	s.PeakRSS = number(string(status), "VmHWM:") * kB
	tasks, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return fmt.Errorf("cost: read the threads of %s: %w", dir, err)
	}
	for _, task := range tasks {
		status, err := os.ReadFile(filepath.Join(dir, "task", task.Name(), "status"))
		if err != nil {
			continue // the thread has just ended
		}
		s.Threads++
		s.Voluntary += number(string(status), "\nvoluntary_ctxt_switches:")
		s.Involuntary += number(string(status), "nonvoluntary_ctxt_switches:")
	}
	return nil
}

// number finds the number behind a key of a status file; 0 if there is none.
func number(status, key string) uint64 {
	_, rest, _ := strings.Cut(status, key)
	line, _, _ := strings.Cut(rest, "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
