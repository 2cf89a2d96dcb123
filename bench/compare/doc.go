// Package compare measures several servers against each other: the same
// scenarios, in turn, one server running at a time, several rounds, the order
// turned around by one in every round. What drifts on the machine then hits all
// alike.
//
// It starts no goroutines beside those of bench/play.
package compare
