package listener

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
	// Sockets is the number of sockets.
	Sockets int
	// ReceiveBuffer is the receive buffer that each socket got, in the unit of
	// UDPConfig.ReceiveBuffer.
	ReceiveBuffer int
}

// TCPStats is what one TCP address counted since it was bound.
type TCPStats struct {
	// Accepted counts the connections taken from the kernel.
	Accepted uint64
	// Refused counts those closed at once: too many, or too many of one client.
	Refused uint64
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
	// AcceptErrors counts the failed accepts.
	AcceptErrors uint64
	// Connections is the number of open connections now.
	Connections int
	// InFlight is the number of misses being resolved now.
	InFlight int
}
