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
// Goroutines: [Source.Run] and [Node.Run] are the caller's. While they run, the
// client libraries run some of their own: the reader and the writer of the one
// HTTP/2 connection, and three or four for each open watch. Those of a watch
// have ended when Run returns, or end with the reply they read.
package kube
