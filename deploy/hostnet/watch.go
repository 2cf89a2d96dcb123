package hostnet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// watchGap is the least time between two reports of Watch. A burst is one change.
const watchGap = 50 * time.Millisecond

// Watch calls changed when anybody, we included, changed links, addresses, or a table
// of ours, at most every 50 ms, until ctx ends. What the sets hold does not count, nor
// do tables of others. It is a hint: read the host then. It returns nil when ctx ends,
// and an error when the kernel's messages cannot be read.
func (h *Host) Watch(ctx context.Context, changed func()) error {
	routes, err := h.listen(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	if err != nil {
		return err
	}
	matters := map[*netlink.Conn]func(netlink.Message) bool{routes: func(netlink.Message) bool { return true }}
	tables, err := h.listen(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	switch {
	case err == nil:
		matters[tables] = aboutTable
	case !hasNoTables(err): // else there is nothing to watch
		return errors.Join(err, routes.Close())
	}
	wake := make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	for conn, matters := range matters {
		group.Go(func() error { return receive(ctx, conn, wake, matters) })
		group.Go(func() error {
			<-ctx.Done()
			// A deadline in the past ends a read; the descriptors stay until all is read.
			return conn.SetReadDeadline(time.Unix(1, 0))
		})
	}
	group.Go(func() error { report(ctx, wake, changed); return nil })
	err = group.Wait()
	for conn := range matters {
		err = errors.Join(err, conn.Close())
	}
	return err
}

func (h *Host) listen(family int, groups ...uint32) (*netlink.Conn, error) {
	conn, err := netlink.Dial(family, &netlink.Config{NetNS: h.netns})
	if err != nil {
		return nil, explained("changes cannot be watched", err)
	}
	for _, g := range groups {
		if err := conn.JoinGroup(g); err != nil {
			return nil, errors.Join(explained("changes cannot be watched", err), conn.Close())
		}
	}
	return conn, nil
}

// receive wakes when a message matters, or when messages were lost.
func receive(ctx context.Context, conn *netlink.Conn, wake chan<- struct{}, matters func(netlink.Message) bool) error {
	for {
		messages, err := conn.Receive()
		if ctx.Err() != nil {
			return nil
		}
		lost := errors.Is(err, unix.ENOBUFS)
		if err != nil && !lost {
			return fmt.Errorf("changes cannot be watched any more: %w", err)
		}
		for _, m := range messages {
			lost = lost || matters(m)
		}
		if lost {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}
}

func report(ctx context.Context, wake <-chan struct{}, changed func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
		changed()
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchGap):
		}
	}
}

// aboutTable tells whether a message of nftables is about a table of ours, and not
// about elements of its sets, which are renewed all the time.
func aboutTable(m netlink.Message) bool {
	switch uint16(m.Header.Type) & 0xff {
	case unix.NFT_MSG_NEWSETELEM, unix.NFT_MSG_DELSETELEM, unix.NFT_MSG_NEWGEN:
		return false
	}
	if len(m.Data) < nfHeaderSize {
		return false
	}
	attributes, err := netlink.NewAttributeDecoder(m.Data[nfHeaderSize:])
	if err != nil {
		return false
	}
	for attributes.Next() {
		// In every kind of message the first attribute names the table.
		if attributes.Type() == unix.NFTA_TABLE_NAME {
			return strings.HasPrefix(attributes.String(), tablePrefix)
		}
	}
	return false
}
