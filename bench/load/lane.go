package load

import "golang.org/x/sys/unix"

// lane is a way to the server: a socket with the queries in flight on it.
type lane interface {
	// flights gives the queries in flight.
	flights() *pending
	// send hands the query of a slot to the kernel, or keeps it for the next
	// connection; msg has its length in front. It is false if the kernel did not
	// take it.
	send(w *worker, slot int32, msg []byte) bool
	// tick is called every 10 ms, whatever else happens.
	tick(w *worker)
	// ready reads all that has come and gives it to w.
	ready(w *worker, ev unix.EpollEvent)
	// ended is told that the query of a slot is no longer in flight.
	ended(slot int32)
	// close closes the sockets and gives the number of replies that overflowed
	// their buffers.
	close() uint64
}

// maxReads bounds the packets read from one socket in a row, so that sending
// is not kept waiting.
const maxReads = 32
