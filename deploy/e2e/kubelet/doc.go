// Package kubelet plays what a test without a cluster lacks between a pod at the API
// server and its processes: the scheduler's binding, the kubelet, the engine, and for a
// deleted workload the garbage collector.
//
// The pods are those that the real controllers make. [Kubelet.Sync] is one round: it
// binds the pods that are meant for the node, makes their volumes, starts their
// containers by runc with exactly the arguments, environment, rights, volumes and limit
// of memory that the pod states, in the order of init containers and sidecars, probes
// whether they are ready, starts anew what has ended, terminates what is deleted within
// its grace period, and says all that at the API server. Between two rounds nothing
// happens, so that a test can look at a node whose container has just died. ConfigMaps
// are followed at each round, as a link that leads to another folder.
//
// What it does not play: quality of service, SELinux, eviction, the delays of a
// kubelet (up to a minute for a ConfigMap, a back-off for what crashes) and liveness
// probes, which a test asks for one by one. An image other than nodens is not run: what
// it stands for is the caller's.
//
// It starts no goroutine beside those of package container.
package kubelet
