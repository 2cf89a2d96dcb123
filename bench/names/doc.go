// Package names is the built-in Kubernetes name mix of the load generator: a
// cluster of services, names outside it, and the way pods look them up.
//
// A [Zone] is the data: it answers any name and type by a pure function. The
// authoritative server of bench/upstream serves it, and the load generator
// judges replies by it, so both always agree.
//
// A [Mix] is the popularity of the names (Zipf), and a [Stream] the endless
// sequence of queries that pods with ndots:5 would send: every lookup walks the
// search list, so an external name costs eight queries of which six are
// NXDOMAIN. [Flat] and [Unique] are the two simpler sequences: only names that
// exist (warm hits) and only names never asked before (misses); [Blend] mixes
// them. [Mix.Every] asks for each service once, to fill a cache.
//
// [ReadServices] makes the zone from the services of a real cluster, [ReadList]
// takes queries from a file, whose answers are then not known.
//
// The same configuration and seed always give the same sequence. The package
// starts no goroutines; a Zone and a Mix may be shared by goroutines, a
// sequence belongs to one.
package names
