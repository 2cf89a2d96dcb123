package space

import (
	"net/netip"
	"testing"
)

func TestFreeIsOursAlone(t *testing.T) {
	seen := map[netip.AddrPort]bool{}
	for range 100 {
		at := Free(t)
		if seen[at] || !at.Addr().IsLoopback() || at.Port() < lowPort || at.Port() > highPort {
			t.Errorf("%v is given twice or is none of loopback below the clients' ports", at)
		}
		seen[at] = true
	}
	others := map[netip.Addr]int{}
	for _, pid := range []int{1, 255, 256, 65535, 65536, 1<<22 - 1} {
		if before, ok := others[ownAddress(pid)]; ok {
			t.Errorf("processes %d and %d share %v", before, pid, ownAddress(pid))
		}
		others[ownAddress(pid)] = pid
	}
}
