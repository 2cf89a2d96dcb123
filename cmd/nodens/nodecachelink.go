package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// nodeLink is the interface that holds the local addresses where no rules are
// wanted: with rules, the guard keeps it.
type nodeLink struct {
	name string
	ips  []netip.Addr
}

// settle makes the interface and adds the addresses that are missing. What else is
// there stays. fails counts where node-cache counts.
func (l nodeLink) settle() (fails int, err error) {
	link, err := netlink.LinkByName(l.name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		link, err = l.add()
	}
	if err != nil {
		return setupInterfaceAdd, fmt.Errorf("interface %s cannot be made: %w; it needs the capability NET_ADMIN, or -setupinterface=false", l.name, err)
	}
	for _, ip := range l.ips {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}, Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrReplace(link, a); err != nil {
			return setupInterfaceAdd, fmt.Errorf("address %s cannot be added to %s: %w; it needs the capability NET_ADMIN, or -setupinterface=false", ip, l.name, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return setupInterfaceCheck, fmt.Errorf("interface %s cannot be set up: %w", l.name, err)
	}
	return 0, nil
}

// add makes the interface: a dummy, or a bridge where the kernel has none.
func (l nodeLink) add() (link netlink.Link, err error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = l.name
	for _, link := range []netlink.Link{&netlink.Dummy{LinkAttrs: attrs}, &netlink.Bridge{LinkAttrs: attrs}} {
		if err = netlink.LinkAdd(link); err == nil {
			return netlink.LinkByName(l.name)
		}
	}
	return nil, err
}

func (l nodeLink) remove() error {
	link, err := netlink.LinkByName(l.name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	return err
}

// keep looks at the interface again and again until ctx ends.
func (l nodeLink) keep(ctx context.Context, d *daemon, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for last := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		fails, err := l.settle()
		if err == nil {
			last = ""
			continue
		}
		d.setup[fails].Add(1)
		if err.Error() != last {
			last = err.Error()
			d.log.Error("the interface cannot be kept", zap.Error(err))
		}
	}
}
