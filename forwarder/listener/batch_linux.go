package listener

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How packets pass between the socket and us is decided in this file alone:
// many of them in one system call, by recvmmsg and sendmmsg.

const (
	// batchSize is the most packets one system call reads or writes.
	batchSize = 32
	// sendRetries is how often a reply is offered again to a send buffer that
	// is full, each time after letting other goroutines run.
	sendRetries = 8
)

// message mirrors struct mmsghdr of the kernel: a struct msghdr and the number
// of bytes passed. Go pads it to the alignment of its pointers as C does.
type message struct {
	header unix.Msghdr
	length uint32
}

// batch reads packets and writes their replies.
//
// The kernel reads and writes through the pointers in its headers only during a
// system call. They point into the packets of the batch, into vectors of the
// batch, and into the replies queued since the last flush; all of them are Go
// memory that the headers themselves keep alive, and none of it moves.
type batch struct {
	packets [batchSize]*packet
	in      [batchSize]message
	inVec   [batchSize]unix.Iovec

	out    [batchSize]message
	outVec [batchSize]unix.Iovec
	queued int
}

func newBatch(o *pool) *batch {
	b := new(batch)
	for i := range b.packets {
		b.in[i].header.Iov = &b.inVec[i]
		b.in[i].header.SetIovlen(1)
		b.out[i].header.Iov = &b.outVec[i]
		b.out[i].header.SetIovlen(1)
		b.set(i, o.take())
	}
	return b
}

// release gives all packets back to the pool; the batch is used no more.
func (b *batch) release(o *pool) {
	for i, p := range b.packets {
		b.packets[i] = nil
		o.release(p)
	}
}

// swap takes packet i out of the batch and puts fresh in its slot.
func (b *batch) swap(i int, fresh *packet) *packet {
	p := b.packets[i]
	b.set(i, fresh)
	return p
}

func (b *batch) set(i int, p *packet) {
	b.packets[i] = p
	b.inVec[i].Base = &p.query[0]
	b.inVec[i].SetLen(len(p.query))
	b.in[i].header.Name = (*byte)(unsafe.Pointer(&p.client))
	b.in[i].header.Control = &p.control[0]
	b.expect(i)
}

// expect resets what the kernel overwrote when it filled slot i.
func (b *batch) expect(i int) {
	h := &b.in[i].header
	h.Namelen = unix.SizeofSockaddrInet6
	h.SetControllen(controlSize)
}

// read fills packets from the socket, without waiting, and returns how many.
//
// Fewer than batchSize means that the kernel saw the queue empty, so that the
// caller may wait for the poller without asking once more: the poller reports
// edges, and whatever comes after that look makes a new one.
//
// While busy is false the system call bypasses the scheduler, which would wake
// the runtime's monitor thread for every packet that reaches an idle process.
// Under load that thread is wanted (it preempts, and polls the network when
// every processor is occupied), so that a busy read goes the usual way.
func (b *batch) read(s *socket, busy bool) (int, error) {
	for {
		n, errno := recvmmsg(s.fd, &b.in[0], busy)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return 0, errno
		}
		for i := range n {
			b.received(i)
		}
		return n, nil
	}
}

// recvmmsg reads into the batchSize messages that begin with first.
func recvmmsg(fd int, first *message, busy bool) (int, unix.Errno) {
	if busy {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd),
			uintptr(unsafe.Pointer(first)), batchSize, unix.MSG_DONTWAIT, 0, 0)
		return int(n), errno
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd),
		uintptr(unsafe.Pointer(first)), batchSize, unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// received moves what the kernel wrote about packet i into the packet.
func (b *batch) received(i int) {
	p, m := b.packets[i], &b.in[i]
	p.length = int(m.length)
	if m.header.Flags&unix.MSG_TRUNC != 0 {
		p.length = MaxDatagram + 1
	}
	p.clientLen = m.header.Namelen
	p.controlLen = int(m.header.Controllen)
	b.expect(i)
}

// queue adds the reply to packet i to those that flush sends. Neither may
// change until then.
func (b *batch) queue(i int, reply []byte, s *socket) {
	address(&b.out[b.queued], &b.outVec[b.queued], b.packets[i], reply, s)
	b.queued++
}

// address makes m a reply to p.
func address(m *message, vec *unix.Iovec, p *packet, reply []byte, s *socket) {
	vec.Base = unsafe.SliceData(reply)
	vec.SetLen(len(reply))
	m.header.Name = (*byte)(unsafe.Pointer(&p.client))
	m.header.Namelen = p.clientLen
	m.header.Control = nil
	m.header.SetControllen(0)
	if s.wildcard && p.controlLen > 0 {
		answerFrom(p.control[:p.controlLen])
		m.header.Control = &p.control[0]
		m.header.SetControllen(p.controlLen)
	}
}

// flush sends the queued replies and returns how many the kernel took and how
// many it refused.
func (b *batch) flush(s *socket) (sent, refused int) {
	end := b.queued
	b.queued = 0
	for next, tries := 0, 0; next < end; {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.fd),
			uintptr(unsafe.Pointer(&b.out[next])), uintptr(end-next), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			next, sent, tries = next+int(n), sent+int(n), 0
		case retry(errno, &tries):
		default: // the error is that of the first message
			next, refused, tries = next+1, refused+1, 0
		}
	}
	return sent, refused
}

// send sends the reply to p alone. It may be called by any goroutine.
func send(s *socket, p *packet, reply []byte) error {
	p.single.header.Iov = &p.singleVec
	p.single.header.SetIovlen(1)
	address(&p.single, &p.singleVec, p, reply, s)
	for tries := 0; ; {
		_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(s.fd),
			uintptr(unsafe.Pointer(&p.single.header)), unix.MSG_DONTWAIT)
		switch {
		case errno == 0:
			return nil
		case !retry(errno, &tries):
			return errno
		}
	}
}

// retry says whether a send that failed with errno is worth another try, and
// lets other goroutines run before it.
func retry(errno unix.Errno, tries *int) bool {
	if errno == unix.EINTR {
		return true
	}
	*tries++
	if errno != unix.EAGAIN || *tries > sendRetries {
		return false
	}
	runtime.Gosched()
	return true
}

// nothingThere says whether a read found the queue empty.
func nothingThere(err error) bool { return errors.Is(err, unix.EAGAIN) }
