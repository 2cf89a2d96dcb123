package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Read looks at the host: the link of s, our tables, and what node-cache left. Only
// the name and the addresses of s count. It changes nothing.
func (h *Host) Read(s State) (Found, error) {
	addrs := s
	s = s.filled()
	found, err := h.read(s.Link)
	if err != nil {
		return found, err
	}
	s.Own, s.Service = addrs.Own, addrs.Service
	left, err := h.leftovers(s)
	if err != nil {
		return found, err
	}
	found.Leftovers, found.LeftAt, found.Unread = left.sentences(), left.addrs, left.unread
	return found, nil
}

// read is Read without the leftovers. It begins again when somebody replaced a table
// in the middle of it.
func (h *Host) read(link string) (found Found, err error) {
	conn, err := h.nft()
	if err != nil {
		return found, err
	}
	for range 3 {
		found = Found{}
		if err := h.readLinks(&found, link); err != nil {
			return found, err
		}
		if err = h.readTables(conn, &found); err == nil {
			break
		}
	}
	return found, explained("the nft tables cannot be read", err)
}

func (h *Host) readTables(conn *nftables.Conn, found *Found) error {
	tables, err := orNone(conn.ListTablesOfFamily(nftables.TableFamilyINet))
	if err != nil {
		return err
	}
	for _, t := range tables {
		switch {
		case t.Name == tableName:
			found.Table = true
			found.lines = append(found.lines, "table "+t.Name)
			if err := errors.Join(
				readSets(conn, t, found), readCounters(conn, t, found), readChains(conn, t, found), h.readTags(found),
			); err != nil {
				return err
			}
		case strings.HasPrefix(t.Name, tablePrefix):
			found.Other = append(found.Other, t.Name)
		}
	}
	return nil
}

func readSets(conn *nftables.Conn, t *nftables.Table, found *Found) error {
	sets, err := conn.GetSets(t)
	if err != nil {
		return err
	}
	for _, s := range sets {
		if s.Anonymous {
			continue // the tag of its rule covers it
		}
		found.lines = append(found.lines, "set "+s.Name)
		elements, err := conn.GetSetElements(s)
		if err != nil {
			return err
		}
		for _, e := range elements {
			a, ok := netip.AddrFromSlice(e.Key)
			switch {
			case !ok:
			case s.HasTimeout:
				found.Held = append(found.Held, holdOf(s.Name, a, e))
			default:
				found.lines = append(found.lines, fmt.Sprintf("set %s has %s", s.Name, a))
			}
		}
	}
	return nil
}

func holdOf(set string, a netip.Addr, e nftables.SetElement) Hold {
	kind := Alive
	if strings.HasPrefix(set, Bypass.String()) {
		kind = Bypass
	}
	return Hold{Set: kind, Addr: a, Left: e.Expires}
}

func readCounters(conn *nftables.Conn, t *nftables.Table, found *Found) error {
	objects, err := conn.GetObjects(t)
	if err != nil {
		return err
	}
	for _, o := range objects {
		c, ok := o.(*nftables.CounterObj)
		if !ok {
			continue
		}
		found.lines = append(found.lines, "counter "+c.Name)
		if at := found.Counts.at(c.Name); at != nil {
			*at = Counter{Packets: c.Packets, Bytes: c.Bytes}
		}
	}
	return nil
}

func readChains(conn *nftables.Conn, t *nftables.Table, found *Found) error {
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return err
	}
	for _, c := range chains {
		if c.Table.Name == t.Name {
			found.lines = append(found.lines, chainLine(c))
		}
	}
	return nil
}

// readTags reads the rules of our table by their tags. The library would read their
// expressions, and fails at the ones that it cannot write.
func (h *Host) readTags(found *Found) error {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: h.netns})
	if err != nil {
		return err
	}
	encoder := netlink.NewAttributeEncoder()
	encoder.String(unix.NFTA_RULE_TABLE, tableName)
	filter, err := encoder.Encode()
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	rules, err := conn.Execute(netlink.Message{
		Header: netlink.Header{
			Type:  netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE),
			Flags: netlink.Request | netlink.Dump,
		},
		Data: append(nfHeader(unix.NFPROTO_INET, 0), filter...),
	})
	if err = errors.Join(err, conn.Close()); err != nil {
		return err
	}
	seen := map[string]int{}
	for _, r := range rules {
		table, chain, tag := tagOf(r)
		if table != tableName {
			continue // a kernel that does not filter
		}
		found.lines = append(found.lines, ruleLine(chain, seen[chain], tag))
		seen[chain]++
	}
	return nil
}

func tagOf(rule netlink.Message) (table, chain, tag string) {
	if len(rule.Data) < nfHeaderSize {
		return "", "", ""
	}
	a, err := netlink.NewAttributeDecoder(rule.Data[nfHeaderSize:])
	if err != nil {
		return "", "", ""
	}
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_RULE_TABLE:
			table = a.String()
		case unix.NFTA_RULE_CHAIN:
			chain = a.String()
		case unix.NFTA_RULE_USERDATA:
			tag = userString(a.Bytes(), tagType)
		}
	}
	return table, chain, tag
}

func chainLine(c *nftables.Chain) string {
	line := chain{name: c.Name}
	if c.Hooknum != nil && c.Priority != nil {
		line.hook = &hook{kind: c.Type, priority: int32(*c.Priority)}
	}
	return line.line()
}
