// Package load sends queries to a DNS server and accounts for every one.
//
// The open loop sends at a rate that the server cannot influence and measures
// latency from the moment a query was meant to leave, so a server that stalls
// cannot hide it. The closed loop keeps a number of queries outstanding and finds
// the highest rate. Either way every query sent ends in exactly one of: right,
// late (right, but after more than a second), wrong (by its reason), truncated,
// SERVFAIL, or lost (no reply to its one datagram within the timeout; nothing is
// sent again unless Retry imitates a client that would). Latency is that of right
// and late replies.
//
// One system call carries one packet; batches of 16 (sendmmsg, recvmmsg) changed
// nothing over loopback, because the kernel's own work on each packet is almost
// all. Only a closed loop over UDP goes another way: its queries of one length
// leave together and the kernel splits them late.
//
// The judge is this package's own: it reads replies with its own parser, so a
// mistake of the code under test cannot excuse itself.
//
// A [Run] has workers. A worker is one goroutine on one thread; it owns its
// sockets and the queries outstanding on them, and does everything in turn: send
// what is due, read what has come, give up what is too old, wait. In steady
// state it allocates nothing. Beside the workers there is one goroutine, the
// clerk, that closes each second's row of the series and reports progress, and
// one for each TLS connection while it is made. All of them end before Run
// returns.
package load
