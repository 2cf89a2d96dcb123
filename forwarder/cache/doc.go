// Package cache keeps DNS replies, bounded in bytes.
//
// An Entry is made from a server's reply by NewEntry, which asks the Policy
// whether and for how long it may be kept. From then on its bytes never
// change: readers copy them and lower the TTLs in the copy. A Cache is shards
// of least-recently-used lists under one byte budget, in which names that are
// asked for once cannot push out those that are asked for again; looking up
// waits for at most one short lock and allocates nothing.
//
// The package starts no goroutine and reads no clock: time is passed in, as
// time.Duration since any monotonic epoch, the same for all calls.
package cache
