package main

import (
	"fmt"
	"strings"
)

// clientsReport is about the bounds of clients. The counts are since counting
// began, the worst clients those not forgotten since.
type clientsReport struct {
	Known   int             `json:"known"` // with something to remember
	Most    int             `json:"most"`
	Denied  uint64          `json:"denied"`
	Limited uint64          `json:"limited"`
	Worst   []refusedReport `json:"worst,omitempty"`
}

type refusedReport struct {
	Client string `json:"client"`
	Times  uint64 `json:"times"`
}

// clientsReport is nil while clients have no bounds and none was turned away.
func (s *snapshot) clientsReport() *clientsReport {
	f := &s.Forwarder
	if f.Access.Most == 0 && f.Denied+f.Limited == 0 {
		return nil
	}
	r := &clientsReport{Known: f.Access.Clients, Most: f.Access.Most, Denied: f.Denied, Limited: f.Limited}
	for _, w := range f.Access.Worst {
		client := w.Client.String()
		if w.Client.IsSingleIP() {
			client = w.Client.Addr().String()
		}
		r.Worst = append(r.Worst, refusedReport{client, w.Times})
	}
	return r
}

// String is the report in a line.
func (r *clientsReport) String() string {
	text := fmt.Sprintf("%s queries turned away (%s of clients that may not ask, %s over their share), %d of %s clients remembered",
		humanCount(r.Denied+r.Limited), humanCount(r.Denied), humanCount(r.Limited), r.Known, humanCount(r.Most))
	var worst []string
	for _, w := range r.Worst {
		worst = append(worst, fmt.Sprintf("%s (%s times)", w.Client, humanCount(w.Times)))
	}
	if len(worst) > 0 {
		text += "; most often over: " + strings.Join(worst, ", ")
	}
	return text
}
