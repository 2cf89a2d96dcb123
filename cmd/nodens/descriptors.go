package main

import "golang.org/x/sys/unix"

// socketShare is which part of the process's descriptors goes into sockets to servers:
// the others are for clients over TCP, listeners, the API server and HTTP, and for the
// sockets of a configuration that is being replaced.
const socketShare = 4

// socketBound is how many sockets to its servers each of some routes may have; 0 where
// the process may have as many as it likes.
func socketBound(limit uint64, routes int) int {
	const plenty = 1 << 20
	if limit >= plenty {
		return 0
	}
	return max(int(limit)/socketShare/max(routes, 1), 1)
}

// descriptorLimit is how many descriptors this process may have. The runtime has raised
// it as far as it may be.
func descriptorLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return unix.RLIM_INFINITY
	}
	return limit.Cur
}
