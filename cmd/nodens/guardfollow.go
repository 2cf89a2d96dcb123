package main

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/topology"
)

// followServers is how a guard follows the servers of the fallback while no serve tells
// them: as serve does, from the same source, with what the pod may ask of the API
// server. nil where no route has a topology. Serve takes over changes of the
// configuration, so load reads it anew each time; c is used while that fails.
func followServers(c Config, load func() (Config, error), log *zap.Logger) guard.Follow {
	if firstTopology(&c) < 0 {
		return nil
	}
	began := time.Now()
	b := base{now: func() time.Duration { return time.Since(began) }, log: log.With(zap.String("for", "the fallback")), own: interfaceAddrs}
	return func(ctx context.Context, publish func(guard.Table)) error {
		now := c
		if read, err := load(); err == nil && firstTopology(&read) >= 0 {
			now = read
		}
		b := b
		b.clients = &clients{}
		f, err := newFollower(&now, publish, b)
		if err != nil {
			return err
		}
		if f.api != nil {
			defer f.api.client.Close()
		}
		return runTasks(ctx, guardStop, f.tasks...)
	}
}

// newFollower is the feed of the route that knows the cluster's names. What is known
// without a source is no better than what the guard has, and neither is a snapshot:
// only the guard's own file is kept.
func newFollower(c *Config, publish func(guard.Table), b base) (*feed, error) {
	r := &c.Routes[firstTopology(c)]
	f := &feed{spec: specOf(c, r), lenient: true}
	f.spec.kubernetes.Snapshots = ""
	f.publish = func(t topology.Table) {
		if !t.Provisional {
			publish(fallbackOf(t, r))
		}
	}
	return f, f.follow(b)
}
