// Package check holds tests of what nodens is deployed with: the chart, the
// manifests made of it, the set-ups of CoreDNS beside it, dashboard, alerts and
// documents. It needs no cluster, and has no code of its own.
//
// NODENS_UPDATE=1 writes anew what is generated, instead of comparing it.
// NODENS_BINARY names the program that the arguments of the manifests are put
// to; otherwise it is built.
package check
