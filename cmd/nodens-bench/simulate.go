package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nodens-dns/nodens/bench/apicost"
)

// simulateCommand is nodens-bench simulate.
func simulateCommand(_ context.Context, o output, args []string) error {
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	nodes := flags.String("nodes", "1000,5000,15000", "how many nodes run the daemon, a `LIST` with commas")
	replicas := flags.String("replicas", "3,auto,nodes", "how many replicas the cluster's DNS has, a `LIST` with commas: numbers, auto (one for 16 nodes) or nodes (one on each)")
	var cfg apicost.Config
	flags.IntVar(&cfg.MaxPerSlice, "slice", 100, "endpoints in a slice at most")
	flags.Float64Var(&cfg.EventsPerPod, "events", 4.5, "writes of a slice for each pod that is replaced")
	flags.IntVar(&cfg.Surge, "surge", 0, "pods that are replaced at a `time`; 0: a quarter")
	flags.Float64Var(&cfg.PodSeconds, "pod", 20, "`seconds` that the replacement of a pod takes")
	flags.DurationVar(&cfg.StartWindow, "window", time.Second, "the `time` within which all daemons start")
	flags.DurationVar(&cfg.Jitter, "jitter", 30*time.Second, "the longest pause before a daemon's first list; -1s: none")
	flags.IntVar(&cfg.APIServers, "apiservers", 3, "API servers that share the watches")
	flags.BoolVar(&cfg.Protobuf, "protobuf", true, "the encoding of the watches; false: JSON")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "draws the pauses")
	flags.Float64Var(&cfg.ListMicros, "list-cpu", 4000, "`µs` of an API server for listing 1 MB")
	flags.Float64Var(&cfg.EventMicros, "event-cpu", 1000, "`µs` of an API server for sending 1 MB of events")
	flags.Float64Var(&cfg.WatchBytes, "watch-memory", 50_000, "`octets` of an API server for one watch")
	if err := parse(flags, o, args, 0); err != nil {
		return err
	}
	if err := refuseZero(flags); err != nil {
		return err
	}
	costs, err := costsOf(cfg, *nodes, *replicas)
	if err != nil {
		return err
	}
	writeCosts(o, costs)
	return nil
}

// refuseZero finds flags that say 0 where the simulation takes it for a default.
func refuseZero(flags *flag.FlagSet) error {
	var errs []error
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "surge", "protobuf": // 0 has a meaning
			return
		}
		switch f.Value.String() {
		case "0", "0s", "-0":
			errs = append(errs, fmt.Errorf("nodens-bench simulate: -%s must not be 0: %s", f.Name, f.Usage))
		}
	})
	return errors.Join(errs...)
}

// byFlag says the same of the flag that a field is set with.
func byFlag(err error) error {
	var wrong *apicost.RangeError
	if !errors.As(err, &wrong) {
		return err
	}
	name := map[string]string{
		"Nodes": "nodes", "Replicas": "replicas", "MaxPerSlice": "slice", "EventsPerPod": "events", "Surge": "surge",
		"PodSeconds": "pod", "StartWindow": "window", "Jitter": "jitter", "APIServers": "apiservers",
	}[wrong.Field]
	return fmt.Errorf("nodens-bench simulate: -%s is %.10g, want %.10g to %.10g", name, wrong.Value, wrong.Low, wrong.High)
}

func costsOf(cfg apicost.Config, nodes, replicas string) ([]*apicost.Cost, error) {
	var costs []*apicost.Cost
	var errs []error
	for n := range strings.SplitSeq(nodes, ",") {
		for r := range strings.SplitSeq(replicas, ",") {
			var err error
			if cfg.Nodes, err = strconv.Atoi(n); err == nil {
				cfg.Replicas, err = replicasOf(r, cfg.Nodes)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("nodens-bench simulate: %w", err))
				continue
			}
			c, err := apicost.Simulate(cfg)
			if err != nil {
				return nil, errors.Join(append(errs, byFlag(err))...)
			}
			costs = append(costs, c)
		}
	}
	return costs, errors.Join(errs...)
}

func replicasOf(text string, nodes int) (int, error) {
	switch text {
	case "auto":
		return max(2, (nodes+15)/16), nil
	case "nodes":
		return nodes, nil
	}
	return strconv.Atoi(text)
}

func writeCosts(o output, costs []*apicost.Cost) {
	cfg := costs[0].Config
	encoding := "JSON"
	if cfg.Protobuf {
		encoding = "protobuf"
	}
	fmt.Fprintf(o.result, `What daemons that watch the slices of the cluster's DNS cost the API servers, on paper.

Assumed: one watch for each node; a changed slice goes whole, as %s, to every watch; at most %d endpoints in
a slice; %v writes for each pod that is replaced, which takes %v s; daemons start within %v and pause up to
%v before their one list; %d API servers; %v µs CPU for listing 1 MB, %v for sending 1 MB of events, %v octets
for a watch (estimates). kube-proxy watches the same Service and costs about the same again.

`, encoding, cfg.MaxPerSlice, cfg.EventsPerPod, cfg.PodSeconds, cfg.StartWindow, cfg.Jitter, cfg.APIServers,
		cfg.ListMicros, cfg.EventMicros, cfg.WatchBytes)
	t := tabwriter.NewWriter(o.result, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\t\t\ta roll of the DNS\t\t\t\t\t\tall daemons start\t\t\t\tidle\t\t")
	fmt.Fprintln(t, "nodes\treplicas\tslices\ttakes\tevents\tevery event\tin all\tpeak/s\tcores\tlists\tlists/s at peak\tpeak/s\tcores\twatches a server\tmemory\tbytes/s\t")
	for _, c := range costs {
		fmt.Fprintf(t, "%d\t%d\t%d\t%v\t%.0f\t%s\t%s\t%s\t%.2f\t%s\t%d\t%s\t%.2f\t%d\t%s\t%s\t\n", c.Config.Nodes, c.Config.Replicas, c.Slices,
			c.Roll.Round(time.Second), c.Events, octets(c.EventBytes), octets(c.RollBytes), octets(c.RollPeakRate), c.RollCores,
			octets(c.ListBytes), c.PeakLists, octets(c.PeakBytes), c.PeakCores, c.Watches, octets(c.WatchMemory), octets(c.IdleRate))
	}
	_ = t.Flush()
	for _, c := range costs {
		if each := c.RollPeakRate / float64(c.Config.APIServers); each > tenGigabit {
			fmt.Fprintf(o.result, "%d nodes, %d replicas: %s a second from each API server at the peak of a roll is more than 10 Gbit/s: watches are cut and lists repeated. Watch a small Service, or roll more slowly (-surge).\n",
				c.Config.Nodes, c.Config.Replicas, octets(each))
		}
	}
}

// tenGigabit is what a fast network card carries, in bytes per second.
const tenGigabit = 1.25e9

// octets is a size in its best unit.
func octets(v float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if v < 1000 {
			return fmt.Sprintf("%.3g %s", v, unit)
		}
		v /= 1000
	}
	return fmt.Sprintf("%.3g TB", v)
}
