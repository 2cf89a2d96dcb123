package load

import "time"

// clerk closes the rows of the per-second series and reports progress.
type clerk struct {
	run  *Run
	rows []Second
	sum  *score // scratch
}

// Progress is how a run stands while it runs.
type Progress struct {
	At    time.Duration // since the run began
	Phase string        // that is under way
	Total Counts        // of all queries so far
	// Last is the last whole second. Its queries may still be in flight, so
	// losses show only in Total until their timeout.
	Last Second
}

func newClerk(r *Run) *clerk { return &clerk{run: r, sum: newScore(2)} }

// work keeps the series until stop is closed, then closes all of its rows.
func (c *clerk) work(stop <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	// A second is closed when its last query has timed out, seen at most a
	// tick late; another second is for a machine that stutters.
	keep := c.run.cfg.patience() + time.Second
	for {
		select {
		case <-stop:
			c.closeBefore(c.run.now() + time.Second)
			return
		case <-ticker.C:
			now := c.run.now()
			c.closeBefore(now - keep)
			if c.run.cfg.Progress != nil {
				c.run.cfg.Progress(c.progress(now))
			}
		}
	}
}

// closeBefore closes the rows of the seconds that ended before t.
func (c *clerk) closeBefore(t time.Duration) {
	for index := int64(len(c.rows)); time.Duration(index+1)*time.Second <= t; index++ {
		c.rows = append(c.rows, c.row(index))
	}
}

// row adds up one second of all workers.
func (c *clerk) row(index int64) Second {
	c.sum.reset()
	for _, w := range c.run.workers {
		w.mu.Lock()
		if s := w.seconds.find(index); s != nil {
			c.sum.add(s)
		}
		w.mu.Unlock()
	}
	return Second{At: time.Duration(index) * time.Second, Counts: c.sum.Counts, Latency: percentiles(c.sum.latency)}
}

func (c *clerk) progress(now time.Duration) Progress {
	p := Progress{At: now, Phase: c.run.book.Load().at(now).name}
	if index := int64(now/time.Second) - 1; index >= 0 {
		p.Last = c.row(index)
	}
	for _, w := range c.run.workers {
		w.mu.Lock()
		for _, phase := range c.run.book.Load().byID {
			p.Total.add(&phase.scores[w.number].Counts)
		}
		w.mu.Unlock()
	}
	return p
}
