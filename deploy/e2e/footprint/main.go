// Footprint follows the slices of a namespace as the daemon does and does
// nothing else, so that what this costs can be seen from outside: it prints the
// number of members of each tier and of the last resort whenever they change.
//
//	footprint URL CA-FILE TOKEN-FILE NAMESPACE NODE
//
// Built with the tag bare it holds no Kubernetes client and only sleeps, which
// is what to compare with.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/nodens-dns/nodens/topology"
)

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: footprint URL CA-FILE TOKEN-FILE NAMESPACE NODE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := follow(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func follow(ctx context.Context, args []string) error {
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	source, err := newSource(args[0], args[1], args[2], args[3], now)
	if err != nil {
		return err
	}
	watcher, err := topology.New(topology.Config{
		Self:  topology.Self{Node: args[4]},
		Rules: topology.Rules{Namespace: args[3]},
		Now:   now,
		Publish: func(t topology.Table) {
			fmt.Println(len(t.Tiers[0]), len(t.Tiers[1]), len(t.Tiers[2]), len(t.Last))
		},
	})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { err = source.Run(ctx, watcher) })
	running.Go(func() { _ = watcher.Run(ctx) })
	running.Wait()
	return err
}
