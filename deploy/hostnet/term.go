package hostnet

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A term is one word of a rule: a match, or what to do. It says the same twice, as
// nft would spell it and as the kernel takes it.
type term struct {
	text  string
	exprs []any // see encoded
	pick  *pick // instead of exprs: needs a map that the transaction makes first
}

// pick is the choice of one target by a hash of the client.
type pick struct {
	family  family
	proto   proto
	targets []netip.AddrPort
}

// hashSeed makes all nodes and all restarts choose alike.
const hashSeed = 0x6e6f6465

// zone keeps the tracked connections that we answer apart from those of the fallback,
// so that a client with one source port follows when we come and go.
const zone = 0xd53

const reg = unix.NFT_REG_1

func equal(data []byte) any {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: data}
}

func meta(key expr.MetaKey) any { return &expr.Meta{Key: key, Register: reg} }

func network(offset, size uint32) any {
	return &expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size}
}

func transport(offset, size uint32) any {
	return &expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: size}
}

func isFamily(f family) []any {
	return []any{meta(expr.MetaKeyNFPROTO), equal([]byte{f.nfproto})}
}

func inSet(name string, invert bool) any {
	return &expr.Lookup{SourceRegister: reg, SetName: name, Invert: invert}
}

// to matches packets whose destination is in a set.
func to(f family, set string) term {
	return term{
		text:  fmt.Sprintf("%s daddr @%s", f.ip, set),
		exprs: append(isFamily(f), network(f.dst, f.size()), inSet(set, false)),
	}
}

// toAddr matches packets to an address.
func toAddr(f family, a netip.Addr) term {
	return term{
		text:  fmt.Sprintf("%s daddr %v", f.ip, a),
		exprs: append(isFamily(f), network(f.dst, f.size()), equal(a.AsSlice())),
	}
}

// from matches packets whose source is in a set.
func from(f family, set string) term {
	return term{
		text:  fmt.Sprintf("%s saddr @%s", f.ip, set),
		exprs: append(isFamily(f), network(f.src, f.size()), inSet(set, false)),
	}
}

func port(p proto, field string, offset uint32, number uint16) term {
	return term{
		text: fmt.Sprintf("%s %s %d", p.name, field, number),
		exprs: []any{
			meta(expr.MetaKeyL4PROTO), equal([]byte{p.number}),
			transport(offset, 2), equal(binary.BigEndian.AppendUint16(nil, number)),
		},
	}
}

func dport(p proto, number uint16) term { return port(p, "dport", 2, number) }
func sport(p proto, number uint16) term { return port(p, "sport", 0, number) }

// unreachable matches ICMP errors that tell a sender to give up. The one about the
// size of packets is not among them.
func unreachable(f family) term {
	kind, text := byte(1), "icmpv6 type destination-unreachable"
	if f.bits == 32 {
		kind, text = 3, "icmp type destination-unreachable icmp code != frag-needed"
	}
	exprs := []any{meta(expr.MetaKeyL4PROTO), equal([]byte{f.icmp}), transport(0, 1), equal([]byte{kind})}
	if f.bits == 32 {
		const fragNeeded = 4
		exprs = append(exprs, transport(1, 1), &expr.Cmp{Op: expr.CmpOpNeq, Register: reg, Data: []byte{fragNeeded}})
	}
	return term{text: text, exprs: exprs}
}

// wildcardSocket matches packets that a socket bound to no address would get.
func wildcardSocket() term {
	return term{
		text:  "socket wildcard 1",
		exprs: []any{&expr.Socket{Key: expr.SocketKeyWildcard, Register: reg}, equal([]byte{1})},
	}
}

// anySocket matches packets that some socket would get, connections in their
// handshake included, which a test for wildcard 0 does not see.
func anySocket() term {
	return term{
		text:  "socket transparent 0",
		exprs: []any{&expr.Socket{Key: expr.SocketKeyTransparent, Register: reg}, equal([]byte{0})},
	}
}

func marked(mark uint32) term {
	return term{
		text:  fmt.Sprintf("meta mark 0x%08x", mark),
		exprs: []any{meta(expr.MetaKeyMARK), equal(binaryutil.NativeEndian.PutUint32(mark))},
	}
}

func sentBy(uid uint32) term {
	return term{
		text:  fmt.Sprintf("meta skuid %d", uid),
		exprs: []any{meta(expr.MetaKeySKUID), equal(binaryutil.NativeEndian.PutUint32(uid))},
	}
}

func inZone() term {
	return term{
		text:  fmt.Sprintf("ct zone %d", zone),
		exprs: []any{&expr.Ct{Key: expr.CtKeyZONE, Register: reg}, equal(binaryutil.NativeEndian.PutUint16(zone))},
	}
}

func setZone() term {
	return term{
		text: fmt.Sprintf("ct zone set %d", zone),
		exprs: []any{
			&expr.Immediate{Register: reg, Data: binaryutil.NativeEndian.PutUint16(zone)},
			&expr.Ct{Key: expr.CtKeyZONE, Register: reg, SourceRegister: true},
		},
	}
}

// setTargetsZone puts queries into a zone of the targets they go to, and leaves their
// answers where they are, so that a query finds only connections to these targets, and
// the answers that other targets still owe find their way.
func setTargetsZone(targets []netip.AddrPort) term {
	n := targetsZone(targets)
	return term{
		text: fmt.Sprintf("ct original zone set %d", n),
		exprs: []any{
			&expr.Immediate{Register: reg, Data: binaryutil.NativeEndian.PutUint16(n)},
			original{key: uint32(expr.CtKeyZONE), set: true},
		},
	}
}

// targetsZone is the same for the same targets in all processes, and none that means
// something else. Once in 65 000 changes it stays as it was, and then a client that keeps
// its source port stays with a former target until it pauses.
func targetsZone(targets []netip.AddrPort) uint16 {
	sum := fnv.New32a()
	for _, t := range targets {
		_, _ = fmt.Fprintln(sum, t) // a hash never fails
	}
	n := uint16(sum.Sum32()>>16) ^ uint16(sum.Sum32())
	if n == 0 || n == zone {
		n++
	}
	return n
}

// translated matches packets of connections whose destination was changed.
func translated() term {
	const dstNAT = 1 << 5 // IPS_DST_NAT
	return term{
		text: "ct status dnat",
		exprs: []any{
			&expr.Ct{Key: expr.CtKeySTATUS, Register: reg},
			&expr.Bitwise{
				SourceRegister: reg, DestRegister: reg, Len: 4,
				Mask: binaryutil.NativeEndian.PutUint32(dstNAT), Xor: make([]byte, 4),
			},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: reg, Data: make([]byte, 4)},
		},
	}
}

// wasAddressed matches an address of the connection before any translation.
func wasAddressed(f family, field, set string, invert bool) term {
	key := uint32(unix.NFT_CT_DST_IP)
	switch {
	case field == "saddr" && f.bits == 32:
		key = unix.NFT_CT_SRC_IP
	case field == "saddr":
		key = unix.NFT_CT_SRC_IP6
	case f.bits == 128:
		key = unix.NFT_CT_DST_IP6
	}
	not := ""
	if invert {
		not = "!= "
	}
	return term{
		text:  fmt.Sprintf("ct original %s %s %s@%s", f.ip, field, not, set),
		exprs: []any{original{key: key}, inSet(set, invert)},
	}
}

func count(counter string) term {
	return term{
		text:  "counter name " + strconv.Quote(counter),
		exprs: []any{&expr.Objref{Type: unix.NFT_OBJECT_COUNTER, Name: counter}},
	}
}

func untracked() term { return term{text: "notrack", exprs: []any{&expr.Notrack{}}} }

func verdict(text string, kind expr.VerdictKind, chain string) term {
	return term{text: text, exprs: []any{&expr.Verdict{Kind: kind, Chain: chain}}}
}

func accept() term           { return verdict("accept", expr.VerdictAccept, "") }
func drop() term             { return verdict("drop", expr.VerdictDrop, "") }
func goes(chain string) term { return verdict("goto "+chain, expr.VerdictGoto, chain) }

// staying fixes the destination as it is, so that no later chain changes it.
func staying(f family) term {
	return term{
		text: fmt.Sprintf("dnat %s to %s daddr", f.ip, f.ip),
		exprs: []any{
			network(f.dst, f.size()),
			&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.nfproto), RegAddrMin: reg, RegAddrMax: reg},
		},
	}
}

// leads changes the destination to an address, at the same port.
func leads(f family, to netip.Addr) term {
	return term{
		text: fmt.Sprintf("dnat %s to %v", f.ip, to),
		exprs: []any{
			&expr.Immediate{Register: reg, Data: to.AsSlice()},
			&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.nfproto), RegAddrMin: reg, RegAddrMax: reg},
		},
	}
}

// leadsTo sends a connection to one target.
func leadsTo(f family, p proto, to netip.AddrPort) term {
	const port = unix.NFT_REG_2
	return term{
		text: fmt.Sprintf("meta l4proto %s dnat %s to %v", p.name, f.ip, to),
		exprs: []any{
			meta(expr.MetaKeyL4PROTO), equal([]byte{p.number}),
			&expr.Immediate{Register: reg, Data: to.Addr().AsSlice()},
			&expr.Immediate{Register: port, Data: binary.BigEndian.AppendUint16(nil, to.Port())},
			&expr.NAT{
				Type: expr.NATTypeDestNAT, Family: uint32(f.nfproto), Specified: true,
				RegAddrMin: reg, RegAddrMax: reg, RegProtoMin: port, RegProtoMax: port,
			},
		},
	}
}

// masquerade hides the client: a target on the client's own bridge would answer it
// past us otherwise. Ports are random, because two clients may use the same.
func masquerade() term {
	return term{text: "masquerade fully-random", exprs: []any{&expr.Masq{FullyRandom: true}}}
}

// picking sends a connection to one of the targets.
func picking(f family, p proto, targets []netip.AddrPort) term {
	var elements []string
	for i, t := range targets {
		elements = append(elements, fmt.Sprintf("%d : %s . %d", i, t.Addr(), t.Port()))
	}
	return term{
		text: fmt.Sprintf("dnat %s to jhash %s saddr . %s sport mod %d seed 0x%08x map { %s }",
			f.ip, f.ip, p.name, len(targets), uint32(hashSeed), strings.Join(elements, ", ")),
		pick: &pick{family: f, proto: p, targets: targets},
	}
}

// original loads a part of a connection as it was at first, or sets it for packets in
// that direction.
type original struct {
	key uint32
	set bool
}

func (o original) encode() ([]byte, error) {
	const direction = 0 // IP_CT_DIR_ORIGINAL
	encoder := netlink.NewAttributeEncoder()
	encoder.ByteOrder = binary.BigEndian
	a := attrs{encoder}
	a.String(unix.NFTA_EXPR_NAME, "ct")
	a.nested(unix.NFTA_EXPR_DATA, func(a attrs) {
		register := uint16(unix.NFTA_CT_DREG)
		if o.set {
			register = unix.NFTA_CT_SREG
		}
		a.Uint32(unix.NFTA_CT_KEY, o.key)
		a.Uint32(register, reg)
		a.Uint8(unix.NFTA_CT_DIRECTION, direction)
	})
	return encoder.Encode()
}

// encoded writes an expression of the library or of ours.
func encoded(e any) ([]byte, error) {
	switch e := e.(type) {
	case original:
		return e.encode()
	case expr.Any:
		return expr.Marshal(unix.NFPROTO_INET, e)
	}
	return nil, fmt.Errorf("%T is no expression", e)
}
