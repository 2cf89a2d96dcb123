package report

import (
	"fmt"
	"html"
	"strings"
)

// Sizes in pixels of a drawing that is as wide as the page.
const (
	plotWidth  = 1000
	plotLeft   = 86
	plotRight  = 24
	plotBottom = 52
)

// plot is a drawing with two axes.
type plot struct {
	b           strings.Builder
	x, y        axis
	top, height float64
	moved       float64 // how far to the right the next entry above the frame stands
}

// newPlot begins a drawing of a height, with so much room above its frame.
func newPlot(title string, height, top float64, x, y axis) *plot {
	p := &plot{x: x, y: y, top: top, height: height}
	fmt.Fprintf(&p.b, `<svg viewBox="0 0 %d %.0f" role="img" aria-label="%s" xmlns="http://www.w3.org/2000/svg">`+"\n", plotWidth, height, html.EscapeString(title))
	p.frame()
	return p
}

func (p *plot) px(v float64) float64 {
	return plotLeft + p.x.at(v)*(plotWidth-plotLeft-plotRight)
}

func (p *plot) py(v float64) float64 {
	return p.top + (1-p.y.at(v))*p.inner()
}

func (p *plot) inner() float64 { return p.height - p.top - plotBottom }

// frame draws the grid, the ticks and the labels.
func (p *plot) frame() {
	bottom := p.top + p.inner()
	for _, v := range p.y.ticks() {
		p.line(plotLeft, p.py(v), plotWidth-plotRight, p.py(v), "grid")
		p.text(plotLeft-8, p.py(v)+4, "end", "", p.y.text(v))
	}
	for _, v := range p.x.ticks() {
		p.line(p.px(v), p.top, p.px(v), bottom, "grid")
		p.text(p.px(v), bottom+18, "middle", "", p.x.text(v))
	}
	p.line(plotLeft, bottom, plotWidth-plotRight, bottom, "axis")
	p.line(plotLeft, p.top, plotLeft, bottom, "axis")
	p.text((plotLeft+plotWidth-plotRight)/2, bottom+40, "middle", "label", p.x.label)
	fmt.Fprintf(&p.b, `<text class="label" text-anchor="middle" transform="translate(16 %.1f) rotate(-90)">%s</text>`+"\n",
		p.top+p.inner()/2, html.EscapeString(p.y.label))
}

func (p *plot) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&p.b, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", class, x1, y1, x2, y2)
}

func (p *plot) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&p.b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(text))
}

// style is how a line is told from others, in colour and without.
type style struct{ colour, dash string }

// styles are told apart by people who see colours differently, and in grey.
func styles() []style {
	return []style{
		{"#0072b2", ""},
		{"#d55e00", "8 3"},
		{"#009e73", "3 3"},
		{"#7a3e8e", "10 3 2 3"},
		{"#000000", "1 3"},
		{"#b58900", ""},
		{"#56b4e9", "6 2"},
		{"#a4133c", "2 2"},
		{"#555555", "12 4"},
		{"#6b8e23", "5 2 1 2"},
	}
}

func styleOf(i int) style { return styles()[i%len(styles())] }

// point is a place in values.
type point struct{ x, y float64 }

// curve draws a line through points.
func (p *plot) curve(points []point, s style) {
	var path strings.Builder
	for _, at := range points {
		fmt.Fprintf(&path, "%.1f,%.1f ", p.px(at.x), p.py(at.y))
	}
	fmt.Fprintf(&p.b, `<polyline class="curve" stroke="%s" stroke-dasharray="%s" points="%s"/>`+"\n", s.colour, s.dash, strings.TrimSpace(path.String()))
	if len(points) == 1 {
		fmt.Fprintf(&p.b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", p.px(points[0].x), p.py(points[0].y), s.colour)
	}
}

// box draws a bar between two values of each axis.
func (p *plot) box(x1, x2, y1, y2 float64, colour string) {
	left, right, top, bottom := p.px(x1), p.px(x2), p.py(y2), p.py(y1)
	fmt.Fprintf(&p.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, top, max(right-left, 0.5), max(bottom-top, 0), colour)
}

// legend adds an entry above the frame.
func (p *plot) legend(s style, text string) {
	x, y := plotLeft+p.moved, 14.0
	fmt.Fprintf(&p.b, `<line class="curve" stroke="%s" stroke-dasharray="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", s.colour, s.dash, x, y, x+30, y)
	p.text(x+36, y+4, "start", "", text)
	p.moved += 60 + 7.5*float64(len([]rune(text)))
}

// legendRow adds entry i where six stand in a row.
func (p *plot) legendRow(i int, text string) {
	x, y := plotLeft+150*float64(i%6), 14+20*float64(i/6)
	s := styleOf(i)
	fmt.Fprintf(&p.b, `<line class="curve" stroke="%s" stroke-dasharray="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", s.colour, s.dash, x, y, x+30, y)
	p.text(x+36, y+4, "start", "", text)
}

// swatch adds an entry for bars above the frame.
func (p *plot) swatch(colour, text string) {
	x := plotLeft + p.moved
	fmt.Fprintf(&p.b, `<rect x="%.1f" y="6" width="14" height="14" fill="%s"/>`+"\n", x, colour)
	p.text(x+20, 18, "start", "", text)
	p.moved += 44 + 7.5*float64(len([]rune(text)))
}

// mark draws a line across at a place of the x axis, with a short text on top.
func (p *plot) mark(x float64, text string) {
	p.line(p.px(x), p.top-4, p.px(x), p.top+p.inner(), "mark")
	if text != "" {
		p.text(p.px(x), p.top-8, "middle", "marktext", text)
	}
}

func (p *plot) svg() string { return p.b.String() + "</svg>\n" }
