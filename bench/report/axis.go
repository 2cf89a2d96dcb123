package report

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// axis turns values into places.
type axis struct {
	low, high float64
	log       bool
	label     string
	text      func(v float64) string // of a tick
}

// at gives the place of v, 0 at the low end and 1 at the high end.
func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log(max(v, a.low)), math.Log(low), math.Log(high)
	}
	return min(max((v-low)/(high-low), 0), 1)
}

// ticks are round values along the axis.
func (a axis) ticks() []float64 {
	if a.log {
		return a.logTicks()
	}
	step := roundStep((a.high - a.low) / 5)
	var all []float64
	for v := math.Ceil(a.low/step) * step; v <= a.high+step/1e6; v += step {
		all = append(all, v)
	}
	return all
}

// logTicks are 1, 2 and 5 of every decade, or the decades alone if there are
// many.
func (a axis) logTicks() []float64 {
	factors := []float64{1, 2, 5}
	if a.high/a.low > 3000 {
		factors = factors[:1]
	}
	var all []float64
	for decade := math.Pow(10, math.Floor(math.Log10(a.low))); decade <= a.high; decade *= 10 {
		for _, f := range factors {
			if v := f * decade; v >= a.low*0.999 && v <= a.high*1.001 {
				all = append(all, v)
			}
		}
	}
	return all
}

// roundStep is the next of 1, 2 and 5 times a power of ten.
func roundStep(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range [...]float64{1, 2, 5} {
		if f*power >= v*0.999 {
			return f * power
		}
	}
	return 10 * power
}

// linear is an axis from 0 to a little above high.
func linear(high float64, label string, text func(float64) string) axis {
	step := roundStep(high / 5)
	return axis{high: max(math.Ceil(high*1.02/step)*step, step), label: label, text: text}
}

// logarithmic is an axis that covers low to high.
func logarithmic(low, high float64, label string, text func(float64) string) axis {
	low = max(low, 1e-9)
	return axis{low: roundDown(low), high: max(roundStep(high), roundDown(low)*10), log: true, label: label, text: text}
}

// roundDown is the last of 1, 2 and 5 times a power of ten.
func roundDown(v float64) float64 { return 1 / roundStep(1/v) }

// Texts of ticks.

func plainText(v float64) string { return trim(fmt.Sprintf("%.2f", v)) }

func countText(v float64) string {
	switch {
	case v >= 1e6:
		return trim(fmt.Sprintf("%.2f", v/1e6)) + " M"
	case v >= 1e3:
		return trim(fmt.Sprintf("%.2f", v/1e3)) + " k"
	}
	return trim(fmt.Sprintf("%.2f", v))
}

// microText is a latency in its best unit; v is in microseconds.
func microText(v float64) string {
	switch {
	case v >= 1e6:
		return trim(fmt.Sprintf("%.2f", v/1e6)) + " s"
	case v >= 1e3:
		return trim(fmt.Sprintf("%.2f", v/1e3)) + " ms"
	}
	return trim(fmt.Sprintf("%.2f", v)) + " µs"
}

func trim(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
