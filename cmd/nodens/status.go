package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"
)

// statusCommand asks a running daemon for its report.
func statusCommand(ctx context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens status", flag.ContinueOnError)
	to := adminFlags(flags)
	if err := parse(flags, s, args); err != nil {
		return err
	}
	return showReport(ctx, s, to, http.MethodGet, "/statusz", url.Values{"format": {"json"}}, printReport)
}

// printReport writes a report for a terminal.
func printReport(w io.Writer, r *report) error {
	state := "ready"
	if !r.Ready {
		state = "not ready: " + r.Why
	}
	fmt.Fprintf(w, "nodens %s, %s, node %s, zone %s\n", r.Version, state, orUnknown(r.Node), orUnknown(r.Zone))
	fmt.Fprintf(w, "process  %d, up %s, started %s\n", r.PID, humanTime(r.At.Sub(r.Started)), r.Started.UTC().Format(time.DateTime+" UTC"))
	fmt.Fprintf(w, "queries  %s/s, %s from memory (%s %s), %s/s failed\n",
		humanRate(r.Rates.Queries), percent(r.Rates.HitRatio), percent(r.Rates.TotalHitRatio), r.Since(), humanRate(r.Rates.BySource["failure"]))
	fmt.Fprintf(w, "cache    %s of %s, %s answers\n", humanBytes(r.Cache.Bytes), humanBytes(r.Cache.Limit), humanCount(r.Cache.Entries))
	if r.Host != nil {
		fmt.Fprintf(w, "host     %s, %s\n", r.Host.Mode, r.Host.Guard)
	}
	if r.Clients != nil {
		fmt.Fprintf(w, "clients  %s\n", r.Clients)
	}
	fmt.Fprintf(w, "config   %s, in force for %s\n", r.Config.Path, humanTime(r.At.Sub(r.Config.Loaded)))
	if r.Config.Error != "" {
		fmt.Fprintf(w, "         NOT taken over: %s\n", strings.ReplaceAll(r.Config.Error, "\n", "\n         "))
	}
	if len(r.Config.Waits) > 0 {
		fmt.Fprintf(w, "         waits for a restart: %s\n", strings.Join(r.Config.Waits, ", "))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, route := range r.Routes {
		fmt.Fprintf(table, "\nroute    %s -> %s\n", strings.Join(route.Zones, " "), route.From)
		for _, note := range route.Notes {
			fmt.Fprintf(table, "         %s\n", note)
		}
		fmt.Fprint(table, "  TIER\tSERVER\tSTATE\tNODE/ZONE: CONDITIONS\tHEALTH\tTIME\tIN FLIGHT\tSENT\tFAILED\tWHY\n")
		for _, s := range route.Servers {
			health := "good"
			if !s.Healthy {
				health = "avoided"
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n",
				s.Tier, s.Address, s.State, s.Says(), health, humanRTT(s.RTT), s.InFlight, s.Sent, s.Failed, s.Why)
		}
	}
	fmt.Fprint(table, "\n  LISTEN\tUDP QUERIES\tTCP QUERIES\tUDP MISSES IN FLIGHT\tTCP MISSES IN FLIGHT\tTCP CONNECTIONS OPEN\tDROPPED\n")
	for _, l := range r.Listens {
		fmt.Fprintf(table, "  %s\t%d\t%d\t%d of %d\t%d of %d\t%d of %d\t%d\n",
			strings.TrimSpace(l.Address+" "+l.Waiting), l.UDP, l.TCP, l.UDPMisses, l.MissesLimit, l.TCPMisses, l.MissesLimit, l.Connections, l.ConnsLimit, l.Dropped)
	}
	return table.Flush()
}

func orUnknown(name string) string {
	if name == "" {
		return "unknown"
	}
	return name
}
