// Package report shows what was measured: as a table for a terminal, as JSON,
// and as one page of HTML that needs nothing beside itself, with drawings made
// here. It starts no goroutines.
package report
