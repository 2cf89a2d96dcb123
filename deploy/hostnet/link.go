package hostnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// linkAlias marks a link as made or adopted by us.
const linkAlias = "nodens"

// linkKinds lists what a link may be made of, best first: each holds addresses and
// carries no traffic, because local addresses are reached over loopback.
func linkKinds(name string) []netlink.Link {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return []netlink.Link{
		&netlink.Dummy{LinkAttrs: attrs},
		&netlink.Ifb{LinkAttrs: attrs},
		&netlink.Bridge{LinkAttrs: attrs},
	}
}

// readLinks fills in our link and where else addresses are.
func (h *Host) readLinks(found *Found, name string) error {
	links, err := complete(h.nl.LinkList)
	if err != nil {
		return explained("the links cannot be read", err)
	}
	addrs, err := complete(func() ([]netlink.Addr, error) { return h.nl.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return explained("the addresses cannot be read", err)
	}
	found.Link = Link{Name: name}
	found.Elsewhere = map[netip.Addr][]string{}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
		if l.Attrs().Name == name {
			found.Link = linkOf(l)
		}
	}
	for _, a := range addrs {
		found.place(addrOf(a), names[a.LinkIndex])
	}
	slices.SortFunc(found.Link.Addrs, netip.Addr.Compare)
	return nil
}

func (f *Found) place(a netip.Addr, link string) {
	switch {
	case link != f.Link.Name:
		f.Elsewhere[a] = append(f.Elsewhere[a], link)
	case a.Is6() && a.IsLinkLocalUnicast(): // the kernel's own
	default:
		f.Link.Addrs = append(f.Link.Addrs, a)
	}
}

// complete calls list again when the kernel says that its answer was cut by a change.
func complete[T any](list func() ([]T, error)) (out []T, err error) {
	for range 5 {
		if out, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return out, err
}

func linkOf(l netlink.Link) Link {
	a := l.Attrs()
	return Link{
		Name: a.Name,
		Kind: l.Type(),
		Up:   a.Flags&net.FlagUp != 0,
		Ours: strings.HasPrefix(a.Alias, linkAlias) || (l.Type() == "dummy" && a.MasterIndex == 0),
	}
}

func addrOf(a netlink.Addr) netip.Addr {
	addr, _ := netip.AddrFromSlice(a.IP)
	return addr.Unmap()
}

// settleLink makes the link look like s, and returns its kind.
func (h *Host) settleLink(s State, found Link) (kind string, err error) {
	if s.Mode == None {
		if found.Kind != "" && found.Ours {
			return "", h.removeLink(found.Name)
		}
		return "", nil
	}
	if found.Kind != "" && !found.Ours {
		return "", fmt.Errorf("link %s is a %s that we did not make, choose another name: %w", found.Name, found.Kind, ErrForeign)
	}
	if found.Kind == "" {
		if err := h.makeLink(s.Link); err != nil {
			return "", err
		}
	}
	link, err := h.nl.LinkByName(s.Link)
	if err != nil {
		return "", explained("link "+s.Link+" cannot be read", err)
	}
	if link.Attrs().Alias == "" {
		err = explained("link "+s.Link+" cannot be marked as ours", h.nl.LinkSetAlias(link, linkAlias))
	}
	if !found.Up {
		err = errors.Join(err, explained("link "+s.Link+" cannot be set up", h.nl.LinkSetUp(link)))
	}
	return link.Type(), errors.Join(err, h.settleAddrs(link, s.listen(), found.Addrs))
}

func (h *Host) makeLink(name string) error {
	var errs []error
	for _, l := range linkKinds(name) {
		err := h.nl.LinkAdd(l)
		if err == nil || errors.Is(err, unix.EEXIST) {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", l.Type(), err))
	}
	return explained("link "+name+" cannot be made of any kind", errors.Join(errs...))
}

func (h *Host) settleAddrs(link netlink.Link, want, have []netip.Addr) error {
	var errs []error
	for _, a := range want {
		if slices.Contains(have, a) {
			continue
		}
		if err := h.nl.AddrAdd(link, hostAddr(a)); err != nil && !errors.Is(err, unix.EEXIST) {
			what := fmt.Sprintf("address %v cannot be put on link %s", a, link.Attrs().Name)
			if a.Is6() {
				what += " (is IPv6 off?)"
			}
			errs = append(errs, explained(what, err))
		}
	}
	for _, a := range have {
		if slices.Contains(want, a) {
			continue
		}
		if err := h.nl.AddrDel(link, hostAddr(a)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			errs = append(errs, explained(fmt.Sprintf("address %v cannot be taken off link %s", a, link.Attrs().Name), err))
		}
	}
	return errors.Join(errs...)
}

// hostAddr is a as an address alone. Nobody else can have it, so IPv6 does not wait
// for duplicate address detection, during which it could not be bound.
func hostAddr(a netip.Addr) *netlink.Addr {
	ip := net.IP(a.AsSlice())
	out := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}
	if a.Is6() {
		out.Flags = unix.IFA_F_NODAD
	}
	return out
}

// removeLink deletes a link that may be gone already.
func (h *Host) removeLink(name string) error {
	link, err := h.nl.LinkByName(name)
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) {
		return nil
	}
	if err == nil {
		err = h.nl.LinkDel(link)
	}
	return explained("link "+name+" cannot be removed", err)
}
