package main

import (
	"context"
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
func (l *queryLog) apply(c QueryLogConfig, b base) {
	if c.Every == 0 {
		l.replace(nil)
		return
	}
	l.replace(&task{"query log", func(ctx context.Context) error {
		l.run(ctx, c, b)
		return nil
	}})
}

// run logs until ctx ends.
func (l *queryLog) run(ctx context.Context, c QueryLogConfig, b base) {
	filter := forwarder.Filter{Every: uint64(c.Every), Slower: c.Slower}
	if c.Below != "" {
		filter.Below, _ = wire.AppendName(nil, strings.ToLower(c.Below)) // it was checked when it was read
	}
	tap, err := b.taps.Open(filter)
	if err != nil {
		b.log.Warn("queries are not logged", zap.Error(err))
		return
	}
	defer func() {
		tap.Close()
		l.dropped.Add(tap.Dropped())
	}()
	left, second := c.PerSecond, time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
			left = c.PerSecond
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
