// Package guard watches over a node's DNS from outside the process that answers it.
//
// A [Guard] owns the link, the addresses and the nft table of package hostnet, and
// repairs them. One guard owns a node, the one that holds the lock; others wait. It
// removes nothing when it ends, so that the kernel goes on without it.
//
// The process that answers, called serve here, connects with a [Client]. It tells its
// sockets and the servers for the fallback, and gets what was kept on disk for a start
// without the API server. The end of the connection is its death. It holds no power
// over the network, and its guard parses nothing that strangers send.
//
// While no serve tells the servers, the guard follows them itself ([Follow]). It does not
// do so all the time: twice as many watches would be a burden to the API server of a
// large cluster, and the memory of one more to the node.
//
// What the host should look like may change while the guard runs ([Guard.Change]);
// change.go says in what order.
//
// # Words
//
// An instance is one run of serve. A place is a listen address. A probe is a question
// of class CH that only serve answers, with its instance and the number of the socket
// that read it, or took its connection. A round is the probes of a quarter of a second;
// the source port changes with every probe, so that the kernel picks every socket in
// turn.
//
// Over TCP a probe reaches the address of a Service from an own address, and untracked,
// past the rules of kube-proxy. Rules of others may be in its way: until one was answered
// there, silence over TCP says nothing.
//
// # What is decided
//
//   - alive: a place is renewed in the set alive after each answer of an instance that
//     does not leave, and taken out when the last such instance leaves or dies.
//   - bypass: a place is put into the set bypass when a socket stayed silent for four
//     rounds, when the only instance leaves, and when instances die soon after their
//     start, three times in a row. Not while the servers behind do not answer either.
//
// decide.go has both as functions of plain values.
//
// # Goroutines
//
//   - Guard.Run: the loop, which owns all state; one that accepts, and one for each
//     session, at most maxSessions; one that waits for the lock and then watches the
//     host (beside those of hostnet.Host.Watch); one that writes the file; one for
//     a round of probes, with one for each probe in flight; one that asks the servers
//     of the fallback; one that follows them, and what Follow starts.
//   - Client.Run: itself, and one that reads.
//
// All of them have ended when Run returns.
package guard
