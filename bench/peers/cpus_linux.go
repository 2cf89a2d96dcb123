package peers

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Usable are the CPUs that this process may use, in order.
func Usable() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var all []int
	for cpu := range 8 * len(set) * 8 {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all
}

// PinSelf keeps every thread of this process to some CPUs; threads made later
// inherit it from those that make them. No CPUs means no change.
func PinSelf(cpus []int) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("peers: list the threads of this process: %w", err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		if err := pinThread(id, cpus); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}

func pinThread(id int, cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(id, &set); err == unix.ESRCH {
		return err // a thread that has just ended
	} else if err != nil {
		return fmt.Errorf("peers: keep a thread to the CPUs %v: %w", cpus, err)
	}
	return nil
}
