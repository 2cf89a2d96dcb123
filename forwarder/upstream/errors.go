package upstream

import (
	"fmt"
	"net/netip"
)

// Error is why an exchange gave no reply. Values are constants, so that they
// can be compared with errors.Is.
type Error string

func (e Error) Error() string { return string(e) }

// Errors of Exchange.
const (
	// ErrNoTargets: the table is empty.
	ErrNoTargets Error = "the group has no server to ask: check its endpoints or its list of servers"
	// ErrBudget: the budget ended first.
	ErrBudget Error = "no server answered within the budget: check that they are up and reachable"
	// ErrFailed: all attempts failed before the budget ended.
	ErrFailed Error = "every server asked failed: check that they are up and reachable"
	// ErrClosed: the group was closed.
	ErrClosed Error = "the group was closed"
)

// Causes of one attempt's failure, found in ExchangeError.Cause.
const (
	ErrRemoved   Error = "the server was removed from the table"
	ErrNotReady  Error = "the server stopped being ready"
	ErrEjected   Error = "the server is not there"
	ErrMalformed Error = "the server's reply is malformed"
	ErrMismatch  Error = "the server sent something else than the reply over TCP"
	ErrTLS       Error = "the server could not be spoken to over TLS: check its name and our certificate authorities"
	// ErrCertificate and ErrLetters are what Config.Notice is told, too.
	ErrCertificate Error = "the server's certificate does not fit: check the name it is asked by and our certificate authorities"
	ErrLetters     Error = "the server does not repeat the letters of questions: it is asked in the client's, and forging its replies is easier"

	ErrNoAddress Error = "the server has no address for this transport"
	ErrNoSocket  Error = "the connection that Config.Dial gave is no socket of the kernel: give one for udp"
	ErrTooMany   Error = "the group's bound on open sockets is reached: raise it or use fewer servers"
	ErrFull      Error = "the server's TCP connections have as many queries in flight as they may"
	ErrCrowded   Error = "every server is avoided, and as many queries as may wait until one is back"
	ErrRate      Error = "more is asked than the bound on packets lets through: raise it or ask less"
	ErrSilent    Error = "the server did not answer in time"
)

// ExchangeError tells how an exchange failed. errors.Is finds both Reason and
// Cause.
type ExchangeError struct {
	Reason   Error          // one of ErrNoTargets, ErrBudget, ErrFailed, ErrClosed
	Attempts int            // how many attempts were made
	Server   netip.AddrPort // the server of the last failure; may be invalid
	Cause    error          // the last failure; may be nil
}

func (e *ExchangeError) Error() string {
	if e.Cause == nil {
		return string(e.Reason)
	}
	return fmt.Sprintf("%s (%d attempts, last at %s: %v)", e.Reason, e.Attempts, e.Server, e.Cause)
}

// Unwrap returns Reason and Cause.
func (e *ExchangeError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
}
