package names

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Query is one question to send and what a right reply says.
type Query struct {
	// Question is name, type and class in wire form. It belongs to the
	// sequence it came from, and is valid until that one's next call.
	Question []byte
	// Want is the right answer.
	Want Answer
	// Unjudged says that Want is not known: the reply's question is checked,
	// its content is not.
	Unjudged bool
	// TCP says that the client uses TCP for it.
	TCP bool
	// EDNS says that the query carries an OPT record.
	EDNS bool
}

// Name is the question's name in wire form.
func (q *Query) Name() []byte { return q.Question[:len(q.Question)-4] }

// Type is the question's record type.
func (q *Query) Type() uint16 {
	n := len(q.Question)
	return uint16(q.Question[n-4])<<8 | uint16(q.Question[n-3])
}

// Mix is the popularity of a zone's names among a node's pods.
type Mix struct {
	cfg      Config
	zone     *Zone
	services zipf
	external zipf
	suffixes [][]byte // svc.domain, domain and the root: the shared end of every search list
}

// NewMix makes the zone that cfg describes and the traffic for it.
func NewMix(cfg Config) (*Mix, error) {
	zone, err := NewZone(cfg)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	svc, err := Wire("svc." + cfg.Domain)
	if err != nil {
		return nil, err
	}
	return &Mix{
		cfg:      cfg,
		zone:     zone,
		services: newZipf(cfg.Services, cfg.Zipf),
		external: newZipf(cfg.External, cfg.Zipf),
		suffixes: [][]byte{svc, zone.domain, {0}},
	}, nil
}

// Zone is the data behind the mix.
func (m *Mix) Zone() *Zone { return m.zone }

// Stream starts sequence n of the mix. Different n are independent.
func (m *Mix) Stream(n uint64) *Stream {
	return &Stream{mix: m, rng: rand.New(rand.NewPCG(m.cfg.Seed, n)), buf: make([]byte, 0, 512)}
}

// zipf draws ranks: rank i with a weight of 1/(i+1)^s.
type zipf struct{ cumulative []float64 }

func newZipf(n int, s float64) zipf {
	c := make([]float64, n)
	sum := 0.0
	for i := range c {
		sum += math.Pow(float64(i+1), -s)
		c[i] = sum
	}
	return zipf{c}
}

func (z zipf) draw(rng *rand.Rand) int {
	x := rng.Float64() * z.cumulative[len(z.cumulative)-1]
	i, _ := slices.BinarySearch(z.cumulative, x)
	return min(i, len(z.cumulative)-1)
}
