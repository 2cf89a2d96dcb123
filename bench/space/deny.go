package space

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// DenyNetfilter makes the kernel of this thread, and of programs that it executes, one
// that has nothing of netfilter: to open its netlink fails as there. Nobody else may use
// the thread afterwards.
func DenyNetfilter() error {
	const (
		load     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		unless   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K // Jf is how far to jump then
		answer   = unix.BPF_RET | unix.BPF_K
		callAt   = 0
		domainAt = 16 // the first argument of socket
		protoAt  = 32 // and the third
	)
	filter := []unix.SockFilter{
		{Code: load, K: callAt},
		{Code: unless, Jf: 5, K: unix.SYS_SOCKET},
		{Code: load, K: domainAt},
		{Code: unless, Jf: 3, K: unix.AF_NETLINK},
		{Code: load, K: protoAt},
		{Code: unless, Jf: 1, K: unix.NETLINK_NETFILTER},
		{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
