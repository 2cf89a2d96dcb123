package hostnet

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// unconnected is the state of a UDP socket that takes datagrams from anybody, as
// /proc/net shows it. One that was handed over is connected.
const unconnected = "07"

// ListenedAt reports whether a socket is bound to exactly this address over UDP, in the
// caller's network. It only looks: binding to find out would take the address from a
// process that starts at this moment.
func ListenedAt(address netip.AddrPort) bool {
	table := "/proc/thread-self/net/udp"
	if address.Addr().Is6() {
		table = "/proc/thread-self/net/udp6"
	}
	f, err := os.Open(table)
	if err != nil {
		return false // nobody can tell
	}
	defer f.Close()
	local := procAddress(address)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// Slot, local address, remote address, state, ...
		if words := strings.Fields(lines.Text()); len(words) > 3 && words[1] == local && words[3] == unconnected {
			return true
		}
	}
	return false
}

// procAddress writes an address as /proc/net does: in numbers of 32 bits in the
// machine's order.
func procAddress(address netip.AddrPort) string {
	var text strings.Builder
	for ip := address.Addr().AsSlice(); len(ip) > 0; ip = ip[4:] {
		fmt.Fprintf(&text, "%08X", binary.NativeEndian.Uint32(ip))
	}
	fmt.Fprintf(&text, ":%04X", address.Port())
	return text.String()
}
