package listener

import (
	"context"
	"net/netip"
	"time"
)

// Proto is the transport a query came by.
type Proto uint8

// The two transports.
const (
	ProtoUDP Proto = 0
	ProtoTCP Proto = 1
)

// Verdict says what becomes of a query.
type Verdict uint8

// The verdicts of a [Handler].
const (
	// Drop sends nothing.
	Drop Verdict = 0
	// Answered sends the reply.
	Answered Verdict = 1
	// Miss calls Resolve for the query. Only Lookup may say so; from Resolve it
	// counts as Drop.
	Miss Verdict = 2
	// Close sends nothing and closes the connection of a TCP query. For a UDP
	// query it is Drop.
	Close Verdict = 3
)

// Peer says who asked, where and when. It is a plain value, made once per query.
type Peer struct {
	// Client is the address the query came from. An IPv4 client is an IPv4
	// address on every socket; a link-local IPv6 client carries no zone.
	Client netip.AddrPort
	// Received is Config.Now when the batch of this query was read.
	Received time.Duration
	// Listener is the index of the listen address, from the configuration.
	Listener uint8
	// Stripe tells which loop reads the query, so that counters can be kept
	// apart: UDPConfig.Stripe plus the index of the socket, or TCPConfig.Stripe.
	Stripe uint8
	// Proto is the transport.
	Proto Proto
}

// Handler answers queries. Its methods are called by many goroutines at once.
//
// A query is the bytes as they came, at least 12 of them (a DNS header) and at
// most [MaxDatagram] by UDP or 65535 by TCP. Nothing else was checked.
type Handler interface {
	// Lookup answers from memory. It is called by the goroutine that reads the
	// socket, which reads nothing else meanwhile: Lookup never waits and never
	// allocates, and it keeps neither query nor dst after it returned.
	//
	// The reply is appended to dst[:0], whose capacity is at least [ReplySize]
	// by UDP and 65535 by TCP, and is sent when the verdict is Answered; it
	// may also be memory of the handler's own that stays unchanged until Done.
	Lookup(dst, query []byte, from Peer) (reply []byte, v Verdict)

	// Resolve answers a query that Lookup called a Miss, and may wait. It has
	// a goroutine of its own, whose number is bounded by MaxInFlight. It owns
	// query and dst until it returns. The reply is appended to dst[:0], whose
	// capacity is at least [ReplySize] by either transport: a longer reply
	// grows it. Once ctx is done it returns soon, because the listener waits
	// for it before it closes.
	Resolve(ctx context.Context, dst, query []byte, from Peer) (reply []byte, v Verdict)

	// Done is called after the replies of a batch in which Lookup said Answered
	// at least once were handed to the kernel, once for the batch. It does not
	// follow Resolve. took is the time from Peer.Received until then;
	// from.Client is meaningless. Like Lookup, it neither waits nor allocates.
	Done(from Peer, took time.Duration)
}

// Sizes of the memory given to a [Handler], in bytes.
const (
	// MaxDatagram is the longest query taken by UDP; a longer one is dropped
	// and counted.
	MaxDatagram = 2048
	// ReplySize is the capacity a reply can rely on without growing.
	ReplySize = 4096
	// headerSize is the length of a DNS header; nothing shorter is a query.
	headerSize = 12
)
