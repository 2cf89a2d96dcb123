// Package proof holds tests that nodens loses no query when a CoreDNS goes: the
// real binary and real CoreDNS as processes, a node's pods as clients with an
// open-loop load, and a script that plays the kubelet and the EndpointSlice
// controller.
//
// A row is one thing that happens to a cluster: an upgrade, a crash, a pod that
// falls silent, overload. Where root can make network namespaces, the three
// nodes of the cluster and their pods are namespaces, with a veth each and
// routes between them; everywhere else they are addresses of the loopback
// network, which some of the rows can do without. The namespaces bear the
// number of the process that made them, and those of a process that is no more
// are removed by the next run.
//
// Losses, failures and wrong answers are asserted exactly, times only within
// wide bounds, since the machine may be doing other things. The rows are short;
// with NODENS_FULL=1 they are as long as they should be, print a table of
// figures in Markdown, and need an hour and a half:
//
//	NODENS_FULL=1 NODENS_FIGURES=figures.md NODENS_COREDNS=$PWD/.cache/bin/coredns \
//	    go test ./bench/proof -v -timeout 150m
//
// A server that has too much to do is either one that was told how much it bears
// (overload_test.go), or a CoreDNS with a tenth of a CPU (quota_test.go), which
// takes root and cgroups:
//
//	NODENS_FULL=1 NODENS_FIGURES=figures.md NODENS_COREDNS=$PWD/.cache/bin/coredns \
//	    go test ./bench/proof -v -run 'TestOverload|TestBoundedCoreDNS' -timeout 30m
//
// NODENS_FIGURES names a file that the table is written to, in either form.
//
// NODENS_BINARY names a nodens to test in place of the one built from this
// tree. NODENS_REQUIRE lists what a test must not skip for the lack of: root,
// netns, coredns.
//
// The load asks over UDP only, each query in one datagram that is never sent
// again. Goroutines: one per load, beside those of bench/space. A test
// ends with all of them gone.
package proof
