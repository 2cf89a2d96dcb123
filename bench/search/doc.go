// Package search measures what a forwarder spares the servers and the clients when
// names are looked up with search lists (ndots:5): its test plays the mix of
// bench/names in simulated time, once for each switch.
//
//	NODENS_FULL=1 go test -v -run TestSearchMix ./bench/search
package search
