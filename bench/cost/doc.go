// Package cost reads what a process costs the machine: CPU time, memory, context
// switches. It reads the kernel's own accounts and needs no help from the
// process.
//
// CPU time comes from the process's own CPU clock, to the nanosecond and with
// threads that have ended; only its split into user and system time is sampled
// by the kernel, at its tick. Context switches are summed over the threads that
// live, so those of a thread that ended between two readings are missing.
//
// The package starts no goroutines; [Watch] works in the caller's.
package cost
