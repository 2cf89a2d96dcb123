package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The parts count in plain numbers; here the numbers get their names. Nothing
// is kept between two scrapes, so a series of a server that left is gone with
// it.

// metricOf is one row of a table of metrics that are read from an S.
type metricOf[S any] struct {
	name, help string
	labels     []string
	// read emits the values found in a snapshot.
	read func(s *S, emit emitter)
}

// metric is one row of the tables in metrics_coredns.go and metrics_own.go.
type metric = metricOf[snapshot]

// emitter sends the values of one metric, each with its labels in the order of
// the row.
type emitter struct {
	desc *prometheus.Desc
	to   chan<- prometheus.Metric
}

func (e emitter) count(value uint64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(e.desc, prometheus.CounterValue, float64(value), labels...)
}

func (e emitter) gauge(value float64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, value, labels...)
}

// histogram takes one count for each bound and one for what is above them all.
func (e emitter) histogram(bounds []float64, buckets []uint64, sum float64, labels ...string) {
	var total uint64
	cumulative := make(map[float64]uint64, len(bounds))
	for i, n := range buckets {
		total += n
		if i < len(bounds) {
			cumulative[bounds[i]] = total
		}
	}
	e.to <- prometheus.MustNewConstHistogram(e.desc, total, sum, cumulative, labels...)
}

// collector reads a snapshot at every scrape.
type collector[S any] struct {
	snapshot func() S
	metrics  []metricOf[S]
	descs    []*prometheus.Desc
}

func newCollector[S any](read func() S, metrics []metricOf[S]) *collector[S] {
	c := &collector[S]{snapshot: read, metrics: metrics}
	for _, m := range c.metrics {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, m.labels, nil))
	}
	return c
}

// Describe implements [prometheus.Collector].
func (c *collector[S]) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector[S]) Collect(to chan<- prometheus.Metric) {
	s := c.snapshot()
	c.show(&s, to)
}

func (c *collector[S]) show(s *S, to chan<- prometheus.Metric) {
	for i, m := range c.metrics {
		m.read(s, emitter{c.descs[i], to})
	}
}

// daemonMetrics are all of the daemon's.
func daemonMetrics() []metric { return append(corednsMetrics(), ownMetrics()...) }

// metricsHandler serves the metrics of the collectors and those of process and Go
// runtime, from a registry of its own.
func metricsHandler(of ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(of...)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
