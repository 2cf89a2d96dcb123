//go:build race

package upstream

// RaceEnabled: the race detector makes sync.Pool drop things on purpose.
const RaceEnabled = true
