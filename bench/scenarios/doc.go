// Package scenarios reads what a load test is: which names are asked how fast,
// what stands behind the server under test, and what goes wrong when.
//
// The scenarios of this folder are part of the program; others are read from
// files. A file is strict YAML: everything wrong in it is named at once, as
// "file:line: what is wrong; what to do", before anything is sent.
//
// The package starts no goroutines.
package scenarios
