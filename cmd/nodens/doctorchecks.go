package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
	"github.com/nodens-dns/nodens/forwarder/listener"
)

// powers looks at what the kernel can do, where this process may.
func (v *visit) powers() {
	if v.capability() {
		v.kernel()
		v.links()
	}
}

// capability looks whether this process may look at all.
func (v *visit) capability() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil || data[0].Effective&(1<<unix.CAP_NET_ADMIN) == 0 {
		v.find(warning, "capability", "the doctor has no NET_ADMIN, so that what the kernel can do is not known",
			"run it as root, or in a container with the capability NET_ADMIN; the guard needs it as well")
		return false
	}
	v.find(fine, "capability", "NET_ADMIN is there, for the guard", "")
	return true
}

// kernel tries the table of the configuration, or of the usual one.
func (v *visit) kernel() {
	state := v.state
	if state.Mode == hostnet.None {
		state = hostnet.State{Mode: hostnet.LinkLocal, Own: []netip.Addr{netip.MustParseAddr("169.254.20.10")}}
	}
	v.judgeKernel(v.host.Try(state))
}

func (v *visit) judgeKernel(err error) {
	if err != nil {
		v.find(v.ifGuarded(bad), "kernel", err.Error(),
			"without the table there is no fallback; nodens answers all the same in mode link-local. Load nf_tables, nft_socket, nft_hash, nft_nat and nft_masq, or use a kernel that has them")
		return
	}
	v.find(fine, "kernel", "it takes the nft table of the fallback", "")
}

// ifGuarded is how bad something is where a guard is configured; else nobody needs it.
func (v *visit) ifGuarded(s severity) severity {
	if v.config.Host.guarded() {
		return s
	}
	return warning
}

func (v *visit) links() {
	kind, err := v.host.TryLink()
	switch {
	case err != nil:
		v.find(v.ifGuarded(bad), "link", err.Error(), "the listen addresses need a link: load the module dummy")
	case kind != "dummy":
		v.find(warning, "link", "the kernel makes no dummy link; one of kind "+kind+" does as well", "load the module dummy if other programs expect one")
	default:
		v.find(fine, "link", "the kernel makes dummy links", "")
	}
}

// found looks at what is on the host already.
func (v *visit) found() {
	found, err := v.host.Read(v.state)
	if err != nil {
		v.find(warning, "host", err.Error(), "")
		return
	}
	// Without a guard node-cache's flags take the link as it is.
	if l := found.Link; l.Kind != "" && !l.Ours && (v.config.Host.guarded() || l.Name != hostnet.NodeCacheLink) {
		v.find(bad, "link name", fmt.Sprintf("link %s is there and of kind %s: it belongs to somebody else", l.Name, l.Kind), "choose another name in host.link")
	}
	for _, a := range slices.Concat(v.state.Own, v.state.Service) {
		links := slices.DeleteFunc(slices.Clone(found.Elsewhere[a]), v.lives)
		switch {
		case slices.Contains(found.Elsewhere[a], "kube-ipvs0"):
			v.find(bad, "address", fmt.Sprintf("%v is on kube-ipvs0: kube-proxy uses IPVS, which takes the packets first", a), "use host.mode link-local")
		case len(links) > 0:
			v.find(warning, "address", fmt.Sprintf("%v is on link %s already", a, strings.Join(links, ", ")), "take it off there, or listen on another one")
		}
	}
	v.leftovers(&found)
	wanted := v.state
	wanted.Fallback, _, _ = guard.KeptFallback(v.config.Host.Endpoints, v.state)
	if missing := found.Missing(wanted); v.config.Host.guarded() && !v.before && len(missing) > 0 {
		v.find(warning, "host", fmt.Sprintf("%d things are not as configured, such as %s", len(missing), missing[0]), "a guard repairs that")
	}
}

// leftovers looks at what node-cache left.
func (v *visit) leftovers(found *hostnet.Found) {
	left := found.Leftovers
	if v.lives(hostnet.NodeCacheLink) {
		v.find(fine, "link", "the daemon that runs answers at addresses of link "+hostnet.NodeCacheLink, "")
		left = without(left, []string{"link " + hostnet.NodeCacheLink})
	}
	if i := slices.IndexFunc(found.LeftAt, v.occupied); len(left) > 0 && i >= 0 {
		v.find(warning, "node-cache", fmt.Sprintf("somebody serves %v: the link and the rules of node-cache are in use there, and no leftovers", found.LeftAt[i]),
			"stop it on this node before nodens takes over; what it leaves then, a guard removes")
		left = nil
	}
	for _, one := range left {
		v.find(warning, "leftovers", "of node-cache: "+one+", which disables a fallback of TCP", "a guard removes it, and so does 'nodens cleanup'")
	}
	for _, sentence := range found.Unread {
		v.find(warning, "leftovers", sentence, "look yourself: iptables -t raw -S; ip6tables -t raw -S")
	}
	if len(left)+len(found.Unread) == 0 {
		v.find(fine, "leftovers", "node-cache left nothing in the tables of nft and iptables", "")
	}
}

// occupied tells whether somebody else serves an address. Where no daemon of ours runs,
// everybody is somebody else.
func (v *visit) occupied(a netip.Addr) bool {
	uid := v.config.Host.UID
	if v.report == nil {
		uid = -1
	}
	return listener.ServedByOthers(netip.AddrPortFrom(a, dnsPort), uid)
}

func (v *visit) fallbackFile() {
	path := v.config.Host.Endpoints
	_, there := os.Stat(path)
	_, refused, err := guard.KeptFallback(path, v.state)
	switch {
	case errors.Is(there, os.ErrNotExist):
		v.find(fine, "endpoints file", path+" is not there yet: after a reboot the fallback waits for the first endpoints", "")
	case err != nil:
		v.find(bad, "endpoints file", err.Error(), "until then the fallback waits for serve after a reboot")
	case len(refused) > 0:
		v.find(warning, "endpoints file", fmt.Sprintf("%s has servers to which packets may not be sent, and which are left out of the fallback: %v", path, refused),
			"correct whoever tells of them: 'nodens status' lists the servers and where they come from")
	default:
		v.find(fine, "endpoints file", path+" is intact", "")
	}
}

func (v *visit) guard() {
	if !v.config.Host.guarded() {
		return
	}
	if pid, held := guard.Holder(v.config.Host.Lock); held {
		v.find(fine, "guard", fmt.Sprintf("process %d guards this node", pid), "")
		return
	}
	if v.before {
		v.find(fine, "guard", "none runs on this node yet", "")
		return
	}
	v.find(bad, "guard", "none runs on this node: nobody sets up the addresses, and a stuck nodens is not seen", "start 'nodens guard'; under node-cache's flags the daemon is one as well")
}

// buffers looks whether a burst fits into the sockets.
func (v *visit) buffers() {
	data, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	if err != nil {
		return // not every namespace shows it
	}
	most, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if want := v.config.Limits.UDPReceiveBuffer; err == nil && most < want {
		v.find(warning, "receive buffer", fmt.Sprintf("net.core.rmem_max is %d, so that a socket holds less than the %d bytes asked for", most, want),
			fmt.Sprintf("sysctl -w net.core.rmem_max=%d keeps more of a burst", want))
		return
	}
	v.find(fine, "receive buffer", "the kernel grants what is asked for", "")
}
