// Package cluster is the control plane of Kubernetes on loopback, for tests: a
// real etcd and API server, and the real controllers of EndpointSlices, DaemonSets and
// Jobs, without nodes. A test makes Nodes and Pods as objects and changes them as
// kubelets, the other workload controllers and the node controller would; the slices are
// then written by the real controller. Package kubelet runs the pods of a DaemonSet.
//
// Start it once with [Start]; each test works on a [Stage] of its own, which is
// a namespace with its own nodes and addresses; [Cluster.System] is one in kube-system. [Proxy] stands between a client
// and the API server and loses packets on demand.
//
// Goroutines: one for each child process, which waits for its end, and in a
// Proxy its acceptor and two for each connection. [Cluster.Stop] and
// [Proxy.Close] wait for them. A child also dies when the process that started
// it does, however that ends.
package cluster
