// Package forwarder answers DNS queries from a cache and asks servers for the
// rest. It opens no socket: a listener hands it queries as bytes, and a Group
// asks the servers.
//
// Lookup and Resolve, in forwarder.go, are the story of a query. Lookup runs on
// the goroutine that reads the socket and answers what is in memory. Resolve
// runs on a goroutine of its own, asks, and fills the cache; identical
// questions that are being asked share one flight.
//
// Goroutines (background.go): one for each question that is asked without a client,
// since an answer has ended or is about to (refresh.go), or since the next names of a
// search list will be asked for (ahead.go). Each holds a place of its route's
// MaxInFlight, and Close waits for them. There are no others.
package forwarder
