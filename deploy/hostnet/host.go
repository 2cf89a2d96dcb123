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

// New opens the host. It changes nothing yet. Close it after use.
func New(cfg Config) (*Host, error) {
	var handle *netlink.Handle
	var err error
	if cfg.NetNS == 0 {
		handle, err = netlink.NewHandle(unix.NETLINK_ROUTE, unix.NETLINK_NETFILTER)
	} else {
		handle, err = netlink.NewHandleAt(netns.NsHandle(cfg.NetNS), unix.NETLINK_ROUTE, unix.NETLINK_NETFILTER)
	}
	if err != nil {
		return nil, fmt.Errorf("netlink cannot be opened: %w", err)
	}
	return &Host{netns: cfg.NetNS, nl: handle}, nil
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
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("%s: this kernel lacks a part of what is needed (nf_tables with inet and nat, nft_socket with wildcard, nft_hash, nft_masq; 5.10 or later can have all of it): %w", what, err)
	}
	return explained(what, err)
}
