package space

import (
	"strconv"
	"strings"
)

// UDPCounter finds a counter of UDP in snmp, which has a line of names and one of
// values, or in snmp6, which has a line for each.
func UDPCounter(text, name string) uint64 {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[0] == "Udp6"+name:
			n, _ := strconv.ParseUint(fields[1], 10, 64)
			return n
		case len(fields) == 0 || fields[0] != "Udp:":
		case names == nil:
			names = fields
		default:
			for i, field := range names {
				if field == name {
					n, _ := strconv.ParseUint(fields[i], 10, 64)
					return n
				}
			}
		}
	}
	return 0
}
