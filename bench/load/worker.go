package load

import (
	"context"
	"runtime"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// tick is the longest wait: timeouts and the end of the run are seen that late
// at most.
const tick = 10 * time.Millisecond

// worker sends and receives on its own sockets, in one goroutine.
type worker struct {
	run    *Run
	number int
	source Source
	judge  judge
	poll   *poll
	lanes  []lane
	udp    []int // indexes of lanes
	tcp    []int
	turn   int // lane last used
	in     []byte
	out    []byte
	train  train

	schedule schedule
	habit    habit
	inFlight int
	asked    uint64        // queries sent, for a run of so many
	checked  time.Duration // when timeouts were looked for last

	// mu is held while the worker works, not while it waits. It guards the
	// scores, which the clerk reads too.
	mu      sync.Mutex
	seconds *seconds

	// Read by others only when the worker has ended.
	lag     *hdr.Histogram
	trouble trouble
	waited  time.Duration
	stopped time.Duration // when the last query had been sent, 0 before
}

// trouble is what went wrong on the generator's side or on the way.
type trouble struct {
	Unsent   uint64
	Stray    uint64
	Refused  uint64
	Broken   uint64
	Overflow uint64
}

func newWorker(r *Run, number int) (*worker, error) {
	w := &worker{
		run:      r,
		number:   number,
		source:   r.cfg.Source(number),
		judge:    newJudge(),
		in:       make([]byte, 65535),
		out:      make([]byte, 0, 512),
		train:    newTrain(),
		schedule: newSchedule(r.cfg.Stages, number, r.cfg.Workers),
		habit:    r.cfg.Retry.habit(),
		seconds:  newSeconds(),
		lag:      hdr.New(shortest, longest, 3),
	}
	var err error
	if w.poll, err = newPoll(); err != nil {
		return nil, err
	}
	if err := w.openLanes(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *worker) close() {
	for _, l := range w.lanes {
		w.trouble.Overflow += l.close()
	}
	w.poll.close()
}

func (w *worker) now() time.Duration { return w.run.now() }

// work runs until the schedule is over, or ctx has ended, and every query has.
func (w *worker) work(ctx context.Context) {
	// The thread ends with the goroutine, and its timer slack with it.
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if enter := w.run.cfg.Enter; enter != nil && enter() != nil {
		return
	}
	for {
		w.mu.Lock()
		next, sending := w.sendDue(ctx)
		w.giveUp()
		if !sending && w.stopped == 0 {
			w.stopped = w.now()
		}
		over := !sending && w.inFlight == 0
		w.mu.Unlock()
		if over {
			return
		}
		w.receive(next)
	}
}

// receive waits for replies until the given time and takes them.
func (w *worker) receive(until time.Duration) {
	events := w.poll.ready()
	if len(events) == 0 {
		start := w.now()
		if d := until - start - w.run.cfg.Spin; d > 0 {
			w.poll.sleep(d)
			w.waited += w.now() - start
			events = w.poll.ready()
		}
	}
	if len(events) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range events {
		w.lanes[ev.Pad].ready(w, ev)
	}
}

// take files one reply that came on a lane.
func (w *worker) take(l lane, msg []byte) {
	p := l.flights()
	slot := int32(-1)
	if len(msg) >= 2 {
		slot = p.find(uint16(msg[0])<<8 | uint16(msg[1]))
	}
	if slot < 0 {
		w.trouble.Stray++ // came after its timeout, or twice
		return
	}
	s := &p.slots[slot]
	v := w.judge.of(msg, &s.want)
	switch {
	case v == truncated && w.run.cfg.FollowTC && w.follow(l, slot, msg):
		return
	case v == servFail && w.again(l, slot, true):
		return
	}
	took := w.now() - s.intended
	late := took > w.run.cfg.Late
	w.run.book.Load().byID[s.phase].scores[w.number].count(v, took, late)
	w.seconds.at(s.intended).count(v, took, late)
	if v >= wrongFormat {
		w.run.example(v, msg, s)
	}
	w.end(l, slot)
}

// end takes a query out of flight.
func (w *worker) end(l lane, slot int32) {
	w.inFlight--
	l.flights().done(slot)
	l.ended(slot)
}

// score counts something about a query, in its phase and in its second.
func (w *worker) score(s *slot, count func(*Counts)) {
	count(&w.run.book.Load().byID[s.phase].scores[w.number].Counts)
	count(&w.seconds.at(s.intended).Counts)
}

// giveUp ends the queries that have waited too long, or sends them again, and
// lets the lanes send what waits.
func (w *worker) giveUp() {
	now := w.now()
	if now-w.checked < tick {
		return
	}
	w.checked = now
	for _, l := range w.lanes {
		p := l.flights()
		for p.first >= 0 && now-p.slots[p.first].sent > w.run.cfg.Timeout {
			slot := p.first
			if w.again(l, slot, false) {
				continue
			}
			w.score(&p.slots[slot], func(c *Counts) { c.Lost++ })
			w.end(l, slot)
		}
		l.tick(w)
	}
}
