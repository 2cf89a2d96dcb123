package dnstest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Play runs the scenario against a forwarder with one route for all names. The
// servers' part is played by the ranges, and by the steps for what no range
// answers. Every answer must be checked by a step, and no question to the
// servers may be left.
func (s *Scenario) Play(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, err := newPlayer(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range s.Steps {
			if err := p.play(step); err != nil {
				t.Errorf("line %d, step %d %s: %v", step.Line, step.Number, step.Action, err)
				break
			}
		}
		if err := p.close(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
}

// player is a scenario being played. All goroutines are idle between steps.
type player struct {
	*forwarder.Forwarder
	scenario *Scenario
	start    time.Time
	ctx      context.Context // ends with the scenario
	cancel   context.CancelFunc
	clients  sync.WaitGroup

	mu      sync.Mutex
	step    int
	pending []*pending
	answers []*dns.Msg // that no step has checked
	fault   error
}

// pending is a question to the servers that no range answers.
type pending struct {
	query *dns.Msg
	reply chan []byte // closed for silence
}

func newPlayer(s *Scenario) (*player, error) {
	set, err := s.settings()
	if err != nil {
		return nil, err
	}
	store, err := cache.New(cache.Config{Bytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	p := &player{scenario: s, start: time.Now()}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.Forwarder, err = forwarder.New(forwarder.Config{
		Routes: []forwarder.Route{{Zones: []string{"."}, Group: p, Policy: set.policy, MaxInFlight: set.maxInFlight}},
		Cache:  store, Listeners: 1, Stripes: 1, UDPSize: 1232, MaxFollowers: 100,
		RefuseSnooping: set.noSnooping,
		Now:            p.now,
	})
	return p, err
}

func (p *player) now() time.Duration { return time.Since(p.start) }

func (p *player) play(s Step) error {
	p.mu.Lock()
	p.step = s.Number
	p.mu.Unlock()
	err := p.act(s)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(err, p.fault)
}

func (p *player) act(s Step) error {
	switch s.Action {
	case "QUERY":
		return p.ask(s.Entry, uint16(s.Number))
	case "CHECK_ANSWER":
		return p.checkAnswer(s.Entry)
	case "CHECK_OUT_QUERY":
		return p.checkPending(s.Entry)
	case "REPLY":
		return p.answerPending(s.Entry)
	case "TIMEOUT", "ERROR":
		p.silencePending()
	case "TIME_PASSES":
		time.Sleep(s.Elapse)
	}
	return nil
}

// ask sends a query as a listener would.
func (p *player) ask(e *Entry, id uint16) error {
	query, err := e.query(id).Pack()
	if err != nil {
		return err
	}
	from := forwarder.Peer{Client: netip.MustParseAddrPort("127.0.0.1:4000"), Received: p.now()}
	reply, v := p.Lookup(make([]byte, 0, 4096), query, from)
	if v != forwarder.Miss {
		p.note(reply, v, id)
		return nil
	}
	p.clients.Go(func() {
		reply, v := p.Resolve(p.ctx, make([]byte, 0, 4096), query, from)
		p.note(reply, v, id)
	})
	return nil
}

// note keeps an answer for the step that checks it.
func (p *player) note(reply []byte, v forwarder.Verdict, id uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v != forwarder.Answered {
		return
	}
	m := new(dns.Msg)
	switch err := m.Unpack(reply); {
	case err != nil:
		p.fault = fmt.Errorf("the reply to query %d does not parse: %w", id, err)
	case m.Id != id:
		p.fault = fmt.Errorf("the reply to query %d has ID %d", id, m.Id)
	}
	p.answers = append(p.answers, m)
}

// checkAnswer takes the first answer to the entry's question.
func (p *player) checkAnswer(e *Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, m := range p.answers {
		if e.sameQuestion(m) == "" {
			p.answers = append(p.answers[:i], p.answers[i+1:]...)
			return faultIn(e, m)
		}
	}
	return fmt.Errorf("no answer to %v has come", asked(e.Msg))
}

// checkPending compares the last question to the servers.
func (p *player) checkPending(e *Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) == 0 {
		return fmt.Errorf("the servers are not asked for %v", asked(e.Msg))
	}
	return faultIn(e, p.pending[len(p.pending)-1].query)
}

func faultIn(e *Entry, m *dns.Msg) error {
	if fault := e.mismatch(m); fault != "" {
		return fmt.Errorf("%s in\n%v", fault, m)
	}
	return nil
}

func (p *player) answerPending(e *Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, q := range p.pending {
		if e.mismatch(q.query) == "" {
			p.pending = append(p.pending[:i], p.pending[i+1:]...)
			reply, err := e.reply(q.query)
			q.reply <- reply
			return err
		}
	}
	return fmt.Errorf("no question to the servers waits for this reply")
}

// silencePending ends the oldest question: no server answered it. A group tries
// several times, and a file may say so for each; here it is one question.
func (p *player) silencePending() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) > 0 {
		close(p.pending[0].reply)
		p.pending = p.pending[1:]
	}
}

// Exchange plays the servers.
func (p *player) Exchange(ctx context.Context, _ []byte, q *wire.Query) (wire.Reply, error) {
	m := new(dns.Msg)
	if err := m.Unpack(wire.AppendQuery(nil, q, uint16(1000+p.now()/time.Second), 1232)); err != nil {
		return wire.Reply{}, err
	}
	r, err := p.ranged(m)
	if err != nil {
		return wire.Reply{}, err
	}
	if r == nil {
		r = p.wait(m)
	}
	return parsed(r)
}

// ranged is the reply of the ranges of this step: of the entries that match, the
// one with the most conditions, and of those the first.
func (p *player) ranged(m *dns.Msg) ([]byte, error) {
	p.mu.Lock()
	var best *Entry
	for _, r := range p.scenario.Ranges {
		if p.step < r.From || p.step > r.To {
			continue
		}
		for _, e := range r.Entries {
			if e.mismatch(m) == "" && (best == nil || len(e.Match) > len(best.Match)) {
				best = e
			}
		}
	}
	p.mu.Unlock()
	if best == nil {
		return nil, nil
	}
	time.Sleep(best.Sleep)
	return best.reply(m)
}

// wait leaves a question to the steps.
func (p *player) wait(m *dns.Msg) []byte {
	q := &pending{query: m, reply: make(chan []byte, 1)}
	p.mu.Lock()
	p.pending = append(p.pending, q)
	p.mu.Unlock()
	select {
	case r := <-q.reply:
		return r
	case <-p.ctx.Done():
		return nil
	}
}

// close ends what runs, and reports what should not be left.
func (p *player) close() error {
	synctest.Wait()
	p.mu.Lock()
	var left []string
	for _, q := range p.pending {
		left = append(left, fmt.Sprintf("the servers still have to answer %v", asked(q.query)))
	}
	for _, m := range p.answers {
		left = append(left, fmt.Sprintf("the answer %s to %v was not checked", dns.RcodeToString[m.Rcode], asked(m)))
	}
	p.mu.Unlock()
	p.cancel()
	p.clients.Wait()
	_ = p.Close()
	if left != nil {
		return errors.New(strings.Join(left, "; "))
	}
	return nil
}
