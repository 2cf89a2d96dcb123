package listener

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Holder is a socket that receives what is sent to an address.
type Holder struct {
	// UID is the user of the process. Sockets of one user can share an address.
	UID int
	// Wildcard says that it is bound to all addresses.
	Wildcard bool
	// Inode is the socket's own number. Who came later has a larger one.
	Inode uint64
}

// Holders lists the sockets of this network namespace that listen at an address:
// those bound to it, and those bound to its port at all addresses. A UDP
// socket that was handed over is none. It only looks: binding to find out would
// take the address from a process that starts at this moment. Where nobody can
// tell it lists none.
func Holders(proto Proto, addr netip.AddrPort) []Holder {
	t := socketTable{name: "udp", listening: "07"} // unconnected
	if proto == ProtoTCP {
		t = socketTable{name: "tcp", listening: "0A", first: true}
	}
	everywhere := netip.AddrPortFrom(netip.IPv6Unspecified(), addr.Port())
	if addr.Addr().Is6() {
		return t.holders(t.name+"6", addr, everywhere)
	}
	four := netip.AddrPortFrom(netip.IPv4Unspecified(), addr.Port())
	return append(t.holders(t.name, addr, four), t.holders(t.name+"6", everywhere, everywhere)...)
}

// ServedByOthers tells whether a socket of another user than uid is bound to just this
// address over UDP. With uid -1 everybody is another.
func ServedByOthers(at netip.AddrPort, uid int) bool {
	return slices.ContainsFunc(Holders(ProtoUDP, at), func(h Holder) bool { return !h.Wildcard && h.UID != uid })
}

// socketTable is a table of sockets in /proc/net.
type socketTable struct {
	name      string
	listening string // the state of a socket that listens
	first     bool   // these come before all others
}

func (t socketTable) holders(file string, exactly, everywhere netip.AddrPort) []Holder {
	f, err := os.Open("/proc/thread-self/net/" + file)
	if err != nil {
		return nil
	}
	defer f.Close()
	exact, wildcard := procAddress(exactly), procAddress(everywhere)
	var list []Holder
	lines := bufio.NewScanner(f)
	lines.Scan() // the heads of the columns
	for lines.Scan() {
		// Slot, local address, remote address, state, queues, timer, retries, user, timeout, inode, ...
		words := strings.Fields(lines.Text())
		if len(words) < 10 {
			continue
		}
		if words[3] != t.listening {
			if t.first {
				break
			}
			continue
		}
		if local := words[1]; local == exact || local == wildcard {
			uid, _ := strconv.Atoi(words[7])
			inode, _ := strconv.ParseUint(words[9], 10, 64)
			list = append(list, Holder{UID: uid, Wildcard: local == wildcard, Inode: inode})
		}
	}
	return list
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
