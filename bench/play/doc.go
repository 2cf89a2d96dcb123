// Package play plays a scenario against one server: it starts what stands
// behind the server and, if told, the server itself, makes sure that it answers
// and is warm, runs the load, lets go wrong what the scenario says, and accounts
// for the server's CPU time and memory.
//
// Goroutines of a [Play]: one that follows the scenario's events, one that
// samples the server's process and one that waits for its profile, beside those of bench/load, bench/upstream and
// bench/peers. All have ended when it returns, and so has every process that it
// started.
package play
