package names

import "math/rand/v2"

// Flat is a sequence of services by their full names, A and AAAA in turn, with
// the mix's popularity and neither search list, TCP nor EDNS: warm hits. It is
// not safe for use by several goroutines.
type Flat struct {
	mix  *Mix
	rng  *rand.Rand
	buf  []byte
	aaaa bool
}

// Flat starts flat sequence n.
func (m *Mix) Flat(n uint64) *Flat {
	return &Flat{mix: m, rng: rand.New(rand.NewPCG(m.cfg.Seed, n)), buf: make([]byte, 0, 512)}
}

// Next hands out the next query. It allocates nothing.
func (f *Flat) Next() Query {
	if !f.aaaa {
		t := f.mix.zone.services[f.mix.services.draw(f.rng)]
		f.buf = append(append(f.buf[:0], t.name...), 0, byte(TypeA), 0, 1)
	} else {
		f.buf[len(f.buf)-3] = byte(TypeAAAA)
	}
	f.aaaa = !f.aaaa
	return f.mix.zone.query(f.buf)
}

// query is the question with what the zone knows about it.
func (z *Zone) query(question []byte) Query {
	q := Query{Question: question}
	q.Want = z.Answer(q.Name(), q.Type())
	q.Unjudged = q.Want.Open
	return q
}

// Unique is a sequence of names that were never asked before, type A: every
// query is a miss. It is not safe for use by several goroutines.
type Unique struct {
	zone   *Zone
	suffix []byte
	buf    []byte
	prefix uint64
	count  uint64
}

// Unique starts sequence n of names below suffix (wire form). Below
// [WildSuffix] all of them exist; below the cluster's domain none does.
func (z *Zone) Unique(suffix []byte, n uint64) *Unique {
	return &Unique{zone: z, suffix: suffix, buf: make([]byte, 0, 512), prefix: n}
}

// Next hands out the next query. It allocates nothing.
func (u *Unique) Next() Query {
	u.count++
	u.buf = append(appendHexLabel(appendHexLabel(u.buf[:0], u.count), u.prefix), u.suffix...)
	u.buf = append(u.buf, 0, byte(TypeA), 0, 1)
	return u.zone.query(u.buf)
}

// appendHexLabel appends a label of eleven octets: n in hexadecimal, of which
// the low 44 bits count.
func appendHexLabel(dst []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, 11)
	for shift := 40; shift >= 0; shift -= 4 {
		dst = append(dst, digits[n>>shift&15])
	}
	return dst
}
