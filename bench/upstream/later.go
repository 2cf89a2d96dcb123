package upstream

import (
	"container/heap"
	"net"
	"net/netip"
	"sync"
	"time"
)

// held is a message that waits for its time. Exactly one of packet and stream
// is set.
type held struct {
	due    time.Duration
	order  uint64 // of arrival, so that equal times keep it
	msg    []byte
	packet *net.UDPConn
	to     netip.AddrPort // invalid for a connected packet
	stream *stream
}

// maxHeld bounds the messages that wait; more are dropped and counted.
const maxHeld = 1 << 17

// later sends messages when they are due, in one goroutine (run). Nothing
// outlives stop: what still waits then is never sent.
type later struct {
	now  func() time.Duration
	wake chan struct{} // holds one: the first message changed
	stop chan struct{}

	mu      sync.Mutex
	waiting heldHeap
	spare   [][]byte // buffers to use again
	order   uint64
}

func newLater(now func() time.Duration) *later {
	return &later{now: now, wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

// add keeps a copy of msg until h.due. It is false if too many wait.
func (l *later) add(h held, msg []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxHeld {
		return false
	}
	if n := len(l.spare); n > 0 {
		h.msg, l.spare = l.spare[n-1][:0], l.spare[:n-1]
	}
	h.msg = append(h.msg, msg...)
	h.order = l.order
	l.order++
	heap.Push(&l.waiting, h)
	if l.waiting[0].order == h.order {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// run sends what is due until stop is closed.
func (l *later) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.wake:
		case <-timer.C:
		}
		for {
			h, wait, ok := l.take()
			if !ok {
				timer.Reset(wait)
				break
			}
			h.send()
			l.giveBack(h.msg)
		}
	}
}

// take removes the first message if it is due; otherwise it gives the time
// until one will be.
func (l *later) take() (h held, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return held{}, time.Hour, false
	}
	if wait := l.waiting[0].due - l.now(); wait > 0 {
		return held{}, wait, false
	}
	return heap.Pop(&l.waiting).(held), 0, true
}

func (l *later) giveBack(buf []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spare) < 4096 && cap(buf) <= 4096 {
		l.spare = append(l.spare, buf)
	}
}

// send hands the message to the kernel. One that cannot be sent is lost, as on
// any network.
func (h held) send() {
	switch {
	case h.stream != nil:
		h.stream.write(h.msg)
	case h.to.IsValid():
		_, _ = h.packet.WriteToUDPAddrPort(h.msg, h.to)
	default:
		_, _ = h.packet.Write(h.msg)
	}
}

// heldHeap orders messages by due time, then by arrival.
type heldHeap []held

func (h heldHeap) Len() int { return len(h) }
func (h heldHeap) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].order < h[j].order
}
func (h heldHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heldHeap) Push(x any)   { *h = append(*h, x.(held)) }
func (h *heldHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = held{}
	*h = old[:len(old)-1]
	return last
}
