package hostnet

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/google/nftables/xt"
)

// Marks of node-cache, which this replaces. Its rules carry a comment since release
// 1.15; before, only their shape tells.
const (
	// NodeCacheLink is the name that its link has unless it was told another.
	NodeCacheLink    = "nodelocaldns"
	nodeCacheComment = "NodeLocal DNS Cache:"
)

// shape is what a rule of the iptables tables does, as far as node-cache's rules go.
type shape struct {
	addrs   []netip.Addr // matched, as source or destination
	ports   int          // how many ports are matched
	comment string
	action  string // "notrack", "accept", or "" for anything else
	odd     bool   // it has a part that rules of node-cache do not have
}

// shapeOf reads a rule. It knows the expressions of old and new iptables-nft.
func shapeOf(r *nftables.Rule) shape {
	s := shape{comment: userString(r.UserData, userdata.TypeComment)}
	var loaded expr.Any
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Payload, *expr.Meta:
			loaded = e
		case *expr.Cmp:
			s.compare(loaded, e)
		case *expr.Match:
			s.match(e)
		case *expr.Target:
			s.target(e)
		case *expr.Notrack:
			s.action = "notrack"
		case *expr.Verdict:
			s.verdict(e)
		case *expr.Counter:
		default:
			s.odd = true
		}
	}
	return s
}

func (s *shape) compare(loaded expr.Any, c *expr.Cmp) {
	payload, ok := loaded.(*expr.Payload)
	switch {
	case c.Op != expr.CmpOpEq:
		s.odd = true
	case !ok:
		meta, isMeta := loaded.(*expr.Meta)
		s.odd = s.odd || !isMeta || meta.Key != expr.MetaKeyL4PROTO
	case payload.Base == expr.PayloadBaseTransportHeader:
		s.ports++
	case payload.Len == 1: // the protocol in the header
	default:
		a, ok := netip.AddrFromSlice(c.Data)
		s.odd = s.odd || !ok
		s.addrs = append(s.addrs, a)
	}
}

func (s *shape) match(m *expr.Match) {
	switch info := m.Info.(type) {
	case *xt.Comment:
		s.comment = string(*info)
	case *xt.Udp:
		s.ports += portsOf(info.SrcPorts) + portsOf(info.DstPorts)
		s.odd = s.odd || info.InvFlags != 0
	case *xt.Tcp:
		s.ports += portsOf(info.SrcPorts) + portsOf(info.DstPorts)
		s.odd = s.odd || info.InvFlags != 0 || info.FlagsMask != 0 || info.Option != 0
	default:
		s.odd = true
	}
}

// portsOf counts a port that is matched alone.
func portsOf(span [2]uint16) int {
	if span[0] == span[1] {
		return 1
	}
	return 0
}

// target knows NOTRACK, which is its own target or a flag of CT.
func (s *shape) target(t *expr.Target) {
	const ctNotrack = 1 // XT_CT_NOTRACK
	switch {
	case t.Name == "NOTRACK":
		s.action = "notrack"
	case t.Name == "CT" && ctFlags(t)&ctNotrack != 0:
		s.action = "notrack"
	default:
		s.odd = true
	}
}

func ctFlags(t *expr.Target) uint16 {
	raw, ok := t.Info.(*xt.Unknown)
	if !ok || len(*raw) < 2 {
		return 0
	}
	return binary.NativeEndian.Uint16(*raw)
}

func (s *shape) verdict(v *expr.Verdict) {
	if v.Kind == expr.VerdictAccept {
		s.action = "accept"
		return
	}
	s.odd = true
}

// nodeCaches tells whether a rule is node-cache's: by its comment, or by its exact
// shape for an address known to be its, or of the IPv4 range it is used with.
func (s shape) nodeCaches(known []netip.Addr) bool {
	if s.odd || s.action == "" {
		return false
	}
	if strings.HasPrefix(s.comment, nodeCacheComment) {
		return true
	}
	if s.comment != "" || s.ports != 1 || len(s.addrs) != 1 {
		return false
	}
	a := s.addrs[0]
	return slices.Contains(known, a) || (a.Is4() && a.IsLinkLocalUnicast())
}

// leftChains lists where node-cache puts rules.
func leftChains() map[string][]string {
	return map[string][]string{"raw": {"PREROUTING", "OUTPUT"}, "filter": {"INPUT", "OUTPUT"}}
}

func leftFamilies() []nftables.TableFamily {
	return []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6}
}
