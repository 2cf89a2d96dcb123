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
	// IgnoredWrongCase: the right question in other letters than it was put.
	IgnoredWrongCase
	IgnoredKinds = 7 // how many there are
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

	Out      bool          // gets no new queries while another may answer
	Fresh    bool          // out because it became ready and no probe succeeded yet
	Suspect  bool          // so often silent in a row that others are asked, as long as there are any
	OutUntil time.Duration // a target that failed stays out until then, on Config.Now's clock
	Share    float64       // which part of its load it takes: less than 1 when out or just back
	Leaving  float64       // which part of its queries goes on because some were lost
	Misses   int           // silences in a row
	InFlight int
	Bears    int           // in flight, from which others go on to the next tier
	Peak     time.Duration // moving maximum of reply times; 0 before the first reply
	SRTT     time.Duration // smoothed round-trip time; 0 before the first reply
	Plain    bool          // asked without EDNS for a while
	Alt      bool          // asked at its other address family for a while
	Looped   bool          // not asked, because it leads back to us
	SameCase bool          // asked in the client's letter case for a while: it does not repeat another
	Misfit   string        // why the certificate does not fit that the server showed last; "" if it does

	Sent       uint64 // queries handed to the kernel, over all transports
	Timeouts   uint64 // attempts that ended unanswered after their retry time
	HardErrors uint64 // refused, unreachable, reset
	Misfits    uint64 // attempts that ended because the certificate does not fit
	Ejections  uint64 // times that it went out for a failure
	Forced     uint64 // attempts at it while it was ejected or suspected, for want of others

	ProbeFailures        uint64 // probes without a reply
	ReusedUDP, ReusedTCP uint64 // those of Sent, without probes, over a socket that was open
	OpenedUDP, OpenedTCP uint64 // and those that one was opened for

	Replies [RCodeClasses]Histogram
	Ignored [IgnoredKinds]uint64
}

// Status is a group at the moment of asking.
type Status struct {
	Targets  []TargetStatus // by tier, in the table's order
	Draining bool           // as the table says

	Exchanges     uint64 // queries asked
	Attempts      uint64 // questions put for them
	Retries       uint64 // attempts after an exchange's first, hedges included
	Probes        uint64 // questions put to see how a target is
	Held          uint64 // times that an attempt had to wait: every target is out, or the packet rate is reached
	Looped        uint64 // names asked to find loops that came back to us
	Exhausted     uint64 // exchanges without any reply
	TCPFallbacks  uint64 // truncated replies asked again over TCP
	EDNSFallbacks uint64 // questions put again without EDNS
	Open          int    // sockets open now

	Served     [tierCount]uint64 // replies by the tier they came from
	Hedges     [tierCount]uint64 // copies put before the retry time, by the tier of the first
	Spills     [tierCount]uint64 // queries that a nearer tier had too much to do for, by the tier they went to
	Suspicions [tierCount]uint64 // targets that were silent too often in a row
	Ejections  [tierCount]uint64 // targets that went out for a failure
	Panics     [tierCount]uint64 // queries put to an ejected target for want of others
}
