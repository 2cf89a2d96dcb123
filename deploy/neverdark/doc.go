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
// They need root, and say so when they skip. That the right server answers in every
// state, for each protocol, family, stranger and setting of the bridge, are tests of
// deploy/hostnet: TestTheRightOneAnswers and those beside it.
//
// Goroutines: those of the loads, one for each connection that a row holds, and one
// for each process that waits for its end. A test ends with all of them gone.
package neverdark
