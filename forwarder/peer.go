package forwarder

import (
	"net/netip"
	"time"
)

// Proto is the transport of a query.
type Proto uint8

// Transports.
const (
	UDP Proto = iota
	TCP
)

// Verdict says what becomes of a query.
type Verdict uint8

// Verdicts.
const (
	Drop     Verdict = iota // send nothing
	Answered                // send the reply
	Miss                    // not in memory: call Resolve
	Close                   // send nothing and close the connection
)

// Peer says where a query came from and when.
type Peer struct {
	Client   netip.AddrPort
	Received time.Duration // when its batch was read, as of Config.Now
	Listener uint8         // index of the listen address
	Stripe   uint8         // the loop that read it
	Proto    Proto
}
