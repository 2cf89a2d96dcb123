package load

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Report is the outcome of a run. All durations are nanoseconds in JSON.
type Report struct {
	Target      string        `json:"target"`
	Started     time.Time     `json:"started"`
	Took        time.Duration `json:"took_ns"`     // until the last query ended
	Sending     time.Duration `json:"sending_ns"`  // until the last query was sent
	Outstanding int           `json:"outstanding"` // 0: open loop
	Workers     int           `json:"workers"`
	Sockets     int           `json:"sockets"`
	Rate        float64       `json:"rate"`    // queries sent per second of Sending
	Answers     float64       `json:"answers"` // queries answered per second of Sending
	Total       Counts        `json:"total"`
	Latency     Percentiles   `json:"latency"`
	CDF         []Point       `json:"cdf"`
	Phases      []Phase       `json:"phases"`
	Seconds     []Second      `json:"seconds"`
	Generator   Generator     `json:"generator"`
	Examples    []string      `json:"examples"` // the first wrong replies
}

// Percentiles sums up latencies of right and late replies.
type Percentiles struct {
	Mean time.Duration `json:"mean_ns"`
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	Max  time.Duration `json:"max_ns"`
}

// Point is a point of the distribution: so large a share of the latencies, 0 to
// 1, is at most so long.
type Point struct {
	Share   float64       `json:"share"`
	Latency time.Duration `json:"latency_ns"`
}

// Phase is a named part of a run: the queries meant to be sent from Start on.
type Phase struct {
	Name    string        `json:"name"`
	Start   time.Duration `json:"start_ns"`
	Counts  Counts        `json:"counts"`
	Latency Percentiles   `json:"latency"`
}

// Second is a row of the series: the queries meant to be sent within it.
type Second struct {
	At      time.Duration `json:"at_ns"`
	Counts  Counts        `json:"counts"`
	Latency Percentiles   `json:"latency"`
}

// Generator says how well the generator did its own work.
type Generator struct {
	// Lag is how late queries left, by the schedule. Latency contains it.
	Lag Percentiles `json:"lag"`
	// Busy is the share of the time that the workers did not wait.
	Busy float64 `json:"busy"`
	// CPU is the CPU time of this process for each query sent.
	CPU time.Duration `json:"cpu_ns"`
	// Unsent counts queries that were due but found no free slot or were not
	// taken by the kernel. They are not in Sent. One that finds no connection is
	// not among them: it is sent when there is one, or lost.
	Unsent uint64 `json:"unsent"`
	// Stray counts replies that nobody waited for: too late, or a second one.
	Stray uint64 `json:"stray"`
	// Refused counts ICMP refusals of UDP queries.
	Refused uint64 `json:"refused"`
	// Broken counts TCP connections that failed or ended.
	Broken uint64 `json:"broken"`
	// Overflow counts replies dropped because a receive buffer was full; their
	// queries count as lost without the server's fault.
	Overflow uint64 `json:"overflow"`
	// Bottleneck says why the numbers are the generator's, not the server's;
	// empty if they are the server's.
	Bottleneck string `json:"bottleneck"`
}

func percentiles(h *hdr.Histogram) Percentiles {
	if h.TotalCount() == 0 {
		return Percentiles{}
	}
	at := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) }
	return Percentiles{
		Mean: time.Duration(h.Mean()),
		P50:  at(50),
		P90:  at(90),
		P99:  at(99),
		P999: at(99.9),
		Max:  time.Duration(h.Max()),
	}
}

func (r *Run) report(c *clerk, took time.Duration) *Report {
	rep := &Report{
		Target:      r.cfg.Target.String(),
		Started:     r.made.Add(time.Duration(r.begun.Load())),
		Took:        took,
		Outstanding: r.cfg.Outstanding,
		Workers:     r.cfg.Workers,
		Sockets:     r.cfg.Sockets,
		Seconds:     c.rows,
		Examples:    r.examples,
	}
	for _, w := range r.workers {
		rep.Sending = max(rep.Sending, w.stopped)
	}
	for n := len(rep.Seconds); n > 0 && rep.Seconds[n-1].Counts.Sent == 0; n-- {
		rep.Seconds = rep.Seconds[:n-1]
	}
	all := newScore(3)
	for _, p := range r.book.Load().byStart {
		sum := newScore(3)
		for _, s := range p.scores {
			sum.add(s)
		}
		all.add(sum)
		rep.Phases = append(rep.Phases, Phase{p.name, p.start, sum.Counts, percentiles(sum.latency)})
	}
	rep.Total, rep.Latency, rep.CDF = all.Counts, percentiles(all.latency), cdf(all.latency)
	rep.Rate = float64(rep.Total.Sent) / rep.Sending.Seconds()
	rep.Answers = float64(rep.Total.Answered()) / rep.Sending.Seconds()
	rep.Generator = r.generator(took, rep.Total.Sent)
	return rep
}

// cdf gives the distribution in steps of a thousandth, and all of its upper end.
func cdf(h *hdr.Histogram) []Point {
	var points []Point
	var sum, last float64
	for _, bar := range h.Distribution() {
		sum += float64(bar.Count)
		share := sum / float64(h.TotalCount())
		if bar.Count > 0 && (share-last >= 0.001 || share > 0.99) {
			points = append(points, Point{share, time.Duration(bar.To)})
			last = share
		}
	}
	return points
}

func (r *Run) generator(took time.Duration, sent uint64) Generator {
	var g Generator
	lag := newScore(3).latency
	var waited time.Duration
	for _, w := range r.workers {
		lag.Merge(w.lag)
		waited += w.waited
		g.Unsent += w.trouble.Unsent
		g.Stray += w.trouble.Stray
		g.Refused += w.trouble.Refused
		g.Broken += w.trouble.Broken
		g.Overflow += w.trouble.Overflow
	}
	g.Lag = percentiles(lag)
	g.Busy = 1 - waited.Seconds()/(took.Seconds()*float64(len(r.workers)))
	if sent > 0 {
		g.CPU = (processCPU() - r.cpu) / time.Duration(sent)
	}
	g.Bottleneck = bottleneck(g, r.cfg)
	return g
}

// bottleneck says what kept the generator from measuring the server, if
// anything did.
func bottleneck(g Generator, cfg Config) string {
	switch {
	case g.Overflow > 0:
		return "replies overflowed the generator's receive buffers"
	case g.Unsent > 0:
		return "queries that were due could not be sent"
	case cfg.Outstanding == 0 && g.Lag.P99 > time.Millisecond:
		return "queries left more than 1 ms late (99th percentile)"
	case cfg.Outstanding > 0 && g.Busy > 0.98:
		return "the workers never waited for a reply"
	}
	return ""
}
