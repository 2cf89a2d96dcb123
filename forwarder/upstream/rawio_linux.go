package upstream

import (
	"syscall"
	"unsafe"
)

// readRaw and writeRaw are read(2) and write(2) on a socket that never blocks.
// They do not tell the scheduler, as calls that may block must: telling it wakes
// the runtime's monitor thread, and at a few thousand queries a second that
// costs more than the query. The memory of b is only used during the call.

func readRaw(fd uintptr, b []byte) (int, error) { return ioRaw(syscall.SYS_READ, fd, b) }

func writeRaw(fd uintptr, b []byte) (int, error) { return ioRaw(syscall.SYS_WRITE, fd, b) }

func ioRaw(call, fd uintptr, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
