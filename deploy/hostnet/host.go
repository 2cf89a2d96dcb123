package hostnet

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Config says where a Host works.
type Config struct {
	// NetNS is the open file of a network namespace. Default 0: the caller's own.
	NetNS int
}

// Host is the network of a node. It starts no goroutine, except in Watch, and its
// methods may be called at once.
type Host struct {
	netns int
	nl    *netlink.Handle

	// older rewrites what nftables is sent, so that a test hears what a kernel says that
	// does not know all of it; nil = as it is.
	older func(message []byte) []byte

	mu      sync.Mutex // one Apply or Cleanup at a time
	settled bool       // an Apply of ours has looked after the connection tracking
}

// New opens the host. It changes nothing yet. Close it after use. A kernel without
// netfilter will do: it has links and addresses.
func New(cfg Config) (*Host, error) {
	handle, err := cfg.open(unix.NETLINK_NETFILTER, unix.NETLINK_ROUTE)
	if hasNoTables(err) {
		handle, err = cfg.open(unix.NETLINK_ROUTE)
	}
	if err != nil {
		return nil, fmt.Errorf("netlink cannot be opened: %w", err)
	}
	return &Host{netns: cfg.NetNS, nl: handle}, nil
}

func (c Config) open(families ...int) (*netlink.Handle, error) {
	if c.NetNS == 0 {
		return netlink.NewHandle(families...)
	}
	return netlink.NewHandleAt(netns.NsHandle(c.NetNS), families...)
}

// Close gives back the sockets. What was applied stays in force.
func (h *Host) Close() { h.nl.Close() }

func (h *Host) nft() (*nftables.Conn, error) {
	conn, err := nftables.New(nftables.WithNetNSFd(h.netns))
	if err != nil {
		return nil, fmt.Errorf("nftables cannot be opened: %w", err)
	}
	return conn, nil
}

// hasNoTables tells whether err is what a kernel without nf_tables says: it does not know
// this netlink at all, or nobody there who takes these messages.
func hasNoTables(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EINVAL)
}

// orNone is a list of what is in nf_tables, which is empty where the kernel has none.
func orNone[T any](list []T, err error) ([]T, error) {
	if hasNoTables(err) {
		return nil, nil
	}
	return list, err
}

// explained adds what to do to an error of the kernel.
func explained(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: the capability NET_ADMIN is missing: %w", what, err)
	case errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("%s: this kernel has no support for it: %w", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// notTaken is explained for a table that is not there yet. A kernel calls an expression, or
// a kind of chain, that it does not know "not found".
func notTaken(what string, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return fmt.Errorf("%s: this kernel lacks a part of what is needed (nf_tables with inet and nat, nft_socket with wildcard, nft_hash, nft_masq; 5.10 or later can have all of it): %w", what, err)
	}
	return explained(what, err)
}
