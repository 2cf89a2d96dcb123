package main

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// QueryLogConfig writes queries with their answers to the log, as level info.
type QueryLogConfig struct {
	// Every is how many of the queries that fit are taken for one line: 1 for all,
	// to 1000000. Default 0: none is written.
	Every int
	// Below is a name in lower case with a final dot: it and all below it fit.
	// Default all.
	Below string
	// Slower is the least time to the answer, 0 to 10 s. Default 0.
	Slower time.Duration
	// PerSecond bounds the lines, 1 to 10000, default 100. What is above is
	// counted.
	PerSecond int
}

// RouteQueryLogConfig writes queries for the names of one route in place of those
// that the daemon's QueryLog would take of them; one bound holds for all lines.
type RouteQueryLogConfig struct {
	// Every is how many of the route's queries that fit are taken for one line: 1
	// for all, to 1000000; 0 for none. Default: what the daemon's QueryLog takes.
	Every int
	// Slower is the least time to the answer, 0 to 10 s. Default 0.
	Slower time.Duration
}

// asDaemon is RouteQueryLogConfig.Every of a route that says nothing.
const asDaemon = -1

// DnstapConfig tells a collector of every query and its reply.
type DnstapConfig struct {
	// Address is the path of a unix socket or an IP address with a port. Default
	// none: nobody is told.
	Address string
	// Identity says who sends. Default the node's name.
	Identity string
	// Queue is how many queries may wait for the collector, 16 to 65536, default
	// 2048. What finds no room is counted.
	Queue int
}

func (f *configFile) queryLog() fields {
	q := &f.config.QueryLog
	return fields{
		"every":     f.number(&q.Every, 0, 1_000_000),
		"below":     func(path string, n *yaml.Node) { f.name(path, n, &q.Below) },
		"slower":    f.time(&q.Slower, 0, 10*time.Second),
		"perSecond": f.number(&q.PerSecond, 1, 10_000),
	}
}

func (f *configFile) routeQueryLog(q *RouteQueryLogConfig) reader {
	return func(path string, n *yaml.Node) {
		f.object(path, n, fields{
			"every":  f.number(&q.Every, 0, 1_000_000),
			"slower": f.time(&q.Slower, 0, 10*time.Second),
		}, "every")
	}
}

func (f *configFile) dnstap() fields {
	d := &f.config.Dnstap
	return fields{
		"address": func(path string, n *yaml.Node) {
			if !f.text(path, n, &d.Address) {
				return
			}
			if _, err := netip.ParseAddrPort(d.Address); err != nil && !filepath.IsAbs(d.Address) {
				f.add(n.Line, fmt.Sprintf("%s is %q, which is neither a path nor an address with a port", path, cut(d.Address)), "write such as /run/dnstap.sock or 192.0.2.1:6000")
			}
		},
		"identity": f.to(&d.Identity),
		"queue":    f.number(&d.Queue, 16, 65536),
	}
}
