//go:build !race

package upstream

const RaceEnabled = false
