package cache

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Entry is one answer, ready to be copied to any client that asks with the
// same key. It holds no OPT and ID 0, and its bytes never change, so any
// number of goroutines may read it while the cache drops it.
type Entry struct {
	blob   []byte   // the key, then the bare reply; one allocation
	ttls   []uint16 // offsets of the TTLs within the reply
	keyLen uint16
	run    run
	until  time.Duration // the answer holds until then
	due    time.Duration // until then it is given without a thought
	stored time.Duration
	hits   uint32 // guarded by the shard's lock
	kind   Kind
	why    wire.EDE // of a Failure
	said   wire.EDE // by the server, for those who were waiting
	route  uint8
	via    uint8
	sure   bool
	made   bool

	// Refreshing is taken by whoever asks the servers for this entry again
	// while it is still being served, so that one asks and not all.
	Refreshing atomic.Bool
	// recheck is the time before which a failed refresh is not tried again, and
	// trouble is how it failed.
	recheck atomic.Int64
	trouble atomic.Uint32
}

// run is a row of address records of one size and owner in the answer section,
// which may be put in any order (RFC 1794).
type run struct{ at, size, n uint16 }

// NewEntry makes an entry from a server's reply, which must be Simple. keep
// tells whether the policy lets it be kept; if not, it still serves those who
// are waiting for it now. A reply that is no answer gives a nil entry and its
// Kind, Failure or Lame. Of the arguments nothing is kept but copies.
func NewEntry(key []byte, r *wire.Reply, p *Policy, route uint8, now time.Duration) (e *Entry, kind Kind, keep bool) {
	kind, seconds, settled := p.judge(r)
	if kind == Failure || kind == Lame {
		return nil, kind, false
	}
	said := r.EDE()
	if p.Minimal && kind == Positive && !extras(r.Type) && !wire.WantsProof(key) {
		short := r.Minimal()
		r = &short
	}
	life := time.Duration(seconds) * time.Second
	e = &Entry{
		blob:   make([]byte, 0, len(key)+len(r.Msg)),
		keyLen: uint16(len(key)),
		kind:   kind,
		route:  route,
		via:    r.Via,
		made:   r.Made,
		said:   said,
		sure:   settled,
		stored: now,
		until:  now + life,
		due:    p.due(r, now, life),
	}
	e.blob = r.AppendBare(append(e.blob, key...))
	if p.KeepAA && r.Authoritative() {
		wire.SetAA(e.msg())
	}
	e.index(r, p)
	return e, kind, life > 0
}

// NewFailure makes the entry that says, for ttl, that the servers gave no
// answer: why, and what a server said of it, if one did.
func NewFailure(key []byte, why, said wire.EDE, ttl time.Duration, route uint8, now time.Duration) *Entry {
	return &Entry{
		blob:   bytes.Clone(key),
		keyLen: uint16(len(key)),
		kind:   Failure,
		why:    why,
		said:   said,
		route:  route,
		stored: now,
		until:  now + ttl,
		due:    now + ttl,
	}
}

// ForAnyType is a copy of the entry under the key of its name alone: what it
// says of the name holds for every question type.
func (e *Entry) ForAnyType() *Entry {
	blob := make([]byte, 0, len(e.blob))
	blob = append(wire.AppendKeyOfType(blob, e.Key(), 0), e.msg()...)
	return &Entry{
		blob: blob, ttls: e.ttls, keyLen: e.keyLen, kind: e.kind, route: e.route, via: e.via,
		until: e.until, due: e.until, stored: e.stored,
	}
}

// index notes where the TTLs are, clamps them, and finds the addresses that
// may be rotated.
func (e *Entry) index(r *wire.Reply, p *Policy) {
	total := r.Count(wire.Answer) + r.Count(wire.Authority) + r.Count(wire.Additional)
	e.ttls = make([]uint16, 0, total)
	msg := e.msg()
	var rr wire.Record
	var set rrset
	for c := r.Records(); c.Next(&rr); {
		if rr.Type == wire.TypeOPT {
			continue
		}
		ttl := p.clamp(r, rr)
		wire.SetTTL(msg, rr.TTLAt, ttl)
		e.ttls = append(e.ttls, uint16(rr.TTLAt))
		set.add(msg, rr, ttl, e.ttls)
		e.extendRun(r, rr)
	}
}

// rrset is the row of records with one owner and type that is being read. Its
// records share the least TTL (RFC 2181 section 5.2).
type rrset struct {
	last  wire.Record
	ttl   uint32
	first int // index of its first TTL
}

func (s *rrset) add(msg []byte, rr wire.Record, ttl uint32, ttls []uint16) {
	at := len(ttls) - 1
	same := at > 0 && s.last.Type == rr.Type && s.last.Section == rr.Section &&
		rr.Type != wire.TypeRRSIG && wire.EqualNames(msg, s.last.Owner, rr.Owner)
	if !same {
		s.first, s.ttl = at, ttl
	}
	s.last = rr
	if ttl == s.ttl {
		return
	}
	s.ttl = min(s.ttl, ttl)
	wire.CapTTLs(msg, ttls[s.first:], s.ttl)
}

// extendRun counts rr into the row of addresses if it continues it.
func (e *Entry) extendRun(r *wire.Reply, rr wire.Record) {
	if rr.Section != wire.Answer || rr.Type != r.Type || rr.Type != wire.TypeA && rr.Type != wire.TypeAAAA {
		return
	}
	size := rr.End - rr.Owner
	last := int(e.run.at) + int(e.run.size)*int(e.run.n)
	owner := r.Msg[rr.Owner : rr.TTLAt-4]
	switch {
	case e.run.n > 0 && last == rr.Owner && int(e.run.size) == size &&
		bytes.Equal(owner, r.Msg[int(e.run.at):int(e.run.at)+len(owner)]):
		e.run.n++
	case e.run.n < 2:
		e.run = run{at: uint16(rr.Owner), size: uint16(size), n: 1}
	}
}

// Kind is what the entry says.
func (e *Entry) Kind() Kind { return e.kind }

// Route is the index of the route the answer came by.
func (e *Entry) Route() uint8 { return e.route }

// Via is where the answer came from: Via of the reply it was made of.
func (e *Entry) Via() uint8 { return e.via }

// Made is Made of the reply that the entry was made of.
func (e *Entry) Made() bool { return e.made }

// RCode is the response code of the entry's replies. To the client every
// failure is SERVFAIL: some stub resolvers ignore other codes and wait.
func (e *Entry) RCode() wire.RCode {
	if e.kind == Failure {
		return wire.ServFail
	}
	return wire.HeaderRCode(e.msg())
}

// Why is the reason of a Failure.
func (e *Entry) Why() wire.EDE { return e.why }

// EDE is the extended error for those who were waiting for the reply: the
// server's own, or the reason of a Failure.
func (e *Entry) EDE() wire.EDE {
	if e.said != wire.NoEDE {
		return e.said
	}
	return e.why
}

// Live reports whether the answer still holds at now.
func (e *Entry) Live(now time.Duration) bool { return now < e.until }

// Age is the time since the entry was made.
func (e *Entry) Age(now time.Duration) time.Duration { return now - e.stored }

// Left is the time until the answer ends; negative when it has.
func (e *Entry) Left(now time.Duration) time.Duration { return e.until - now }

// Standby reports whether the ended answer may stand in for one that cannot be
// had, under p.
func (e *Entry) Standby(p *Policy, now time.Duration) bool {
	return e.kind != Failure && now < e.until+p.MaxStale
}

// Due reports whether the answer has ended at now, or is so near its end that it
// is worth asking for it again.
func (e *Entry) Due(now time.Duration) bool { return now >= e.due }

// worn reports whether the answer has been over for as long as it had held:
// nobody has asked for it since, or no server answers.
func (e *Entry) worn(now time.Duration) bool { return now-e.until > e.until-e.stored }

// Postpone notes a refresh that failed, and why: until then, none is tried.
func (e *Entry) Postpone(until time.Duration, why wire.EDE) {
	e.trouble.Store(uint32(why))
	e.recheck.Store(int64(until))
}

// Resting reports whether a refresh that failed keeps another from being tried
// at now, and why it failed.
func (e *Entry) Resting(now time.Duration) (why wire.EDE, yes bool) {
	return wire.EDE(e.trouble.Load()), int64(now) < e.recheck.Load()
}

// Denies reports whether the entry says that its name does not exist, not only
// that the name an alias leads to does not (RFC 6604 section 3).
func (e *Entry) Denies() bool { return e.kind == NXDomain && wire.AnswerCount(e.msg()) == 0 }

// Settles reports whether the answer puts an end to what was known before, even
// if it is not kept itself: not when it was cut short, or denies without a SOA
// record and so may come from a server that does not know.
func (e *Entry) Settles() bool { return e.sure }

// Append appends the reply to q, which must have the entry's key: TTLs lowered
// by the age in whole seconds, q's own ID, flags and spelling, and the
// addresses turned by q's ID if rotate is set. A Failure has no such reply.
func (e *Entry) Append(dst []byte, q *wire.Query, now time.Duration, rotate bool) []byte {
	start := len(dst)
	dst = e.appendTurned(dst, q.ID, rotate)
	wire.AgeTTLs(dst[start:], e.ttls, seconds(now-e.stored))
	wire.Echo(dst[start:], q)
	return dst
}

// AppendDenial appends the reply to q that says that its name does not exist, with
// the SOA record of the entry, which denies another name of the same zone.
func (e *Entry) AppendDenial(dst []byte, q *wire.Query, now time.Duration) []byte {
	return wire.AppendDenial(dst, q, e.msg(), seconds(now-e.stored))
}

// Below makes the entry of key that says what AppendDenial does.
func (e *Entry) Below(q *wire.Query, key []byte, p *Policy, now time.Duration) *Entry {
	r, err := wire.ParseReply(e.AppendDenial(nil, q, now))
	if err != nil {
		return nil
	}
	below, _, _ := NewEntry(key, &r, p, e.route, now)
	return below
}

// AppendStale appends the ended answer with the TTL that p gives it. AA and AD
// are cleared: nobody vouches for it any more.
func (e *Entry) AppendStale(dst []byte, q *wire.Query, p *Policy, rotate bool) []byte {
	start := len(dst)
	dst = e.appendTurned(dst, q.ID, rotate)
	wire.CapTTLs(dst[start:], e.ttls, seconds(p.StaleTTL))
	wire.ClearClaims(dst[start:])
	wire.Echo(dst[start:], q)
	return dst
}

func (e *Entry) appendTurned(dst []byte, turn uint16, rotate bool) []byte {
	msg := e.msg()
	if e.run.n < 2 || !rotate {
		return append(dst, msg...)
	}
	at, size := int(e.run.at), int(e.run.size)
	end := at + size*int(e.run.n)
	cut := at + size*int(turn%e.run.n)
	dst = append(dst, msg[:at]...)
	dst = append(dst, msg[cut:end]...)
	dst = append(dst, msg[at:cut]...)
	return append(dst, msg[end:]...)
}

// Key is the entry's key; it must not be changed.
func (e *Entry) Key() []byte { return e.blob[:e.keyLen] }

func (e *Entry) msg() []byte { return e.blob[e.keyLen:] }

// cost is what the entry takes of the budget, in bytes: its own allocations
// and its share of list and map.
func (e *Entry) cost() int64 { return int64(cap(e.blob)+2*cap(e.ttls)) + entryOverhead }
