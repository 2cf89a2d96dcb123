package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Set names one of the sets whose elements end by themselves.
type Set uint8

const (
	// Alive holds the listen addresses at which packets born on this node find us:
	// for them the kernel cannot look for a socket, since the sender's is in the way.
	Alive Set = iota
	// Bypass holds the listen addresses whose packets go to the fallback although a
	// socket is there, because the process behind it is stuck.
	Bypass
)

func (s Set) String() string {
	if s == Bypass {
		return "bypass"
	}
	return "alive"
}

func (s Set) name(f family) string { return s.String() + f.digit }

// Hold is an address in a set.
type Hold struct {
	Set  Set
	Addr netip.Addr
	// Left is how long it stays unless renewed.
	Left time.Duration
}

// Hold puts addresses into a set for a time, at least a millisecond, or renews them.
// It fails with ErrNoTable when there is no table of this layout.
func (h *Host) Hold(s Set, ttl time.Duration, addrs ...netip.Addr) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("%v: a time of %v is less than a millisecond: use Release", s, ttl)
	}
	return h.change(s, ttl, addrs)
}

// Release takes addresses out of a set. Those that are not in it do not matter.
func (h *Host) Release(s Set, addrs ...netip.Addr) error { return h.change(s, 0, addrs) }

// change renews for a time, or releases if it is 0, in one transaction.
func (h *Host) change(s Set, ttl time.Duration, addrs []netip.Addr) error {
	err := h.tryChange(s, ttl, addrs)
	if errors.Is(err, unix.ENOENT) {
		// An element that ends between being there and being deleted fails the
		// transaction; at the second try it is gone.
		err = h.tryChange(s, ttl, addrs)
	}
	if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("%w: %w", ErrNoTable, err)
	}
	return explained(fmt.Sprintf("set %v cannot be changed", s), err)
}

// tryChange adds, deletes and adds again: adding alone does not renew the time of
// what is there, and deleting alone fails for what is not.
func (h *Host) tryChange(s Set, ttl time.Duration, addrs []netip.Addr) error {
	var b batch
	for _, f := range families() {
		var with, bare []element
		for _, a := range f.addrs(sorted(addrs)) {
			with = append(with, element{key: a.AsSlice(), timeout: max(ttl, time.Millisecond)})
			bare = append(bare, element{key: a.AsSlice()})
		}
		b.elements(s.name(f), with)
		b.changeElements(unix.NFT_MSG_DELSETELEM, s.name(f), 0, bare)
		if ttl > 0 {
			b.elements(s.name(f), with)
		}
	}
	return h.commit(&b)
}
