// Package dnstest is what tests of the forwarder are made with.
//
// There are two scripted upstreams. A Server speaks over real loopback sockets,
// UDP and TCP, and can do all that a network does: delay, drop, answer from
// elsewhere, break off. A Group stands in for the servers of a route without a
// socket. Both log every query they see.
//
// A Scenario is a replay file in the format of unbound's testcode: what is
// asked, what the servers say, how time passes, and what the client must get.
// Scenario.Play runs it against a Forwarder in a bubble of false time, step by
// step, and the same way each time.
//
// A Server has one goroutine for each transport, one for each connection and
// one for each query; all have ended when the test ends. Play's goroutines, one
// for each query of the file, end before it returns.
package dnstest
