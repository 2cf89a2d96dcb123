// Package listener reads DNS queries from sockets and writes the replies back.
//
// It knows sockets and bytes, no DNS beyond the length of a header: what a
// query means and what its reply says is decided by a [Handler], which is
// handed a query and appends a reply. The package runs on Linux.
//
// A [UDP] holds one address with one or more sockets that share it through
// SO_REUSEPORT, a [TCP] holds one address with one listening socket. Both are
// made bound, by [ListenUDP] and [ListenTCP], and work inside Run, which
// returns after everything received was answered and every goroutine ended.
//
// # Words
//
// A packet is one client datagram with its buffers and return address. A batch
// is the packets that one pass over a socket read. A hit is a query that
// Handler.Lookup answered, a miss one that needs Handler.Resolve.
//
// Datagrams are answered in the order they came, also after a stall: to know
// their age would cost each a timestamp, and a full queue takes under 0.1 s.
//
// # Goroutines
//
//   - UDP.Run: one loop for each socket, one resolver for each miss (at most
//     UDPConfig.MaxInFlight), and some that wait for one (resolvers.go).
//   - TCP.Run: one acceptor and one that ends its wait, one reader for each
//     connection (at most TCPConfig.MaxConnections, beside evicted ones whose
//     misses are not over), and one goroutine for each miss (at most
//     TCPConfig.MaxInFlight).
//
// Run waits for all of them.
package listener
