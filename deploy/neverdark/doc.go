// Package neverdark holds tests that a node's DNS goes on whatever becomes of nodens:
// the real binary and real CoreDNS as processes, pods and the node itself as clients
// with an open-loop load, the link and the table of deploy/hostnet, each in a network
// namespace that the test made.
//
// A row is one thing that happens to a nodens: an upgrade, a restart, a crash, a kill
// for want of memory. Queries without a reply are counted exactly, by the moment in
// which they were meant to be sent; times have wide bounds. The rows are short; with
// NODENS_FULL=1 they are as long as they should be, at 20 000 queries/s, and print a
// table of figures in Markdown:
//
//	NODENS_FULL=1 NODENS_COREDNS=$PWD/.cache/bin/coredns go test ./deploy/neverdark -v -timeout 120m
//
// Two cores do not do for that and CoreDNS, which needs one of them for 20 000 queries/s
// while nodens is away. There NODENS_LIGHT=1 puts a lighter server into the pods, and
// NODENS_RATE=8000 asks less of a CoreDNS. What CoreDNS drops since nobody read its
// sockets in time is counted, and not held against nodens. A row whose queries left late
// says so, and proves nothing.
//
// They need root, and say so when they skip. That the right server answers in every
// state, for each protocol, family, stranger and setting of the bridge, are tests of
// deploy/hostnet: TestTheRightOneAnswers and those beside it.
//
// Goroutines: those of the loads, one for each connection that a row holds, and one
// for each process that waits for its end. A test ends with all of them gone.
package neverdark
