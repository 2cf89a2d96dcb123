package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// queryLog writes a sample of the queries to the log.
type queryLog struct {
	outlet
	lines, dropped atomic.Uint64
}

// apply logs as c says from now on.
func (l *queryLog) apply(c *Config, b base) {
	filter, any := loggedOf(c)
	if !any {
		l.replace(nil)
		return
	}
	most := c.QueryLog.PerSecond
	l.replace(&task{"query log", func(ctx context.Context) error {
		l.run(ctx, filter, most, b)
		return nil
	}})
}

// loggedOf says which queries are logged; any is false for none.
func loggedOf(c *Config) (filter forwarder.Filter, any bool) {
	q := &c.QueryLog
	filter = forwarder.Filter{Every: uint64(q.Every), Slower: q.Slower, Routes: map[int]*forwarder.Filter{}}
	if q.Below != "" {
		filter.Below, _ = wire.AppendName(nil, strings.ToLower(q.Below)) // it was checked when it was read
	}
	any = q.Every > 0
	for i := range c.Routes {
		switch r := &c.Routes[i].QueryLog; {
		case r.Every > 0:
			filter.Routes[i] = &forwarder.Filter{Every: uint64(r.Every), Slower: r.Slower}
			any = true
		case r.Every == 0 || q.Every == 0:
			filter.Routes[i] = nil
		}
	}
	if q.Every == 0 {
		filter.Routes[-1] = nil
	}
	return filter, any
}

// sameLog says that two configurations log the same.
func sameLog(a, b *Config) bool {
	return a.QueryLog == b.QueryLog && slices.EqualFunc(a.Routes, b.Routes, func(a, b RouteConfig) bool { return a.QueryLog == b.QueryLog })
}

// run logs until ctx ends, at most so many a second.
func (l *queryLog) run(ctx context.Context, filter forwarder.Filter, most int, b base) {
	tap, err := b.taps.Open(filter)
	if err != nil {
		b.log.Warn("queries are not logged", zap.Error(err))
		return
	}
	defer func() {
		tap.Close()
		l.dropped.Add(tap.Dropped())
	}()
	left, second := most, time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
			left = most
		case e := <-tap.Events():
			if left == 0 {
				l.dropped.Add(1)
				continue
			}
			left--
			l.lines.Add(1)
			b.log.Info("query", queryFields(&e)...)
		}
	}
}

// queryFields are a query and its answer as they stand in the log.
func queryFields(e *forwarder.Event) []zap.Field {
	proto, rcode := "udp", "none"
	if e.Proto == forwarder.TCP {
		proto = "tcp"
	}
	if e.RCode != forwarder.NoReply {
		rcode = rcodeName(int(e.RCode))
	}
	return []zap.Field{
		zap.Stringer("client", e.Client), zap.String("proto", proto),
		zap.String("name", string(wire.AppendText(nil, e.Name()))), zap.String("type", dns.Type(e.Type).String()),
		zap.String("rcode", rcode), zap.String("source", sourceName(e.Source)), zap.Duration("took", e.Took),
	}
}
