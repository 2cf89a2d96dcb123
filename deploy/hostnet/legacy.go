package hostnet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// iptables-legacy has tables of its own, of which netlink knows nothing. The kernel
// hands one out as a block of entries, and takes only whole ones back, so that
// we read them and leave their change to others.

// legacy is what one family calls them, and where things are in an entry.
type legacy struct {
	program, names string // names is a file that lists the tables in use
	domain, level  int
	destination    int // where the address is that it matches
	size           int // of an address
	target, next   int // where it says where its target begins, and the next entry
	shortest       int // entry, one without matches and target
}

func legacyFamilies() []legacy {
	return []legacy{
		{"iptables-legacy", "ip_tables_names", unix.AF_INET, unix.SOL_IP, 4, 4, 88, 90, 112},
		{"ip6tables-legacy", "ip6_tables_names", unix.AF_INET6, unix.SOL_IPV6, 16, 16, 140, 142, 168},
	}
}

// Options of getsockopt, and where their answers have things.
const (
	legacyInfo, legacyEntries = 64, 65
	infoSize, sizeAt          = 84, 80
	entriesHead               = 40
)

// legacyNotracks names what node-cache left in iptables-legacy, in the network of this
// thread, and what would disable a fallback: rules that keep packets from being tracked
// and have its comment, or one of some addresses. A sentence for each address.
func legacyNotracks(known []netip.Addr) (sentences []string) {
	for _, l := range legacyFamilies() {
		// To ask for a table that is not in use would load it.
		names, err := os.ReadFile("/proc/thread-self/net/" + l.names)
		if err != nil || !slices.Contains(strings.Fields(string(names)), "raw") {
			continue
		}
		entries, err := l.read("raw")
		if err != nil {
			sentences = append(sentences, fmt.Sprintf("table raw of %s cannot be searched for rules of node-cache: %v", l.program, err))
			continue
		}
		for _, a := range l.notracked(entries, known) {
			sentences = append(sentences, fmt.Sprintf("rules of %[1]s keep queries to %[2]v from being tracked, which disables the fallback; "+
				"'%[1]s -t raw -S | grep %[2]v' shows them, and -D in the place of -A deletes one", l.program, a))
		}
	}
	return sentences
}

// read gets the entries of a table.
func (l legacy) read(table string) ([]byte, error) {
	socket, err := unix.Socket(l.domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	for range 3 { // the table may grow between the two questions
		info := make([]byte, infoSize)
		copy(info, table)
		if err := getsockopt(socket, l.level, legacyInfo, info); err != nil {
			return nil, err
		}
		size := binary.NativeEndian.Uint32(info[sizeAt:])
		entries := make([]byte, entriesHead+int(size))
		copy(entries, table)
		binary.NativeEndian.PutUint32(entries[32:], size)
		if err = getsockopt(socket, l.level, legacyEntries, entries); err == nil {
			return entries[entriesHead:], nil
		}
		if !errors.Is(err, unix.EAGAIN) {
			return nil, err
		}
	}
	return nil, unix.EAGAIN
}

func getsockopt(socket, level, option int, value []byte) error {
	size := uint32(len(value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(socket), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&value[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// notracked are the destinations of such rules.
func (l legacy) notracked(entries []byte, known []netip.Addr) (list []netip.Addr) {
	for len(entries) >= l.shortest {
		target := int(binary.NativeEndian.Uint16(entries[l.target:]))
		next := int(binary.NativeEndian.Uint16(entries[l.next:]))
		if next < l.shortest || next > len(entries) || target > next {
			break // not what we know
		}
		a, _ := netip.AddrFromSlice(entries[l.destination : l.destination+l.size])
		its := slices.Contains(known, a) || bytes.Contains(entries[:next], []byte(nodeCacheComment)) && !a.IsUnspecified()
		if its && isNotrack(entries[target:next]) && !slices.Contains(list, a) {
			list = append(list, a)
		}
		entries = entries[next:]
	}
	return list
}

// isNotrack knows the target by either of its names: NOTRACK, and CT with a flag.
func isNotrack(target []byte) bool {
	const nameAt, nameBytes, flagsAt, noTracking = 2, 29, 32, 1
	if len(target) < nameAt+nameBytes {
		return false
	}
	name, _, _ := bytes.Cut(target[nameAt:nameAt+nameBytes], []byte{0})
	switch string(name) {
	case "NOTRACK":
		return true
	case "CT":
		return len(target) >= flagsAt+2 && binary.NativeEndian.Uint16(target[flagsAt:])&noTracking != 0
	}
	return false
}
