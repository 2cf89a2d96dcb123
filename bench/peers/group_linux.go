package peers

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// awaitGroup waits for a leader's end, and ends what is left of its group then.
// The leader's number is nobody else's until cmd.Wait has taken it away.
func awaitGroup(leader int) {
	for unix.Waitid(unix.P_PID, leader, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		continue
	}
	if !groupRuns(leader) {
		return
	}
	how, until := unix.SIGTERM, time.Now().Add(grace)
	for _ = unix.Kill(-leader, how); groupRuns(leader); time.Sleep(10 * time.Millisecond) {
		if how == unix.SIGTERM && time.Now().After(until) {
			how = unix.SIGKILL
			_ = unix.Kill(-leader, how)
		}
	}
}

// groupRuns tells whether a process of this group runs. One that has ended and
// that nobody waits for holds no port; a signal cannot tell it from the others.
func groupRuns(group int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // of a constant: it cannot fail
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // gone meanwhile
		}
		// Behind the name in parentheses: state, parent, group.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && !strings.Contains("ZX", fields[0]) {
			return true
		}
	}
	return false
}
