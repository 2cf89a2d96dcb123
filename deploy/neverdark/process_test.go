package neverdark

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// rss is the resident memory of a nodens in bytes, 0 when it has ended.
func (d *daemon) rss() int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", d.PID()))
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}

// descriptors is how many files a nodens has open.
func (d *daemon) descriptors() int {
	list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.PID()))
	return len(list)
}
