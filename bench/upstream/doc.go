// Package upstream is an authoritative server in the manner of CoreDNS for the
// cluster of a [names.Zone], with faults that can be dialled in and out while it
// runs. It also answers names outside the cluster, as if it forwarded them.
//
// Without faults a UDP query costs one read, one lookup and one write, and
// allocates nothing, so that the server is never what a benchmark of misses
// measures. With faults the same reply is dropped, spoilt, or kept for later.
//
// An [Endpoint] is what the Kubernetes API shows of a server, which differs from how it
// is while it changes.
//
// A [Relay] puts loss, delay, jitter, reordering and duplication between any
// client and any server; it knows no DNS.
//
// Goroutines of a running Server: one reader per UDP socket, one acceptor, one
// reader per TCP connection (at most MaxConns), and one that sends delayed
// replies. Of a Relay: one reader for clients, one reader per client session
// (at most MaxSessions), three per TCP connection, one acceptor, and one that
// sends delayed packets. All of them end before Close or Kill returns.
package upstream
