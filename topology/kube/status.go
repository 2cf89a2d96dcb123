package kube

import "time"

// Fault is what keeps us from the API server.
type Fault uint8

// The faults.
const (
	None         Fault = iota
	NoServer           // no server, token or certificate authority is known
	Unreachable        // no connection, or it broke
	Certificate        // the server's certificate is not trusted
	Unauthorized       // the token is not accepted
	Forbidden          // the token is accepted; the permission is missing
	ServerError        // the server answers with errors
)

// String returns the word used in status pages and metrics.
func (f Fault) String() string {
	names := [...]string{"none", "no-server", "unreachable", "certificate", "unauthorized", "forbidden", "server-error"}
	if int(f) >= len(names) {
		return "unknown"
	}
	return names[f]
}

// Faults lists every fault but None.
func Faults() []Fault {
	return []Fault{NoServer, Unreachable, Certificate, Unauthorized, Forbidden, ServerError}
}

// Counters only ever grow.
type Counters struct {
	Lists     uint64 // complete sets received, streamed ones too
	Watches   uint64 // watches opened
	Events    uint64 // slices added, changed or removed by a watch
	Bookmarks uint64 // signs of life on a quiet watch
	Failures  uint64 // requests and watches that failed
	Foreign   uint64 // slices of another Service or namespace, which nobody asked for
	Rewinds   uint64 // lists older than what was known, held back for a while
	Searches  uint64 // times a Service was looked for by its label
}

// Status is a snapshot for status pages and metrics.
type Status struct {
	// Namespace and Service are followed now. Found says that the Service was
	// found by its label, because the default one does not exist.
	Namespace, Service string
	Found              bool

	// Fault and LastError say why the last attempt failed, FailingFor how long
	// nothing has worked for as long as two seconds. None, "" and 0 while all is
	// well.
	Fault      Fault
	LastError  string
	FailingFor time.Duration

	// Contacted says that the server has answered at least once; Age is the
	// time since its last sign of life: a list, an event or a bookmark (about
	// one a minute). Before the first, Age counts from the start.
	Contacted bool
	Age       time.Duration

	Counters Counters
}
