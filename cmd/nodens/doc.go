// Command nodens is a DNS forwarder for every node of a Kubernetes cluster: it
// answers from its cache and asks the nearest DNS server for the rest.
//
// The command only wires: it reads the configuration, makes the parts of the
// daemon (wire.go), runs them as tasks (tasks.go) and shows what they count
// (metrics.go, statusz.go). What a query goes through is in the package
// forwarder, who is asked in the package topology.
//
// # Where to read
//
//   - main.go: the subcommands.
//   - serve.go: the daemon as a list of tasks.
//   - wire.go: a Config becomes parts; generation.go: one set of them follows
//     another, at the start and at a reload.
//   - guardcommand.go: the guard; watched.go: what the daemon has to do with it.
//   - config.go: every setting with its default; configfile.go reads them.
//   - corefile.go: a Corefile becomes the same Config; convert.go writes it out.
//   - explain.go, tail.go, flush.go: what people ask of a daemon; doctor.go: of a node.
//   - nodecache.go: node-cache's command line; nodecachehost.go: the node's network
//     under it.
//
// # Goroutines
//
//   - one for each task of serve: admin, routes, listeners, reload, readiness;
//   - for each route one for each task: the ranking of its endpoints, and their
//     file, or the API server, the snapshot and the Node object; its resolv.conf;
//   - two for each listen address (UDP and TCP), beside those of the package
//     listener;
//   - one for each configuration that was replaced, until its last query has its
//     reply;
//   - with queryLog one that writes the log, with dnstap one that sends, and one for
//     each of these that a reload replaced, until it has ended;
//   - the probes' socket, which is served from the start to the end;
//   - with a guard, its connection, which begins before all others and ends last;
//   - in nodens doctor one for each server that is asked at once, one that lists the
//     endpoints, and one that asks from outside: it waits for all of them;
//   - in nodens guard one for each task: metrics, guard, readiness;
//   - one for each address of the HTTP side, and one that asks the first address for
//     health checks;
//   - under node-cache's command line one for the guard's tasks or one that keeps the
//     interface, and one for the signals that only node-cache knows;
//   - in nodens doctor one for each of what it asks at once, which ends before the
//     report;
//   - those of net/http: one for each connection to an address of the HTTP side.
package main
