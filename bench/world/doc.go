// Package world is what tests with real servers have in common: the names of a small
// cluster, a CoreDNS that knows them, and the nodens to test.
//
// It starts no goroutine.
package world
