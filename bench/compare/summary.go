package compare

import (
	"slices"
	"time"

	"github.com/nodens-dns/nodens/bench/play"
)

// Spread is a value over the rounds.
type Spread struct {
	Median, Min, Max float64
	Rounds           int
}

// Metric is something that is measured in every cell.
type Metric struct {
	Name string // with its unit
	// Of takes it from a result; false if it is not known there.
	Of func(r *play.Result) (float64, bool)
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// CPU is the server's CPU time per query.
func CPU() Metric {
	return Metric{"CPU µs per query", func(r *play.Result) (float64, bool) { return micro(r.CPU()), r.Cost != nil }}
}

// Metrics lists what a table shows, CPU time first.
func Metrics() []Metric {
	known := func(of func(r *play.Result) float64) func(r *play.Result) (float64, bool) {
		return func(r *play.Result) (float64, bool) { return of(r), true }
	}
	accounted := func(of func(r *play.Result) float64) func(r *play.Result) (float64, bool) {
		return func(r *play.Result) (float64, bool) {
			if r.Cost == nil {
				return 0, false
			}
			return of(r), true
		}
	}
	return []Metric{
		CPU(),
		{"user µs", accounted(func(r *play.Result) float64 { return micro(r.Cost.User) / float64(max(1, r.Load.Total.Sent)) })},
		{"system µs", accounted(func(r *play.Result) float64 { return micro(r.Cost.System) / float64(max(1, r.Load.Total.Sent)) })},
		{"p50 µs", known(func(r *play.Result) float64 { return micro(r.Load.Latency.P50) })},
		{"p99 µs", known(func(r *play.Result) float64 { return micro(r.Load.Latency.P99) })},
		{"answers/s", known(func(r *play.Result) float64 { return r.Load.Answers })},
		{"not right %", known(func(r *play.Result) float64 {
			t := r.Load.Total
			return 100 * float64(t.Sent-t.Right) / float64(max(1, t.Sent))
		})},
		{"RSS MB", accounted(func(r *play.Result) float64 { return float64(r.Cost.RSS) / 1e6 })},
		{"switches per query", accounted((*play.Result).Switches)},
		{"allocs per query", func(r *play.Result) (float64, bool) { return r.AllocationsEach(), r.Allocations > 0 }},
	}
}

// Spread gives a metric of one server at one point over the rounds; false if
// it is known in none.
func (o *Outcome) Spread(server, point string, m Metric) (Spread, bool) {
	return spread(o.values(server, point, m))
}

// Ratio gives a metric of one server at one point as a multiple of the base's in
// the same round.
func (o *Outcome) Ratio(server, point string, m Metric) (Spread, bool) {
	base := o.values(o.Base, point, m)
	ratios := map[int]float64{}
	for round, v := range o.values(server, point, m) {
		if base[round] > 0 {
			ratios[round] = v / base[round]
		}
	}
	return spread(ratios)
}

// values are a metric's by round.
func (o *Outcome) values(server, point string, m Metric) map[int]float64 {
	all := map[int]float64{}
	for _, c := range o.Cells {
		if c.Server != server || c.Point != point {
			continue
		}
		if v, ok := m.Of(c.Result); ok {
			all[c.Round] = v
		}
	}
	return all
}

func spread(values map[int]float64) (Spread, bool) {
	if len(values) == 0 {
		return Spread{}, false
	}
	var all []float64
	for _, v := range values {
		all = append(all, v)
	}
	slices.Sort(all)
	middle := all[len(all)/2]
	if len(all)%2 == 0 {
		middle = (middle + all[len(all)/2-1]) / 2
	}
	return Spread{Median: middle, Min: all[0], Max: all[len(all)-1], Rounds: len(all)}, true
}

// Typical is the cell of one server at one point whose CPU time is nearest to
// the median: the one to draw where rounds cannot be drawn together.
func (o *Outcome) Typical(server, point string) *play.Result {
	s, _ := o.Spread(server, point, CPU())
	var best *play.Result
	distance := 0.0
	for _, c := range o.Cells {
		if c.Server != server || c.Point != point {
			continue
		}
		v, _ := CPU().Of(c.Result)
		if d := max(v-s.Median, s.Median-v); best == nil || d < distance {
			best, distance = c.Result, d
		}
	}
	return best
}
