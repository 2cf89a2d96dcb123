package listener

import "sync"

// maxIdle is how many resolvers wait for a miss: as many as a node with little to
// do has in flight at one time, and some more.
const maxIdle = 64

// miss is a query that has to be resolved. It owns its packet.
type miss struct {
	loop   *loop
	packet *packet
	from   Peer
}

// resolvers are the goroutines that resolve misses. One whose miss is over waits
// for the next, the last to wait first: its stack has grown to what a miss takes
// and lies in the processor's cache, while a new one would have to grow, which
// costs more than all else about a goroutine.
type resolvers struct {
	working sync.WaitGroup

	mu    sync.Mutex
	idle  []chan miss // of those that wait
	ended bool
}

// start has a miss resolved, by one that waits if there is any.
func (r *resolvers) start(m miss) {
	if next := r.wake(); next != nil {
		next <- m // there is room
		return
	}
	r.working.Go(func() { r.work(m) })
}

func (r *resolvers) wake() (next chan miss) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.idle) - 1
	if last < 0 {
		return nil
	}
	next, r.idle = r.idle[last], r.idle[:last]
	return next
}

// work is the resolver's goroutine.
func (r *resolvers) work(m miss) {
	next := make(chan miss, 1)
	for ok := true; ok; m, ok = <-next {
		m.loop.resolve(m.packet, m.from)
		if !r.rest(next) {
			return
		}
	}
}

// rest makes a resolver one of those that wait; false when there are enough.
func (r *resolvers) rest(next chan miss) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || len(r.idle) == maxIdle {
		return false
	}
	r.idle = append(r.idle, next)
	return true
}

// end lets those that wait go, and waits for all. Nothing may be started any more.
func (r *resolvers) end() {
	r.mu.Lock()
	r.ended = true
	for _, next := range r.idle {
		close(next)
	}
	r.mu.Unlock()
	r.working.Wait()
}
