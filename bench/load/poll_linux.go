package load

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// poll waits for many sockets, or for a time with the precision of a
// nanosecond clock.
type poll struct {
	epoll  int
	events [128]unix.EpollEvent
	self   [1]unix.PollFd // the epoll descriptor itself: ppoll has the finer clock
	limit  unix.Timespec
}

func newPoll() (*poll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("load: create an epoll descriptor: %w", err)
	}
	return &poll{epoll: fd, self: [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}}, nil
}

// add watches fd for being readable; lane and slot come back with its events.
func (p *poll) add(fd int, lane, slot int32) error {
	return p.control(unix.EPOLL_CTL_ADD, fd, lane, slot, false)
}

// writable starts or stops to watch fd for being writable too.
func (p *poll) writable(fd int, lane, slot int32, on bool) {
	// It fails only for a descriptor that is not watched.
	_ = p.control(unix.EPOLL_CTL_MOD, fd, lane, slot, on)
}

func (p *poll) control(op, fd int, lane, slot int32, write bool) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: slot, Pad: lane}
	if write {
		ev.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(p.epoll, op, fd, &ev)
}

// ready gives what can be read or written now, without waiting.
func (p *poll) ready() []unix.EpollEvent {
	n, err := unix.EpollWait(p.epoll, p.events[:], 0)
	if err != nil {
		return nil // interrupted by a signal
	}
	return p.events[:n]
}

// sleep waits until something is ready, at most d.
func (p *poll) sleep(d time.Duration) {
	p.limit = unix.NsecToTimespec(int64(d))
	// Whatever ends it, the caller looks at the clock and the sockets again.
	_, _ = unix.Ppoll(p.self[:], &p.limit, nil)
}

func (p *poll) close() { unix.Close(p.epoll) }
