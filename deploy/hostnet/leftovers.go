package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// leftovers is what node-cache left on the host.
type leftovers struct {
	rules  []*nftables.Rule
	link   bool
	addrs  []netip.Addr // of the link and of the rules
	unread []string     // chains with a rule that we cannot read, and rules out of our reach, a sentence each
}

func (l leftovers) sentences() []string {
	var out []string
	for _, r := range l.rules {
		family := "ip"
		if r.Table.Family == nftables.TableFamilyIPv6 {
			family = "ip6"
		}
		out = append(out, fmt.Sprintf("rule %d in chain %s of table %s %s", r.Handle, r.Chain.Name, family, r.Table.Name))
	}
	if l.link {
		out = append(out, "link "+NodeCacheLink)
	}
	return out
}

// leftovers looks for rules and link. The link is not one if s uses it.
func (h *Host) leftovers(s State) (leftovers, error) {
	var left leftovers
	var found Found
	if err := h.readLinks(&found, NodeCacheLink); err != nil {
		return left, err
	}
	if left.link = found.Link.Kind != "" && s.Link != NodeCacheLink; left.link {
		left.addrs = found.Link.Addrs
	}
	conn, err := h.nft()
	if err != nil {
		return left, err
	}
	known := slices.Concat(found.Link.Addrs, sorted(s.Own), sorted(s.Service))
	for _, family := range leftFamilies() {
		if err := left.readRules(conn, family, known); err != nil {
			return left, explained("the iptables tables cannot be read", err)
		}
	}
	if h.netns == 0 { // in another one this thread would see its own
		left.unread = append(left.unread, legacyNotracks(known)...)
	}
	return left, nil
}

func (l *leftovers) readRules(conn *nftables.Conn, family nftables.TableFamily, known []netip.Addr) error {
	chains, err := orNone(conn.ListChainsOfTableFamily(family))
	if err != nil {
		return err
	}
	for _, c := range chains {
		if !slices.Contains(leftChains()[c.Table.Name], c.Name) {
			continue
		}
		rules, err := conn.GetRules(&nftables.Table{Name: c.Table.Name, Family: family}, c)
		if err != nil {
			// Anybody may put anything there: it must not stop us.
			l.unread = append(l.unread, fmt.Sprintf("chain %s of table %s cannot be searched for rules of node-cache: %v", c.Name, c.Table.Name, err))
		}
		for _, r := range rules {
			if s := shapeOf(r); s.nodeCaches(known) {
				l.rules, l.addrs = append(l.rules, r), append(l.addrs, s.addrs...)
			}
		}
	}
	return nil
}

// RemoveLeftovers deletes what node-cache left and what would disable a fallback of TCP: its
// rules in the tables of iptables-nft, in one transaction, and then its link, unless
// it is the link of s. Rules of iptables-legacy are named in the notes and stay. Rules
// without its comment are known by the addresses of s and of its link.
func (h *Host) RemoveLeftovers(s State) (Report, error) {
	return h.removeLeftovers(s, nil)
}

func (h *Host) removeLeftovers(s State, lives func(netip.Addr) bool) (Report, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left, err := h.leftovers(s)
	if err != nil {
		return Report{}, err
	}
	if note := spared(left.addrs, lives); note != "" {
		return Report{Notes: []string{note}}, nil
	}
	for range 3 {
		if err = h.deleteRules(left.rules); !errors.Is(err, unix.ENOENT) {
			break
		}
		// Somebody else, perhaps node-cache itself, was faster with one of them.
		again, readErr := h.leftovers(s)
		if readErr != nil {
			return Report{}, readErr
		}
		left.rules = again.rules
	}
	if err != nil {
		return Report{}, explained("rules of node-cache cannot be deleted", err)
	}
	if left.link {
		err = h.removeLink(NodeCacheLink)
	}
	return Report{Changed: prefixed("node-cache: removed: ", left.sentences()), Notes: left.unread}, err
}

func (h *Host) deleteRules(rules []*nftables.Rule) error {
	if len(rules) == 0 {
		return nil
	}
	conn, err := h.nft()
	if err != nil {
		return err
	}
	for _, r := range rules {
		if err := conn.DelRule(r); err != nil {
			return err
		}
	}
	return conn.Flush()
}

// spared says why what node-cache has is in use and stays; "" = it is not.
func spared(addrs []netip.Addr, lives func(netip.Addr) bool) string {
	if lives == nil {
		return ""
	}
	if i := slices.IndexFunc(addrs, lives); i >= 0 {
		return fmt.Sprintf("somebody still serves %v: rules and link of node-cache are in use there, and stay", addrs[i])
	}
	return ""
}

// Cleanup removes everything: our tables of any layout, the link of s, and what
// node-cache left. Only the name and the addresses of s count. A link that belongs to
// somebody else stays. lives tells whether somebody else serves an address: with one
// of its addresses all that is node-cache's stays, and a note says so. nil: nobody does.
func (h *Host) Cleanup(s State, lives func(netip.Addr) bool) (Report, error) {
	none := s
	none.Mode = None
	if err := none.Validate(); err != nil {
		return Report{}, fmt.Errorf("the state to clean up is invalid: %w", err)
	}
	ours, err := h.Apply(none)
	if err != nil {
		return ours, err
	}
	left, err := h.removeLeftovers(s, lives)
	ours.Changed, ours.Notes = append(ours.Changed, left.Changed...), append(ours.Notes, left.Notes...)
	return ours, err
}

func prefixed(prefix string, list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, prefix+strings.TrimSpace(s))
	}
	return out
}
