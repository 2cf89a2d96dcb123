package container

import "strings"

// permitted are the system calls that nodens, and runc on its way to it, get by with.
// Each of them is allowed by the profile that containerd has as RuntimeDefault, whatever
// capabilities a container has. A profile that allows more than this does as well.
const permitted = `
accept4 access arch_prctl bind brk capget capset chdir clock_gettime clock_nanosleep close connect dup dup2 dup3
epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 execve exit exit_group
faccessat faccessat2 fchdir fchmod fchmodat fchown fchownat fcntl fdatasync flock fstat fstatfs fsync ftruncate futex
getcwd getdents64 getegid geteuid getgid getpeername getpgid getpid getppid getrandom getresgid getresuid getrlimit
getsockname getsockopt gettid gettimeofday getuid inotify_add_watch inotify_init1 inotify_rm_watch ioctl kill
listen lseek lstat madvise mincore mkdir mkdirat mmap mprotect mremap munmap nanosleep newfstatat open openat openat2
pipe pipe2 poll ppoll prctl pread64 prlimit64 pwrite64 read readlink readlinkat readv recvfrom recvmmsg recvmsg
rename renameat renameat2 restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn
sched_getaffinity sched_yield sendmmsg sendmsg sendto set_robust_list set_tid_address setgid setgroups setitimer
setresgid setresuid setrlimit setsid setsockopt setuid shutdown sigaltstack socket socketpair stat statfs statx sysinfo
tgkill timer_create timer_delete timer_settime umask uname unlink unlinkat wait4 waitid write writev`

// newSpaces are the flags with which clone and unshare make namespaces.
const newSpaces = 0x7e020000

// allowed is a profile with these calls, as runc takes it. clone may make threads and
// no namespaces; clone3, whose flags no filter can see, is said not to exist, and so
// everybody takes clone.
func allowed() object {
	const notPermitted, noSuchCall = 1, 38
	return object{
		"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": notPermitted,
		"syscalls": []object{
			{"names": strings.Fields(permitted), "action": "SCMP_ACT_ALLOW"},
			{
				"names": []string{"clone"}, "action": "SCMP_ACT_ALLOW",
				"args": []object{{"index": 0, "value": newSpaces, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}},
			},
			{"names": []string{"clone3"}, "action": "SCMP_ACT_ERRNO", "errnoRet": noSuchCall},
		},
	}
}
