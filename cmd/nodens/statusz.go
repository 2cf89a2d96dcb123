package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"go.uber.org/zap"
)

//go:embed statusz.html
var statusPage string

// serveStatus shows the report as a page, or as JSON for ?format=json.
func (d *daemon) serveStatus(w http.ResponseWriter, request *http.Request) {
	r := d.report()
	w.Header().Set("Cache-Control", "no-store")
	if request.URL.Query().Get("format") == "json" {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(r) // the client went away
		return
	}
	page, err := renderStatus(r)
	if err != nil {
		d.log.Error("the status page cannot be made", zap.Error(err))
		http.Error(w, "the status page cannot be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = w.Write(page)
}

// report describes the daemon as it is now.
func (d *daemon) report() report {
	s := d.snapshot()
	now := totalsOf(s.At, s.Forwarder)
	return newReport(&s, now, d.rates.oldest(now, s.counted()))
}

func renderStatus(r report) ([]byte, error) {
	page, err := template.New("statusz").Funcs(template.FuncMap{
		"bytes": humanBytes, "count": humanCount, "percent": percent, "rate": humanRate,
		"ms":    humanRTT,
		"since": func(t, now time.Time) string { return humanTime(now.Sub(t)) },
		"time":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"fill":  func(part, whole int64) string { return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(max(whole, 1))) },
	}).Parse(statusPage)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = page.Execute(&out, r)
	return out.Bytes(), err
}

// humanRTT is a round-trip time in milliseconds; 0 is none yet.
func humanRTT(ms float64) string {
	if ms == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f ms", ms)
}

func humanBytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// humanCount groups the digits by three: 1 234 567.
func humanCount(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

func humanRate(perSecond float64) string {
	switch {
	case perSecond >= 1000:
		return humanCount(int64(perSecond + 0.5))
	case perSecond >= 10:
		return fmt.Sprintf("%.0f", perSecond)
	case perSecond == 0:
		return "0"
	}
	return fmt.Sprintf("%.2g", perSecond)
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

// humanTime is a time span in its two largest units.
func humanTime(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
