package main

import "runtime"

// applyCPUPolicy sets how many CPUs may run the daemon's code at once. The
// variable GOMAXPROCS wins.
//
// One CPU answers more than any node asks, and with one, nothing is handed from
// CPU to CPU: waking another costs more than the answer it would work on. What
// it costs is that a scrape of the metrics and queries wait for each other.
func applyCPUPolicy(cpus int, getenv func(string) string) {
	if getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(cpus)
	}
}
