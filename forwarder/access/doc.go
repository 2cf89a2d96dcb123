// Package access decides whether a client may ask, and how much of what all
// share it may take.
//
// A Gate has three rules, each off unless its Config sets it: lists of prefixes
// that are let in or kept out, a rate for each client, and a bound on the
// misses that one client has in flight. The last is fair: however high it is
// set, a client has no more in flight than places are free, so that a greedy
// one leaves as much as it takes, two of them a third, and so on.
//
// What is known of clients lives in a table of fixed size. A client whose
// bucket is full and who has nothing in flight is as good as one never seen, and
// only such a client makes room for another: who asks under a thousand
// addresses takes nothing from those who are known, and no memory. While there
// is no room, newcomers share one bucket for each part of the table.
//
// Asking the Gate allocates nothing and waits for at most one short lock, which
// a five-hundredth of all addresses share. The package starts no goroutine and
// reads no clock: time is passed in, as time.Duration since any epoch.
package access
