package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// ports looks who has the port.
func (v *visit) ports() {
	strangers := 0
	for _, at := range v.listens() {
		for proto, name := range map[listener.Proto]string{listener.ProtoUDP: "UDP", listener.ProtoTCP: "TCP"} {
			for _, h := range listener.Holders(proto, at) {
				if v.holder(at, name, h) {
					strangers++
				}
			}
		}
	}
	if strangers == 0 {
		v.find(fine, "port", "nobody else is in the way", "")
	}
}

// holder looks at a socket, and reports whether it is a stranger's.
func (v *visit) holder(at netip.AddrPort, proto string, h listener.Holder) (stranger bool) {
	who := programOf(v.root, h.Inode)
	if who.ours {
		return false
	}
	do := fmt.Sprintf("'ss -lntup sport = :%d' names the program", at.Port())
	subject := fmt.Sprintf("user %d", h.UID)
	if who.name != "" {
		do = fmt.Sprintf("stop %s (process %d)", who.name, who.pid)
		subject += fmt.Sprintf(" (%s, process %d)", who.name, who.pid)
	}
	switch {
	case h.Wildcard && !at.Addr().IsUnspecified():
		v.find(warning, "port", fmt.Sprintf("%s listens at every address, port %d over %s", subject, at.Port(), proto),
			"queries to "+at.Addr().String()+" reach nodens all the same; if nodens cannot start, stop the other: "+do)
	case h.UID != v.config.Host.UID:
		v.find(warning, "port", fmt.Sprintf("%s listens at %v over %s", subject, at, proto),
			"two users cannot share an address, nodens waits for it: "+do)
	case who.name != "":
		v.find(warning, "port", fmt.Sprintf("%s listens at %v over %s and takes a part of the queries", subject, at, proto), do)
	default:
		return false
	}
	return true
}

// holding is who holds a socket; the zero value is somebody who cannot be seen from
// here, in a container of its own for example.
type holding struct {
	pid  int
	name string
	ours bool
}

// programOf finds the process that has a socket open, on the node whose files lie
// below root.
func programOf(root string, inode uint64) holding {
	files, _ := filepath.Glob(filepath.Join(root, "/proc/[0-9]*/fd/*")) // the pattern is a good one
	want := fmt.Sprintf("socket:[%d]", inode)
	for _, file := range files {
		if target, err := os.Readlink(file); err != nil || target != want {
			continue
		}
		folder := filepath.Dir(filepath.Dir(file))
		var p holding
		_, _ = fmt.Sscan(filepath.Base(folder), &p.pid) // digits, by the pattern
		name, err := os.ReadFile(filepath.Join(folder, "comm"))
		if err != nil {
			return holding{} // it has ended
		}
		p.name = strings.TrimSpace(string(name))
		p.ours = p.name == "nodens" || sameProgram(filepath.Join(folder, "exe"))
		return p
	}
	return holding{}
}

// sameProgram tells whether a link to a binary leads to ours.
func sameProgram(link string) bool {
	other, err := os.Stat(link)
	if err != nil {
		return false
	}
	self, err := os.Stat("/proc/self/exe")
	return err == nil && os.SameFile(self, other)
}

// listens are the listen addresses, or the usual one.
func (v *visit) listens() []netip.AddrPort {
	if v.config.Path == "" {
		return []netip.AddrPort{netip.MustParseAddrPort("169.254.20.10:53")}
	}
	return v.config.Listen
}
