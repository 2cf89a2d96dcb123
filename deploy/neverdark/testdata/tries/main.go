// Tries asks the kernel for what no nodens needs, and says what became of it.
package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func main() {
	// With these together the kernel itself refuses to make a process.
	const newUser = unix.CLONE_NEWUSER | unix.CLONE_THREAD | unix.CLONE_SIGHAND | unix.CLONE_VM
	for _, try := range []struct {
		name        string
		call, first uintptr
	}{
		{"getpid", unix.SYS_GETPID, 0},
		{"bpf", unix.SYS_BPF, 0},
		{"clone", unix.SYS_CLONE, newUser},
		{"clone3", unix.SYS_CLONE3, 0},
		{"init_module", unix.SYS_INIT_MODULE, 0},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, 0},
		{"keyctl", unix.SYS_KEYCTL, 0},
		{"mount", unix.SYS_MOUNT, 0},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, 0},
		{"setns", unix.SYS_SETNS, 0},
		{"unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER},
	} {
		result := "done"
		if _, _, errno := unix.Syscall(try.call, try.first, 0, 0); errno != 0 {
			result = errno.Error()
		}
		fmt.Printf("%s: %s\n", try.name, result)
	}
}
