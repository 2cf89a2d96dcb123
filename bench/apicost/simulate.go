package apicost

import (
	"math"
	"math/rand/v2"
	"time"
)

// Cost is what a cluster costs its API servers, all of them together unless it
// says otherwise.
type Cost struct {
	Config Config // with the defaults filled in

	Slices     int
	SliceBytes float64 // of a full slice
	TotalBytes float64 // of all slices: what a list gives

	// A roll of the cluster's DNS.
	Roll         time.Duration
	Events       float64 // writes of slices
	EventBytes   float64 // of one event to all watches
	RollBytes    float64 // of all events to all watches
	RollRate     float64 // bytes per second, on average
	RollPeakRate float64 // bytes per second of the busiest second
	RollCores    float64 // busy with it, on average

	// All daemons start.
	ListBytes float64 // of all lists
	PeakLists int     // lists in the busiest second
	PeakBytes float64 // of the lists of that second
	PeakCores float64 // busy with them

	// Nothing happens.
	Watches     int     // for each API server
	WatchMemory float64 // bytes, for each API server
	IdleRate    float64 // bytes per second: bookmarks
}

// Simulate estimates the cost of a cluster.
func Simulate(cfg Config) (*Cost, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Cost{Config: cfg}
	c.slices()
	c.roll()
	c.start()
	c.idle()
	return c, nil
}

func (c *Cost) slices() {
	cfg := c.Config
	full, rest := cfg.Replicas/cfg.MaxPerSlice, cfg.Replicas%cfg.MaxPerSlice
	c.SliceBytes = sliceBytes(min(cfg.Replicas, cfg.MaxPerSlice), cfg.Protobuf)
	c.Slices = full
	c.TotalBytes = float64(full) * sliceBytes(cfg.MaxPerSlice, cfg.Protobuf)
	if rest > 0 {
		c.Slices++
		c.TotalBytes += sliceBytes(rest, cfg.Protobuf)
	}
}

// roll goes through the replacements wave by wave. Within a wave the events are
// spread evenly over the time of a replacement, drawn with the seed.
func (c *Cost) roll() {
	cfg := c.Config
	rng := rand.New(rand.NewPCG(cfg.Seed, 1))
	waves := math.Ceil(float64(cfg.Replicas) / float64(cfg.Surge))
	c.Roll = time.Duration(waves * cfg.PodSeconds * float64(time.Second))
	perSecond := make([]float64, int(c.Roll.Seconds())+2)
	mean := c.TotalBytes / float64(c.Slices) // of the slice that a pod is in
	for pod := range cfg.Replicas {
		wave := float64(pod / cfg.Surge)
		events := math.Floor(cfg.EventsPerPod)
		if rng.Float64() < cfg.EventsPerPod-events {
			events++
		}
		for range int(events) {
			at := (wave + rng.Float64()) * cfg.PodSeconds
			perSecond[int(at)] += mean * float64(cfg.Nodes)
			c.Events++
			c.RollBytes += mean * float64(cfg.Nodes)
		}
	}
	for _, bytes := range perSecond {
		c.RollPeakRate = max(c.RollPeakRate, bytes)
	}
	c.EventBytes = mean * float64(cfg.Nodes)
	c.RollRate = c.RollBytes / c.Roll.Seconds()
	c.RollCores = c.RollRate / 1e6 * cfg.EventMicros / 1e6
}

// start lets every daemon list once, at a time drawn with the seed.
func (c *Cost) start() {
	cfg := c.Config
	rng := rand.New(rand.NewPCG(cfg.Seed, 2))
	perSecond := map[int]int{}
	for range cfg.Nodes {
		at := rng.Float64()*cfg.StartWindow.Seconds() + rng.Float64()*cfg.Jitter.Seconds()
		perSecond[int(at)]++
	}
	for _, n := range perSecond {
		c.PeakLists = max(c.PeakLists, n)
	}
	c.ListBytes = float64(cfg.Nodes) * c.TotalBytes
	c.PeakBytes = float64(c.PeakLists) * c.TotalBytes
	c.PeakCores = c.PeakBytes / 1e6 * cfg.ListMicros / 1e6
}

func (c *Cost) idle() {
	const bookmark, minute = 250, 60
	cfg := c.Config
	c.Watches = (cfg.Nodes + cfg.APIServers - 1) / cfg.APIServers
	c.WatchMemory = float64(c.Watches) * cfg.WatchBytes
	c.IdleRate = float64(cfg.Nodes) * bookmark / minute
}
