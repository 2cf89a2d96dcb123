package names

// Every is a sequence of all services by their full names, A then AAAA of each,
// again and again, and its length: what fills a cache before Flat is asked.
func (m *Mix) Every() (*Round, int) {
	var questions [][]byte
	for _, t := range m.zone.services {
		questions = appendBoth(questions, t.name)
	}
	return &Round{questions: questions, zone: m.zone}, len(questions)
}

func appendBoth(questions [][]byte, name []byte) [][]byte {
	for _, qtype := range [...]uint16{TypeA, TypeAAAA} {
		question := append(make([]byte, 0, len(name)+4), name...)
		questions = append(questions, append(question, byte(qtype>>8), byte(qtype), 0, 1))
	}
	return questions
}

// Blend is a sequence that takes a share of its queries from hits and the rest
// from misses. It is not safe for use by several goroutines.
type Blend struct {
	hits, misses interface{ Next() Query }
	share, sum   float64
}

// Blend starts blended sequence n: the given share of names that exist, by
// popularity, and for the rest names below WildSuffix that were never asked
// before.
func (m *Mix) Blend(n uint64, share float64) *Blend {
	return &Blend{hits: m.Flat(n), misses: m.zone.Unique(m.zone.wild, n), share: share}
}

// Next hands out the next query. It allocates nothing.
func (b *Blend) Next() Query {
	// Evenly spread rather than drawn, so that every second has its share.
	b.sum += b.share
	if b.sum >= 1 {
		b.sum--
		return b.hits.Next()
	}
	return b.misses.Next()
}
