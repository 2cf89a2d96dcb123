//go:build race

package upstream_test

// raceEnabled: the race detector makes sync.Pool drop things on purpose.
const raceEnabled = true
