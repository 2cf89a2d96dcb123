package upstream

import (
	"errors"
	"io"
	"syscall"
)

// isUnreachable reports whether err says that there is no way to the address:
// another address family of the same server may work.
func isUnreachable(err error) bool {
	return errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.ENETDOWN) ||
		errors.Is(err, syscall.EAFNOSUPPORT)
}

// isClosedByPeer reports whether err is how a closed connection shows.
func isClosedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// isShort reports whether err says that no more sockets can be had.
func isShort(err error) bool {
	return err == ErrTooMany || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// isHard reports whether err speaks against the server itself, and not against
// one reply, this process or the table.
func isHard(err error) bool {
	return isUnreachable(err) || isClosedByPeer(err) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNABORTED) ||
		errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) ||
		errors.Is(err, ErrMismatch) || errors.Is(err, ErrTLS) || errors.Is(err, ErrCertificate)
}
