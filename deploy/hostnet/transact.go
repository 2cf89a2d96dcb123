package hostnet

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// tagType marks the user data of a rule that carries its tag. nft shows only
// comments and passes over other types.
const tagType userdata.Type = 0x6e

// replaceTable puts t in the place of every table of ours, of whatever layout, in
// one transaction. What was counted and who is held goes on. A nil t only removes.
func (h *Host) replaceTable(t *table, old Found) error {
	var b batch
	for _, name := range old.tables() {
		b.add(unix.NFT_MSG_DELTABLE, 0, func(a attrs) { a.String(unix.NFTA_TABLE_NAME, name) })
	}
	if t != nil {
		b.table(t, old)
	}
	const what = "the nft table cannot be replaced"
	if len(old.tables()) > 0 { // not found may be one of these
		return explained(what, h.commit(&b))
	}
	return notTaken(what, h.commit(&b))
}

func (b *batch) table(t *table, old Found) {
	b.create(unix.NFT_MSG_NEWTABLE, func(a attrs) { a.String(unix.NFTA_TABLE_NAME, t.name) })
	for _, name := range t.counters {
		b.counter(name, old.Counts.named(name))
	}
	for _, s := range t.sets {
		b.set(s)
		b.elements(s.name, elements(s, old.Held))
	}
	// All chains before any rule, which may go to a later one.
	for _, c := range t.chains {
		b.chain(c)
	}
	b.rules(t.chains)
}

func (b *batch) rules(chains []chain) {
	for _, c := range chains {
		for _, r := range c.rules {
			b.rule(c.name, r)
		}
	}
}

func (b *batch) counter(name string, c Counter) {
	b.create(unix.NFT_MSG_NEWOBJ, func(a attrs) {
		a.String(unix.NFTA_OBJ_TABLE, tableName)
		a.String(unix.NFTA_OBJ_NAME, name)
		a.Uint32(unix.NFTA_OBJ_TYPE, unix.NFT_OBJECT_COUNTER)
		a.nested(unix.NFTA_OBJ_DATA, func(a attrs) {
			a.Uint64(unix.NFTA_COUNTER_BYTES, c.Bytes)
			a.Uint64(unix.NFTA_COUNTER_PACKETS, c.Packets)
		})
	})
}

func (b *batch) set(s set) {
	var flags uint32
	if s.timeout {
		flags = unix.NFT_SET_TIMEOUT
	}
	b.mapIDs++
	id := b.mapIDs
	b.create(unix.NFT_MSG_NEWSET, func(a attrs) {
		a.String(unix.NFTA_SET_TABLE, tableName)
		a.String(unix.NFTA_SET_NAME, s.name)
		a.Uint32(unix.NFTA_SET_FLAGS, flags)
		a.Uint32(unix.NFTA_SET_KEY_TYPE, s.family.typ.GetNFTMagic())
		a.Uint32(unix.NFTA_SET_KEY_LEN, s.family.size())
		a.Uint32(unix.NFTA_SET_ID, id)
	})
}

// element is one of a set, with a time if it has one, or of a map.
type element struct {
	key, value []byte
	timeout    time.Duration
}

func (b *batch) elements(set string, list []element) {
	b.changeElements(unix.NFT_MSG_NEWSETELEM, set, 0, list)
}

func (b *batch) changeElements(kind uint16, set string, id uint32, list []element) {
	if len(list) == 0 {
		return
	}
	b.create(kind, func(a attrs) {
		a.String(unix.NFTA_SET_ELEM_LIST_TABLE, tableName)
		a.String(unix.NFTA_SET_ELEM_LIST_SET, set)
		if id != 0 {
			a.Uint32(unix.NFTA_SET_ELEM_LIST_SET_ID, id)
		}
		a.nested(unix.NFTA_SET_ELEM_LIST_ELEMENTS, func(a attrs) {
			for _, e := range list {
				a.nested(unix.NFTA_LIST_ELEM, e.encode)
			}
		})
	})
}

func (e element) encode(a attrs) {
	a.value(unix.NFTA_SET_ELEM_KEY, e.key)
	if e.value != nil {
		a.value(unix.NFTA_SET_ELEM_DATA, e.value)
	}
	if e.timeout > 0 {
		a.Uint64(unix.NFTA_SET_ELEM_TIMEOUT, uint64(e.timeout.Milliseconds()))
	}
}

func (b *batch) chain(c chain) {
	b.create(unix.NFT_MSG_NEWCHAIN, func(a attrs) {
		a.String(unix.NFTA_CHAIN_TABLE, tableName)
		a.String(unix.NFTA_CHAIN_NAME, c.name)
		if c.hook == nil {
			return
		}
		a.nested(unix.NFTA_CHAIN_HOOK, func(a attrs) {
			a.Uint32(unix.NFTA_HOOK_HOOKNUM, uint32(*c.hook.number))
			a.Uint32(unix.NFTA_HOOK_PRIORITY, uint32(c.hook.priority))
		})
		a.Uint32(unix.NFTA_CHAIN_POLICY, uint32(nftables.ChainPolicyAccept))
		a.String(unix.NFTA_CHAIN_TYPE, string(c.hook.kind))
	})
}

func (b *batch) rule(chain string, r rule) {
	var list [][]byte
	for _, t := range r {
		exprs := t.exprs
		if t.pick != nil {
			exprs = b.pick(*t.pick)
		}
		for _, e := range exprs {
			data, err := encoded(e)
			b.err = errors.Join(b.err, err)
			list = append(list, data)
		}
	}
	b.create(unix.NFT_MSG_NEWRULE, func(a attrs) {
		a.String(unix.NFTA_RULE_TABLE, tableName)
		a.String(unix.NFTA_RULE_CHAIN, chain)
		a.nested(unix.NFTA_RULE_EXPRESSIONS, func(a attrs) {
			for _, data := range list {
				a.Bytes(unix.NLA_F_NESTED|unix.NFTA_LIST_ELEM, data)
			}
		})
		a.Bytes(unix.NFTA_RULE_USERDATA, userdata.AppendString(nil, tagType, r.tag()))
	})
}

// pick hashes source address and port, which lie side by side in registers, looks the
// target up in a map of the rule's own, and translates to it.
func (b *batch) pick(p pick) []any {
	name, id := b.targets(p)
	const (
		source = unix.NFT_REG_2
		// Registers of 4 bytes overlay those of 16; 1 holds the target, 2 the source.
		firstOf1, firstOf2 = unix.NFT_REG32_00, unix.NFT_REG32_04
	)
	words := p.family.size() / 4
	return append(
		isFamily(p.family),
		meta(expr.MetaKeyL4PROTO), equal([]byte{p.proto.number}),
		&expr.Payload{DestRegister: source, Base: expr.PayloadBaseNetworkHeader, Offset: p.family.src, Len: p.family.size()},
		&expr.Payload{DestRegister: firstOf2 + words, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 2},
		&expr.Hash{
			SourceRegister: source, DestRegister: reg, Length: p.family.size() + 4,
			Modulus: uint32(len(p.targets)), Seed: hashSeed, Type: expr.HashTypeJenkins,
		},
		&expr.Lookup{SourceRegister: reg, DestRegister: reg, IsDestRegSet: true, SetName: name, SetID: id},
		&expr.NAT{
			Type: expr.NATTypeDestNAT, Family: uint32(p.family.nfproto), Specified: true,
			RegAddrMin: reg, RegAddrMax: reg, RegProtoMin: firstOf1 + words, RegProtoMax: firstOf1 + words,
		},
	)
}

// targets makes the map of a rule from 0, 1, 2... to a target each.
func (b *batch) targets(p pick) (name string, id uint32) {
	b.mapIDs++
	id, name = b.mapIDs, "__map%d" // the kernel puts the number
	key, data := nftables.TypeInteger, nftables.MustConcatSetType(p.family.typ, nftables.TypeInetService)
	b.create(unix.NFT_MSG_NEWSET, func(a attrs) {
		a.String(unix.NFTA_SET_TABLE, tableName)
		a.String(unix.NFTA_SET_NAME, name)
		a.Uint32(unix.NFTA_SET_FLAGS, unix.NFT_SET_ANONYMOUS|unix.NFT_SET_CONSTANT|unix.NFT_SET_MAP)
		a.Uint32(unix.NFTA_SET_KEY_TYPE, key.GetNFTMagic())
		a.Uint32(unix.NFTA_SET_KEY_LEN, 4)
		a.Uint32(unix.NFTA_SET_DATA_TYPE, data.GetNFTMagic())
		a.Uint32(unix.NFTA_SET_DATA_LEN, p.family.size()+4)
		a.Uint32(unix.NFTA_SET_ID, id)
		// nft shows the keys right if it knows that they are in the order of the host.
		const hostOrder = 1
		a.Bytes(unix.NFTA_SET_USERDATA, userdata.AppendUint32(nil, userdata.NFTNL_UDATA_SET_KEYBYTEORDER, hostOrder))
	})
	b.changeElements(unix.NFT_MSG_NEWSETELEM, name, id, targetElements(p.targets))
	return name, id
}

func targetElements(targets []netip.AddrPort) []element {
	out := make([]element, 0, len(targets))
	for i, t := range targets {
		// In a concatenation every part is padded to 4 bytes.
		value := append(t.Addr().AsSlice(), 0, 0, 0, 0)
		binary.BigEndian.PutUint16(value[len(value)-4:], t.Port())
		out = append(out, element{key: binaryutil.NativeEndian.PutUint32(uint32(i)), value: value})
	}
	return out
}

// elements fills a set: with its addresses, or with those still held.
func elements(s set, held []Hold) []element {
	var out []element
	for _, a := range s.addrs {
		out = append(out, element{key: a.AsSlice()})
	}
	for _, h := range held {
		if h.Set.name(s.family) == s.name && s.family.holds(h.Addr) && h.Left >= time.Millisecond {
			out = append(out, element{key: h.Addr.AsSlice(), timeout: h.Left})
		}
	}
	return out
}
