package report

import (
	"fmt"
	"html"
	"strings"
)

const (
	userColour   = "#0072b2"
	systemColour = "#7fb8d9"
	barHeight    = 18.0
	barStep      = 28.0
	barLeft      = 130.0
	barRight     = 210.0 // room for the number behind a bar
)

// bar is one row: a value in two parts, its spread, and what to write behind it.
type bar struct {
	name        string
	first, rest float64
	low, high   float64
	text        string
}

// barsOf draws rows of bars from left to right, with the spread as a whisker.
func barsOf(title, label string, parts [2]string, bars []bar) string {
	high := 0.0
	for _, r := range bars {
		high = max(high, r.first+r.rest, r.high)
	}
	x := linear(high, label, plainText)
	width := plotWidth - barLeft - barRight
	px := func(v float64) float64 { return barLeft + x.at(v)*width }
	top, bottom := 30.0, 30+barStep*float64(len(bars))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %.0f" role="img" aria-label="%s" xmlns="http://www.w3.org/2000/svg">`+"\n", plotWidth, bottom+50, html.EscapeString(title))
	for i, colour := range []string{userColour, systemColour} {
		at := barLeft + float64(i)*120
		fmt.Fprintf(&b, `<rect x="%.1f" y="4" width="14" height="14" fill="%s"/><text x="%.1f" y="16">%s</text>`+"\n", at, colour, at+20, parts[i])
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="16">whisker: least and most of the rounds</text>`+"\n", barLeft+240)
	for _, v := range x.ticks() {
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", px(v), top, px(v), bottom)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", px(v), bottom+16, x.text(v))
	}
	fmt.Fprintf(&b, `<text class="label" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", barLeft+width/2, bottom+38, html.EscapeString(label))
	for i, r := range bars {
		r.draw(&b, top+barStep*float64(i)+(barStep-barHeight)/2, px)
	}
	fmt.Fprintf(&b, `<line class="axis" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n</svg>\n", barLeft, top, barLeft, bottom)
	return b.String()
}

func (r bar) draw(b *strings.Builder, y float64, px func(float64) float64) {
	zero, one, two := px(0), px(r.first), px(r.first+r.rest)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", barLeft-8, y+13, html.EscapeString(r.name))
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" fill="%s"/>`+"\n", zero, y, one-zero, barHeight, userColour)
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" fill="%s"/>`+"\n", one, y, two-one, barHeight, systemColour)
	middle := y + barHeight/2
	if r.high > r.low {
		fmt.Fprintf(b, `<path class="whisker" d="M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8"/>`+"\n", px(r.low), middle, px(r.high), px(r.low), middle-4, px(r.high), middle-4)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", max(two, px(r.high))+8, y+13, html.EscapeString(r.text))
}
