package load

import (
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errAgain says that nothing has come yet. Being temporary, it leaves a TLS
// connection usable.
type errAgain struct{}

func (errAgain) Error() string   { return "load: nothing has come yet" }
func (errAgain) Timeout() bool   { return true }
func (errAgain) Temporary() bool { return true }

// wire is a TCP socket under a TLS connection. It waits only during the
// handshake; afterwards a read gives errAgain instead, and what is written is
// kept until flush.
type wire struct {
	fd    int
	waits bool
	until time.Time // waits at most until then
	out   []byte
}

func (w *wire) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(w.fd, b)
		switch {
		case err == unix.EAGAIN && w.waits:
			if err := w.wait(unix.POLLIN); err != nil {
				return 0, err
			}
		case err == unix.EAGAIN:
			return 0, errAgain{}
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (w *wire) Write(b []byte) (int, error) {
	w.out = append(w.out, b...)
	for w.waits && len(w.out) > 0 {
		if err := w.wait(unix.POLLOUT); err != nil {
			return 0, err
		}
		if _, err := w.flush(); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// flush writes what the kernel takes and tells whether something is left.
func (w *wire) flush() (rest bool, err error) {
	for len(w.out) > 0 {
		n, err := unix.Write(w.fd, w.out)
		if err == unix.EAGAIN {
			return true, nil
		}
		if err != nil {
			return false, os.NewSyscallError("write", err)
		}
		w.out = w.out[:copy(w.out, w.out[n:])]
	}
	return false, nil
}

func (w *wire) wait(events int16) error {
	fds := [1]unix.PollFd{{Fd: int32(w.fd), Events: events}}
	for {
		left := time.Until(w.until)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		n, err := unix.Poll(fds[:], int(left/time.Millisecond)+1)
		if err == nil && n > 0 {
			return nil
		}
		if err != nil && err != unix.EINTR {
			return os.NewSyscallError("poll", err)
		}
	}
}

func (w *wire) Close() error { return unix.Close(w.fd) }

// The rest is asked for by net.Conn and has no meaning here.

func (w *wire) LocalAddr() net.Addr              { return nil }
func (w *wire) RemoteAddr() net.Addr             { return nil }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
