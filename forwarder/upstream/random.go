package upstream

import (
	"math/rand/v2"
	"time"
)

// bits makes a source of what Config.Random gives.
type bits func() uint64

// Uint64 implements [rand.Source].
func (b bits) Uint64() uint64 { return b() }

// random turns the group's bits into numbers of other kinds.
func (g *Group) random() *rand.Rand { return rand.New(bits(g.cfg.Random)) }

// jittered is d within a quarter.
func (g *Group) jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + 0.5*g.random().Float64()))
}
