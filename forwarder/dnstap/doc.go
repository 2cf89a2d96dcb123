// Package dnstap tells a collector of queries and replies in the format of dnstap,
// over frame streams.
//
// A Sender takes what it is told without waiting: what finds no room in its queue
// is dropped and counted. Run, which the owner starts once, is the only goroutine:
// it connects, again and again while that fails, and sends.
package dnstap
