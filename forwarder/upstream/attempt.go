package upstream

import (
	"bytes"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// maxFrame is the longest query: length prefix, header, question and OPT.
const maxFrame = 2 + wire.HeaderLen + wire.MaxName + 4 + wire.OPTLen

// kind is what a socket or connection tells the exchange of an attempt.
type kind uint8

const (
	// gotReply: the reply is in the attempt; nothing more comes.
	gotReply kind = iota
	// gotSignal: err says that it failed, but a reply may still come.
	gotSignal
	// gotHint: a bare FORMERR. The server seems not to understand EDNS.
	gotHint
	// gotCase: a reply whose question differs in the case of letters only.
	// Either it is forged or the server does not repeat them.
	gotCase
	// gotEnd: err says that it failed; nothing more comes.
	gotEnd
	// gotStale: the connection had been in use and was closed without a reply;
	// nothing more comes.
	gotStale
)

// event is sent from a socket to an exchange.
type event struct {
	err  error
	slot uint8
	run  uint8 // of the attempt when it was sent
	kind kind
}

// An attempt puts its question several times, each a run, when the reply asks
// for it: without EDNS, over TCP, at the other family, on a fresh connection.
// Each run sends at most one signal and one end.
const (
	maxRuns   = 5
	maxEvents = maxAttempts * maxRuns * 2
)

type progress uint8

const (
	unused   progress = iota
	waiting           // asked
	failing           // asked, and a failure signal came
	answered          // replied
	over              // nothing more comes
)

// carrier is the socket or connection that an attempt's question went out on.
type carrier interface {
	// abandon withdraws the attempt; nothing is sent for it afterwards.
	abandon(a *attempt)
}

// attempt is one question put to one target. It belongs to its exchange, but
// while a carrier has it, the carrier's lock guards what is marked.
type attempt struct {
	events chan<- event
	slot   uint8
	run    uint8
	buf    [maxFrame]byte
	bytes  []byte // carrier's lock until gotReply
	asking
}

// asking is what an attempt is about and how far it is.
type asking struct {
	to       *target // nil: unused
	via      carrier
	progress progress
	plain    bool // without EDNS
	wasEDNS  bool // without EDNS because the reply to EDNS was a rejection
	byTCP    bool
	fallback bool // over TCP because the answer is too long for UDP
	mixed    bool // the letters of the name are in random case
	recased  bool // asked again because a reply had other letters
	alt      bool // at the target's other family
	fresh    bool // demands a new connection
	missed   bool // its silence was counted
	broken   bool // a failure signal came
	class    class
	speaks   bool // its reply speaks for the target
	probe    bool // no client asked
	sentAt   time.Duration
	retry    time.Duration // when the next attempt is due
	borne    time.Duration // a longer silence counts against the target
	endAt    time.Duration // when the exchange's budget ends

	id        uint16     // carrier's lock
	signalled bool       // carrier's lock
	reply     wire.Reply // carrier's lock until gotReply

	frame []byte // length prefix and query
	name  []byte // as the client spelled it; borrowed
}

func (a *attempt) query() []byte { return a.frame[2:] }

// write builds the query.
func (a *attempt) write(q *wire.Query, cfg *Config) {
	udpSize := cfg.UDPSize
	if a.plain {
		udpSize = 0
	}
	a.frame = wire.AppendQuery(a.buf[:2], q, 0, udpSize)
	n := len(a.frame) - 2
	a.frame[0], a.frame[1] = byte(n>>8), byte(n)
	a.name = q.Name()
	if a.mixed {
		mixCase(a.query()[wire.HeaderLen:][:len(a.name)], cfg.Random)
	}
}

// repeats reports whether a reply that matches has the letters of the question.
func (a *attempt) repeats(msg []byte) bool {
	end := wire.HeaderLen + len(a.name)
	return bytes.Equal(msg[wire.HeaderLen:end], a.query()[wire.HeaderLen:end])
}

// register prepares a for a carrier, which calls it under its lock.
func (a *attempt) register(via carrier, id uint16) {
	a.via, a.id, a.signalled = via, id, false
	wire.SetID(a.query(), id)
}

// deliver copies the reply, whose bytes belong to the carrier. The carrier
// calls it under its lock and forgets the attempt.
func (a *attempt) deliver(r wire.Reply) {
	a.bytes = append(a.bytes[:0], r.Msg...)
	r.Msg = a.bytes
	if a.mixed {
		a.restore(&r)
	}
	a.reply = r
	a.tell(gotReply, nil)
}

// restore gives a reply the letters of the client's name: in the question, and
// in the owners of records that repeat the name instead of pointing at it.
func (a *attempt) restore(r *wire.Reply) {
	mixed := a.query()[wire.HeaderLen:][:len(a.name)]
	var rr wire.Record
	for records := r.Records(); records.Next(&rr); {
		if owner := r.Msg[rr.Owner:]; bytes.HasPrefix(owner, mixed) {
			copy(owner, a.name)
		}
	}
	copy(r.Msg[wire.HeaderLen:], a.name)
}

// signal tells of a failure, once a run. The carrier calls it under its lock.
func (a *attempt) signal(k kind, err error) {
	if !a.signalled {
		a.signalled = true
		a.tell(k, err)
	}
}

// tell never waits: there is room for all events of an exchange.
func (a *attempt) tell(k kind, err error) {
	a.events <- event{err: err, slot: a.slot, run: a.run, kind: k}
}

// withdraw takes a from its carrier, if it has one. No more events come.
func (a *attempt) withdraw() {
	if a.via != nil {
		a.via.abandon(a)
		a.via = nil
	}
}

// lost reports whether a was in vain for reasons of its target: it was silent,
// not there, or had too much to do.
func (a *attempt) lost() bool {
	return a.missed || a.broken || a.progress == answered && a.reply.RCode == wire.Refused
}

// leave ends the run: a is withdrawn and out of the target's count.
func (a *attempt) leave(p progress) {
	if a.progress == waiting || a.progress == failing {
		a.to.score.inFlight[a.class].Add(-1)
	}
	a.withdraw()
	a.progress = p
}

// reset drops what an exchange that ended leaves behind.
func (a *attempt) reset() {
	const keep = 8 << 10 // a longer buffer was for one long reply
	if cap(a.bytes) > keep {
		a.bytes = nil
	}
	if a.to != nil {
		a.run++
		a.asking = asking{}
	}
}
