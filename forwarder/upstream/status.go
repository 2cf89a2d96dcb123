package upstream

import (
	"net/netip"
	"time"
)

// RCodeClass groups response codes for counting.
type RCodeClass uint8

// Classes of response codes.
const (
	ClassNoError RCodeClass = iota
	ClassFormErr
	ClassServFail
	ClassNXDomain
	ClassNotImp
	ClassRefused
	ClassOther
	RCodeClasses = 7 // how many there are
)

// Ignored is why something that arrived was not taken.
type Ignored uint8

// Kinds of what is ignored.
const (
	// IgnoredShort: shorter than a header.
	IgnoredShort Ignored = iota
	// IgnoredNotResponse: a query, not a response.
	IgnoredNotResponse
	// IgnoredWrongID: no query with this ID is in flight.
	IgnoredWrongID
	// IgnoredWrongQuestion: another question under an ID in flight.
	IgnoredWrongQuestion
	// IgnoredUnparsable: the right question in a malformed message.
	IgnoredUnparsable
	// IgnoredLate: the query's exchange had ended.
	IgnoredLate
	IgnoredKinds = 6 // how many there are
)

// DurationBuckets is how many bounded buckets a Histogram has. Bucket i counts
// durations up to BucketBound(i); one more counts the rest.
const DurationBuckets = 16

// BucketBound is the upper bound of a bucket: 0.25 ms, doubled from one to the
// next.
func BucketBound(i int) time.Duration { return 250 * time.Microsecond << i }

// Histogram counts durations.
type Histogram struct {
	Buckets [DurationBuckets + 1]uint64 // each its own, not cumulative
	Sum     time.Duration
}

// Count is how many durations were counted.
func (h *Histogram) Count() uint64 {
	var n uint64
	for _, b := range h.Buckets {
		n += b
	}
	return n
}

// TargetStatus is one target at the moment of asking.
type TargetStatus struct {
	Pod   string
	Addr  netip.AddrPort // its first valid address
	Tier  int            // NodeTier to LastTier
	State State

	Suspect      bool          // skipped while a healthy target is left
	SuspectUntil time.Duration // when it is tried again, on Config.Now's clock
	Misses       int           // silences in a row
	InFlight     int
	SRTT         time.Duration // smoothed round-trip time; 0 before the first reply
	RetryTime    time.Duration // how long its silence is borne
	Plain        bool          // asked without EDNS for a while
	Alt          bool          // asked at its other address family for a while

	Sent       uint64 // queries handed to the kernel, over all transports
	Timeouts   uint64 // attempts that ended unanswered after their retry time
	HardErrors uint64 // refused, unreachable, reset
	Replies    [RCodeClasses]Histogram
	Ignored    [IgnoredKinds]uint64
}

// Status is a group at the moment of asking.
type Status struct {
	Targets  []TargetStatus // by tier, in the table's order
	Draining bool           // as the table says

	Exchanges     uint64            // queries asked
	Attempts      uint64            // questions put for them
	Retries       uint64            // attempts after an exchange's first
	Trials        uint64            // copies sent to see whether a suspect target is back
	Exhausted     uint64            // exchanges without any reply
	TCPFallbacks  uint64            // truncated replies asked again over TCP
	EDNSFallbacks uint64            // questions put again without EDNS
	Served        [tierCount]uint64 // replies by the tier they came from
	Open          int               // sockets open now
}
