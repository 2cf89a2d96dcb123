// Package kube is a topology.Source over the EndpointSlices of a Kubernetes
// API server, and a reader of the zone of one Node object. It is the only place
// where the Kubernetes client libraries are imported: their objects are turned
// into plain values as they arrive and go no further.
//
// One [Client] holds the connection, shared by all sources of a process. A
// [Source] lists and watches the slices of one Service in one namespace, in
// protobuf, through a reflector without a copy of the objects: 5 000 nodes cost
// the API server one connection and one watch each, woken only by slices of the
// namespace. Nothing else is asked for: Services are found by the labels that
// their slices carry, so the Role needs list and watch of endpointslices in one
// namespace, and no more.
//
// A server that is silent, away, restored from a backup or that refuses us
// changes nothing: what was emitted stays in force, [Source.Status] tells what
// is wrong and since when, and attempts go on for as long as Run runs.
//
// # What it costs
//
// Measured in November 2026 on an AMD EPYC with two cores, Go 1.26.8, client
// libraries v0.37.2:
//
//   - the static, stripped binary grew from 15.2 to 23.6 MB
//     (CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' ./cmd/nodens);
//   - a daemon that asks no API server grew by 0.5 to 1 MiB of anonymous memory
//     and up to 4.5 MiB of pages of the binary;
//   - a source and its watcher add 4 MiB with 3 endpoints, and 8 MiB with 5 000
//     in 50 slices, 12 to 14 MiB at their peak under change (go test -run TestMemory -v);
//   - a full ranking of 5 000 endpoints takes 1.8 ms
//     (go test -bench Rank5000 ./topology);
//   - a connection whose packets vanish is noticed after 13 s
//     (go test -run Silent -v).
//
// Goroutines: [Source.Run] and [Node.Run] are the caller's. While they run, each open
// watch has one of ours (tap.go) and three or four of the client libraries, which also
// have the reader and the writer of the one HTTP/2 connection. Those of a watch
// have ended when Run returns, or end with the reply they read.
package kube
