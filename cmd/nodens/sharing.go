package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// Sockets of one user can share an address, which is how one daemon takes over from
// another. Two that stay beside each other are told of: the kernel would divide what
// comes between them. Who is there is looked at before the own sockets are bound, and
// told only once they are: what cannot be shared is an error, with words of its own.

// sharers are the sockets of our user at an address.
func sharers(proto listener.Proto, address netip.AddrPort) []listener.Holder {
	return slices.DeleteFunc(listener.Holders(proto, address), func(h listener.Holder) bool {
		return h.UID != os.Geteuid() || h.Wildcard != address.Addr().IsUnspecified()
	})
}

// processesOf names the processes that have the sockets, as far as they can be seen
// from here.
func processesOf(sockets []listener.Holder) []string {
	var names []string
	for _, h := range sockets {
		who := programOf("/", h.Inode)
		name := fmt.Sprintf("%s, process %d", who.name, who.pid)
		if who.pid != 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// sharedListens are the new listen addresses that somebody has already, with the
// sockets there.
func sharedListens(next, old *generation) map[netip.AddrPort][]listener.Holder {
	shared := map[netip.AddrPort][]listener.Holder{}
	for _, address := range next.config.Listen {
		if slices.Contains(old.config.Listen, address) {
			continue
		}
		if there := sharers(listener.ProtoUDP, address); len(there) > 0 {
			shared[address] = there
		}
	}
	return shared
}

// warnShared tells who shares our listen addresses.
func (d *daemon) warnShared(shared map[netip.AddrPort][]listener.Holder) {
	if len(shared) == 0 {
		return
	}
	d.beside.Store(true)
	var addresses []fmt.Stringer
	var sockets []listener.Holder
	for address, there := range shared {
		addresses, sockets = append(addresses, address), append(sockets, there...)
	}
	d.log.Warn("another process listens here already, and the kernel divides the queries between the two. "+
		"That ends with a handover; if none is under way, stop one of them ('ss -lunp' names them)",
		zap.Stringers("listen", addresses), zap.Strings("processes", processesOf(sockets)))
}

// sharersOf are the sockets of our user at an address for HTTP.
func sharersOf(address string) []listener.Holder {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || at.Port == 0 {
		return nil // binding it says why, or the kernel chooses a free port
	}
	ip, _ := netip.AddrFromSlice(at.IP) // none for every address
	if !ip.IsValid() {
		ip = netip.IPv6Unspecified()
	}
	return sharers(listener.ProtoTCP, netip.AddrPortFrom(ip.Unmap(), uint16(at.Port)))
}

// warnSharedHTTP tells who shares an address for HTTP with us. With one that shares
// the listen addresses too it goes without saying.
func (d *daemon) warnSharedHTTP(side *httpSide, there []listener.Holder) {
	if len(there) == 0 || d.beside.Load() {
		return
	}
	d.log.Warn("another process has this address for HTTP too: status and metrics are now those of one, now those of the other. "+
		"That ends with a handover; if none is under way, change the setting of one of them",
		zap.String("setting", side.name), zap.String("address", side.address), zap.Strings("processes", processesOf(there)))
}
