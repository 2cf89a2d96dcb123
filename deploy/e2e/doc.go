// Package e2e holds tests against a real control plane: what nodens makes of
// the Nodes, Pods, Services and EndpointSlices of Kubernetes, through all their
// changes, and through the failures of the API itself; and nodens as it is
// installed, by node-cache's manifest with another image (TestStockManifest) and
// by the chart (TestChartInstall); and its modes beside the real kube-proxy in each of
// its own (TestKubeProxy). It has no code of its own; package cluster
// starts the control plane, and package kubelet says what of a node is played.
//
// make e2e builds the programs and runs the tests. By hand:
//
//	NODENS_CONTROL_PLANE=$(./build.sh) go test .
//
// NODENS_REQUIRE is a list of what must be there (etcd for the control plane,
// root, netns, coredns, runc, setcap, nft, ip, ss): a test that lacks it fails instead of being skipped.
// NODENS_E2E_OUTAGE is how long the API server stays away in the test of that,
// default 20s; .ci/run takes 1m.
package e2e
