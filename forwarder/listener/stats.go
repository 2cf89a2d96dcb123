package listener

import "sync/atomic"

// UDPStats is what one UDP address counted since it was bound. The counters of
// its sockets are summed.
type UDPStats struct {
	// Received counts the datagrams read, whatever became of them.
	Received uint64
	// Answered counts the replies handed to the kernel.
	Answered uint64
	// Missed counts the queries that Lookup called a Miss.
	Missed uint64
	// Full counts the misses dropped because MaxInFlight were being resolved.
	Full uint64
	// Short counts the datagrams dropped for being shorter than a DNS header.
	Short uint64
	// Long counts the datagrams dropped for being longer than MaxDatagram.
	Long uint64
	// BadSource counts the datagrams dropped for a source port that no
	// resolver uses: 0, or one of the services that answer anything they get.
	BadSource uint64
	// Overflowed counts the datagrams that the kernel dropped because the
	// receive buffer was full (or their checksum wrong).
	Overflowed uint64
	// SendErrors counts the replies that the kernel refused to take.
	SendErrors uint64
	// ReadErrors counts the reads that failed.
	ReadErrors uint64
	// InFlight is the number of misses being resolved now.
	InFlight int
	// Sockets is each socket by itself.
	Sockets []SocketStats
}

// SocketStats is what the kernel knows of one UDP socket.
type SocketStats struct {
	// ReceiveBuffer is the receive buffer that it got, in the unit of
	// UDPConfig.ReceiveBuffer.
	ReceiveBuffer int
	// Overflowed is its part of UDPStats.Overflowed.
	Overflowed uint64
}

// TCPStats is what one TCP address counted since it was bound.
type TCPStats struct {
	// Accepted counts the connections taken from the kernel.
	Accepted uint64
	// EvictedSilent counts the connections closed to make room for a new one
	// before they had sent a whole query: MaxConnections or MaxPerClient were
	// open, or the process had no file descriptor left.
	EvictedSilent uint64
	// EvictedIdle counts those closed for the same reason when all they had
	// asked was answered.
	EvictedIdle uint64
	// EvictedBusy counts those closed for the same reason while something they
	// had asked was being answered, or they took no replies.
	EvictedBusy uint64
	// Received counts the queries read.
	Received uint64
	// Answered counts the replies handed to the kernel.
	Answered uint64
	// Missed counts the queries that Lookup called a Miss.
	Missed uint64
	// Waited counts the times a reader stopped reading because its connection,
	// or all of them together, had too many misses in flight.
	Waited uint64
	// Malformed counts the connections closed because of a length below that
	// of a DNS header, or by a Close verdict.
	Malformed uint64
	// TimedOut counts the connections closed because they were idle or a query
	// on them stayed unfinished.
	TimedOut uint64
	// Stalled counts the connections closed because a write did not finish in
	// time or failed.
	Stalled uint64
	// Oversized counts the replies not sent because they were empty or longer
	// than 65535 bytes.
	Oversized uint64
	// AcceptErrors counts the failed accepts.
	AcceptErrors uint64
	// Connections is the number of open connections now.
	Connections int
	// InFlight is the number of misses being resolved now.
	InFlight int
}

// cacheLine separates the counters of two loops, so that they do not slow each
// other down; two lines, because processors fetch lines in pairs.
const cacheLine = 128

// udpCounters is the stripe of one loop.
type udpCounters struct {
	received, answered, missed, full atomic.Uint64
	short, long, badSource           atomic.Uint64
	sendErrors, readErrors           atomic.Uint64

	_ [cacheLine]byte
}

// addTo adds the stripe to a snapshot.
func (c *udpCounters) addTo(s *UDPStats) {
	s.Received += c.received.Load()
	s.Answered += c.answered.Load()
	s.Missed += c.missed.Load()
	s.Full += c.full.Load()
	s.Short += c.short.Load()
	s.Long += c.long.Load()
	s.BadSource += c.badSource.Load()
	s.SendErrors += c.sendErrors.Load()
	s.ReadErrors += c.readErrors.Load()
}

// tcpCounters counts for all connections of one address.
type tcpCounters struct {
	accepted, received, answered, missed atomic.Uint64
	waited, malformed, timedOut, stalled atomic.Uint64
	oversized, acceptErrors              atomic.Uint64
	evicted                              [classes]atomic.Uint64
}

func (c *tcpCounters) snapshot() TCPStats {
	return TCPStats{
		Accepted:      c.accepted.Load(),
		EvictedSilent: c.evicted[silent].Load(),
		EvictedIdle:   c.evicted[idle].Load(),
		EvictedBusy:   c.evicted[busy].Load(),
		Received:      c.received.Load(),
		Answered:      c.answered.Load(),
		Missed:        c.missed.Load(),
		Waited:        c.waited.Load(),
		Malformed:     c.malformed.Load(),
		TimedOut:      c.timedOut.Load(),
		Stalled:       c.stalled.Load(),
		Oversized:     c.oversized.Load(),
		AcceptErrors:  c.acceptErrors.Load(),
	}
}
