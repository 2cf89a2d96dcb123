// Package upstream asks servers. A Group holds the servers of one route in
// tiers, nearest first, and turns a parsed query into the bytes of a reply.
//
// The words: a target is one server address (one pod, in both its address
// families) with its sockets and health; an exchange is the work for one query;
// an attempt is one question put to one target; a tier is a set of targets that
// are equally near; a snapshot is the immutable list of tiers that an exchange
// reads.
//
// The way of an exchange: choose a target (pick.go), put the question (target.go,
// udp.go, tcp.go), wait (exchange.go) for the first of a reply, a failure signal,
// the retry time or the end of the budget, and take the step it asks for
// (steps.go): return the reply, put the question again without EDNS or over
// TCP, or put it to another target. What a reply asks for is decided in
// verdict.go; what replies, silences and errors say of the target, in health.go
// and rtt.go. pick.go, health.go, rtt.go and verdict.go are functions over small
// values and know neither sockets nor clocks.
//
// A suspect target gets a copy of a live query when its time has come, beside
// the target that answers it: nobody waits for a trial, and any reply to it
// makes the target well again.
//
// A datagram is taken only when it came on the connected socket that asked,
// carries an ID in flight there, is a response and repeats the question (RFC
// 5452 section 9.1). Everything else is counted and the wait goes on, because it
// may be forged. Failure signals of the network are soft for the same reason:
// they start the next attempt at once, but the one they speak of stays open
// until its time.
//
// Goroutines: one reader per open UDP socket (at most Config.Sockets per
// address, and those being replaced), one per open TCP connection (dials, then
// reads), and one timer callback per address being retired. All end with
// Close, which waits for them. Exchanges run on their callers' goroutines.
package upstream
