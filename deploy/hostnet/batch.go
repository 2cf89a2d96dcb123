package hostnet

import (
	"encoding/binary"
	"errors"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A batch is a transaction of nftables in the making: all of it happens, or nothing.
//
// It writes messages itself because the library that reads them for us cannot write
// the one expression on which masquerading depends, an address of a connection before
// its translation.
type batch struct {
	messages []netlink.Message
	err      error
	mapIDs   uint32
}

// attrs encodes attributes as nftables wants them, in network byte order.
type attrs struct{ *netlink.AttributeEncoder }

func (a attrs) nested(kind uint16, fill func(attrs)) {
	a.Nested(kind, func(in *netlink.AttributeEncoder) error {
		in.ByteOrder = binary.BigEndian
		fill(attrs{in})
		return nil
	})
}

// value is data for a register.
func (a attrs) value(kind uint16, data []byte) {
	a.nested(kind, func(a attrs) { a.Bytes(unix.NFTA_DATA_VALUE, data) })
}

const nfHeaderSize = 4

// nfHeader begins every message of netfilter.
func nfHeader(family byte, resource uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{family, unix.NFNETLINK_V0}, resource)
}

// add puts a message about a table of ours into the batch.
func (b *batch) add(kind uint16, flags netlink.HeaderFlags, fill func(attrs)) {
	encoder := netlink.NewAttributeEncoder()
	encoder.ByteOrder = binary.BigEndian
	fill(attrs{encoder})
	data, err := encoder.Encode()
	b.err = errors.Join(b.err, err)
	b.messages = append(b.messages, netlink.Message{
		Header: netlink.Header{
			Type:  netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind),
			Flags: netlink.Request | netlink.Acknowledge | flags,
		},
		Data: append(nfHeader(unix.NFPROTO_INET, 0), data...),
	})
}

func (b *batch) create(kind uint16, fill func(attrs)) {
	b.add(kind, netlink.Create|unix.NLM_F_APPEND, fill)
}

// commit is batch.commit on this host.
func (h *Host) commit(b *batch) error {
	for i := range b.messages {
		if h.older != nil {
			b.messages[i].Data = h.older(b.messages[i].Data)
		}
	}
	return b.commit(h.netns)
}

// commit sends the batch and waits for the kernel's word on every message.
func (b *batch) commit(netns int) error {
	if b.err != nil || len(b.messages) == 0 {
		return b.err
	}
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: netns})
	if err != nil {
		return err
	}
	sent, err := conn.SendMessages(b.framed())
	if err == nil {
		err = acknowledged(conn, sent)
	}
	return errors.Join(err, conn.Close())
}

func (b *batch) framed() []netlink.Message {
	frame := func(kind netlink.HeaderType) netlink.Message {
		return netlink.Message{
			Header: netlink.Header{Type: kind, Flags: netlink.Request},
			Data:   nfHeader(0, unix.NFNL_SUBSYS_NFTABLES),
		}
	}
	out := append([]netlink.Message{frame(unix.NFNL_MSG_BATCH_BEGIN)}, b.messages...)
	return append(out, frame(unix.NFNL_MSG_BATCH_END))
}

// acknowledged reads until the last message has its answer. The first error is the
// reason for all others.
func acknowledged(conn *netlink.Conn, sent []netlink.Message) error {
	last := sent[len(sent)-2].Header.Sequence // before the end of the batch
	for {
		answers, err := conn.Receive()
		if err != nil {
			return err
		}
		for _, a := range answers {
			if a.Header.Sequence == last {
				return nil
			}
		}
	}
}
