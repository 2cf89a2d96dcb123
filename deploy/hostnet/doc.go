// Package hostnet is what we ask of the network of a node: a link with the listen
// addresses, and one nft table that brings queries to a server when no process of
// ours takes them.
//
// A State says what should be; Host.Apply makes it so, Host.Read says what is,
// Found.Missing what differs, Host.Cleanup removes all of it and what node-cache
// left. Everything is asked of the kernel over netlink, without another program. Fake
// is a host in memory; its text is the table in the words of nft.
//
// # The table
//
// The kernel decides by packet. Before connection tracking it looks for a socket that
// would take a UDP query. If there is one, the query is delivered untracked. If there
// is none, or only a stranger's that is bound to no address, the query goes to the
// fallback: its destination becomes a target of State.Fallback, chosen by a hash of
// the client's address and port, and its source becomes the node. TCP is decided in
// the same way, but once per connection, so that a connection ends where it began.
//
// For the addresses of a Service the fallback is to do nothing: kube-proxy translates
// them, as it did before us.
//
// Packets born on the node are decided by the set Alive instead: in the output hook
// the kernel finds the sender's socket. The set Bypass sends everything to the
// fallback although a socket is there. Elements of both end by themselves, so a dead
// owner cannot leave them on.
//
// ICMP errors from a listen address are dropped: resolvers give up on them at once,
// and ask again when they hear nothing.
//
// With State.Tracked UDP is tracked as well, in a zone of its own while we answer, so
// that a client that keeps its source port follows at once when we come and go. It
// follows a change of targets as well: queries to the fallback are tracked in a zone
// that is made of its targets, and the answers that former targets still owe arrive.
//
// Counters and sets survive a change of the table, tracked connections too, except TCP
// handshakes that a former target does not answer.
//
// # What the kernel must have
//
// nf_tables with the inet family, nft_socket, nft_hash, nft_nat, nft_masq and zones of
// connection tracking, all of it in 5.10 and later, and the capability NET_ADMIN. Where
// a part is missing, or nf_tables itself, there is no table and no fallback; link and
// addresses are put all the same.
//
// # Goroutines
//
// Only Host.Watch starts any, at most five, and waits for them before it returns.
package hostnet
