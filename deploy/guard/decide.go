package guard

import (
	"net/netip"
	"time"
)

// The times of a decision. Elements of the sets outlast four renewals, so that one that
// is late changes nothing, and end a second after a guard that died.
const (
	roundEvery = 250 * time.Millisecond
	holdTime   = time.Second
	// stuckRounds is how many rounds in a row a socket stays silent before the
	// kernel sends its queries elsewhere, and calmRounds how many it must answer
	// before they come back.
	stuckRounds = 4
	calmRounds  = 4
	// recent is how long an answer speaks for an instance.
	recent = 600 * time.Millisecond
)

// Witness is an answer to a probe.
type Witness struct {
	// Instance is one run of serve, Number the socket that read the probe.
	Instance string
	Number   int
}

// outcome is what a round of probes showed of a place.
type outcome uint8

const (
	unclear outcome = iota // by chance some socket was never picked
	calm                   // every socket answered
	silent                 // a socket did not, and probes stayed without an answer
	absent                 // nobody has the address
)

// and is what a place shows over UDP and TCP, of which somebody listens for the other.
func (o outcome) and(tcp outcome) outcome {
	switch {
	case o == silent || tcp == silent:
		return silent
	case tcp == calm:
		return o
	}
	return unclear
}

// place is what is known of a listen address.
type place struct {
	addr  netip.Addr
	heard map[string]time.Duration // by instance: when it answered last
	// reached says that a probe over TCP was answered. At the address of a Service
	// silence says nothing before: somebody else's rules may be in the way.
	reached bool

	silent, calm int // rounds in a row
	stuck        bool
	alive        bool          // is in the set
	renewed      time.Duration // when
	bypass       bool          // is in the set
}

// round takes in what a round showed, and tells whether that changed anything.
func (p *place) round(o outcome) (changed bool) {
	was := p.stuck
	switch o {
	case silent:
		p.silent, p.calm = p.silent+1, 0
	case calm:
		p.silent, p.calm = 0, p.calm+1
	case absent: // whoever was stuck is gone, and the kernel knows
		p.silent, p.calm, p.stuck = 0, 0, false
	case unclear:
		return false
	}
	switch {
	case p.silent >= stuckRounds:
		p.stuck = true
	case p.calm >= calmRounds:
		p.stuck = false
	}
	return was != p.stuck
}

// answered reports whether an instance other than those that leave or have died has
// answered lately.
func (p *place) answered(gone map[string]bool, now time.Duration) bool {
	for instance, at := range p.heard {
		if !gone[instance] && now-at < recent {
			return true
		}
	}
	return false
}

// forget drops instances that have not answered for long.
func (p *place) forget(now time.Duration) {
	for instance, at := range p.heard {
		if now-at > time.Minute {
			delete(p.heard, instance)
		}
	}
}

// Deaths soon after a start.
const (
	youngFor   = 10 * time.Second // an instance that lived longer has proved itself
	maxDeaths  = 3
	firstPause = 10 * time.Second
	maxPause   = 5 * time.Minute
)

// deaths counts instances that died soon after their start, in a row. Each of them
// took queries with it, so after some of them the next one has to wait for its
// queries: twice as long with each further death.
type deaths struct {
	inRow int
	until time.Duration // the queries go elsewhere
}

// died takes in that an instance is gone without having said so.
func (d *deaths) died(lived, now time.Duration) {
	if lived >= youngFor {
		*d = deaths{}
		return
	}
	d.inRow++
	if d.inRow >= maxDeaths {
		pause := firstPause << min(d.inRow-maxDeaths, 10)
		d.until = now + min(pause, maxPause)
	}
}

// lived takes in that an instance has been there for a while. While its queries went
// elsewhere it has proved nothing.
func (d *deaths) lived(since, now time.Duration) {
	if d.inRow > 0 && now-max(since, d.until) >= youngFor {
		*d = deaths{}
	}
}

// open says that queries go past whatever instance there is.
func (d *deaths) open(now time.Duration) bool { return now < d.until }

// Why queries go past serve.
const (
	becauseStuck   = "a socket does not answer"
	becauseDeaths  = "it died soon after its start, again and again"
	becauseLeaving = "it leaves, and there is no other"
)

// bypassReason says why queries to a place should go past serve; "" = they should not.
// alone says that an instance leaves and no other is there.
func (p *place) bypassReason(d *deaths, alone bool, now time.Duration) string {
	switch {
	case p.stuck:
		return becauseStuck
	case d.open(now):
		return becauseDeaths
	case alone:
		return becauseLeaving
	}
	return ""
}
