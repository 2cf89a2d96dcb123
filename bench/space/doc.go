// Package space makes network namespaces for tests, with links, addresses and
// processes in them.
//
// A [Space] has no name and is gone with its last user: a test that is killed leaves
// none behind. A [Process] ends with the test at the latest, and with the program
// that runs the test. A test that is [Alone] has a network of its own to itself, which
// is its whole process: [Here]. On the loopback that all share, an address is [Free]
// for good, and what comes to one is taken by [Accept]. [Needs] is how a test says what
// it cannot do without, [Form] how long its rows are.
//
// Goroutines: one thread for the life of the program that starts processes, one for
// each process that waits for its end, and of Accept one for each address and one for
// each connection, which end with the test.
package space
