// Package peers knows DNS servers that can be compared: how each is configured
// minimally and fairly (a cache that is large enough, one worker, no log of
// queries, and counters where they are a choice, since nodens has them always),
// how it is started on loopback, and how it is stopped.
//
// A [Peer] is the knowledge, a [Process] one running server. A Process has one
// goroutine, on a thread of its own that lives as long as the child: the kernel
// kills the child when that thread ends, so a generator that is killed leaves no
// server behind. Stop waits for it. A child leads a process group of its own; the
// group ends with it.
package peers
