// Package topology decides which endpoints of one Service a node should ask,
// nearest first: the same node, then the same zone, then the whole cluster.
//
// A [Source] emits EndpointSlices as plain values, a [Watcher] merges them,
// [Rank] puts their endpoints into tiers, and the result is published as an
// immutable [Table] whenever it changed. Nothing here opens a socket or knows
// DNS, and nothing imports the Kubernetes client libraries: the packages that
// talk to an API server or read a file are Sources in folders below.
//
// Words: an endpoint is one address of one pod; a slice is the list an endpoint
// was announced in; a tier is a set of endpoints equally near; a target is what
// the reader of a Table makes of one Member.
//
// A [Keeper] keeps the world of a Watcher on disk and restores it at a start
// while the source cannot be reached.
//
// Goroutines: [Watcher.Run] and [Keeper.Run] belong to the caller, who also owns
// the one that runs the Source. While it restores, a Keeper has one for each of
// at most ten endpoints it asks, and one that waits for these; they have ended when
// the attempt is over.
package topology
