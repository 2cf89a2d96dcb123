package listener

import (
	"context"
	"errors"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The end of a TCP listener refuses nobody. Closing it resets the connections
// that it has not accepted and the handshakes that are under way, so new
// connections first have to go elsewhere.
//
// The listening sockets of an address form a group, of which the kernel takes
// one for each new connection: by a hash, or by what a program says that one of
// them attached. Places are numbered in the order of coming, but when a socket
// goes the last one moves into its place. So nobody knows his own. A socket that
// leaves supposes that it is not the last and lets the last have all; or, if
// nobody came after it, that it is the last and lets any but the last have them.
// If connections go on coming it was wrong, and supposes the other. Either
// program is as good as none once the socket is gone, and the next that comes
// removes it.
//
// A socket that is alone is tied to a link that does not exist. The kernel then
// finds it for no new connection, which the fallback can take, while handshakes
// that began before are finished.

// noLink is the number of a link that does not exist.
const noLink = math.MaxInt32

// randomNumber is where programs read one: SKF_AD_OFF + SKF_AD_RANDOM, of
// linux/filter.h.
const randomNumber = 1<<32 - 0x1000 + 56

// leave sends new connections elsewhere, and admits those that the kernel has
// for us already.
func (t *TCP) leave(resolving context.Context) {
	places, last := t.group()
	if places < 2 {
		t.control(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, noLink) })
		t.admitFor(resolving, t.cfg.DrainQuiet)
		return
	}
	// Fewer places than were counted: one that leaves alone is in no group.
	for ; places > 1; places-- {
		for _, last := range []bool{last, !last} {
			t.control(func(fd int) error { return steer(fd, places, last) })
			t.admitFor(resolving, t.cfg.DrainQuiet/2) // handshakes that were under way
			if t.admitFor(resolving, t.cfg.DrainQuiet/2) == 0 {
				return
			}
		}
	}
}

// group counts the sockets of the group, and tells whether ours came last.
func (t *TCP) group() (places int, last bool) {
	var own unix.Stat_t
	t.control(func(fd int) error { return unix.Fstat(fd, &own) })
	last = true
	for _, h := range Holders(ProtoTCP, t.addr) {
		if h.Wildcard == t.addr.Addr().IsUnspecified() {
			places++
			last = last && h.Inode <= own.Ino
		}
	}
	return places, last
}

// steer keeps new connections from a socket of a group: from the last one, or
// from all but the last one.
func steer(fd, places int, last bool) error {
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: uint32(places - 1)}}
	if last {
		program = []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: randomNumber},
			{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(places - 1)},
			{Code: unix.BPF_RET | unix.BPF_A},
		}
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// unsteer lets the kernel choose by its hash again.
func unsteer(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_REUSEPORT_BPF, 0)
}

// control does something to the socket that old kernels cannot do and that the
// end can do without.
func (t *TCP) control(f func(fd int) error) {
	if raw, err := t.listener.SyscallConn(); err == nil {
		_ = control(raw, f)
	}
}

// admitFor admits connections for a time, and what is queued then: the time may
// pass while this goroutine waits for a CPU. It tells how many came.
func (t *TCP) admitFor(resolving context.Context, d time.Duration) (admitted int) {
	const looks = 100 // a queue that is never empty must not keep us
	admitted = t.admitUntil(resolving, time.Now().Add(d))
	for range looks {
		if !ready(t.listener) {
			break
		}
		admitted += t.admitUntil(resolving, time.Now().Add(time.Millisecond))
	}
	return admitted
}

// admitUntil admits connections until a time, and tells how many came.
func (t *TCP) admitUntil(resolving context.Context, end time.Time) (admitted int) {
	if t.listener.SetDeadline(end) != nil {
		return 0
	}
	for {
		nc, err := t.listener.AcceptTCP()
		switch {
		case err == nil:
			t.admit(resolving, nc)
			admitted++
		case errors.Is(err, os.ErrDeadlineExceeded), !t.relieve(err):
			return admitted
		}
	}
}
