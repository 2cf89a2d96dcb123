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

// maxServersShown is how many servers of a route are printed.
const maxServersShown = 20

// explainCommand asks a running daemon what becomes of a question.
func explainCommand(ctx context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens explain", flag.ContinueOnError)
	client := flags.String("client", "", "say also whether the client with this `ADDRESS` may ask")
	to := adminFlags(flags)
	words, err := parseWith(flags, s, args, 2)
	switch {
	case err != nil:
		return err
	case len(words) == 0:
		return misused(flags, "it takes a name, and a type unless it is A")
	}
	query := url.Values{"name": words[:1], "type": words[1:]}
	if *client != "" {
		query.Set("client", *client)
	}
	return showReport(ctx, s, to, http.MethodGet, "/explain", query, printExplain)
}

func printExplain(w io.Writer, r *explainReport) error {
	fmt.Fprintf(w, "question %s %s\n", r.Name, r.Type)
	fmt.Fprintf(w, "answer   %s\n", r.Answer)
	if r.Client != "" {
		fmt.Fprintf(w, "client   %s\n", r.Client)
	}
	for _, record := range r.Ruled {
		fmt.Fprintf(w, "           %s\n", strings.ReplaceAll(record, "\t", " "))
	}
	if r.AskedFor != "" {
		fmt.Fprintf(w, "asked as %s\n", r.AskedFor)
	}
	if r.Asking {
		fmt.Fprint(w, "now      the servers are being asked\n")
	}
	if len(r.Kept) == 0 {
		fmt.Fprint(w, "memory   nothing\n")
	}
	for i := range r.Kept {
		r.Kept[i].print(w)
	}
	var err error
	if r.Route != nil {
		err = r.Route.print(w, r.Zone)
	} else if r.Zone != "" {
		fmt.Fprintf(w, "zone     %s\n", r.Zone)
	}
	fmt.Fprintf(w, "\nAs of %s, process %d, node %s\n", r.At.UTC().Format(time.DateTime+" UTC"), r.PID, orUnknown(r.Node))
	return err
}

func (k *keptReport) print(w io.Writer) {
	from := ""
	if k.Tier != "" {
		from = " from a server of tier " + k.Tier
	}
	fmt.Fprintf(w, "memory   %s (%s)%s, for %s\n", k.RCode, k.Kind, from, k.For)
	age := time.Duration(k.Age * float64(time.Second))
	fmt.Fprintf(w, "         fetched %s ago, %s; %s hits\n", seconds(age), k.State, humanCount(k.Hits))
	if k.Error != "" {
		fmt.Fprintf(w, "         error: %s\n", k.Error)
	}
	for _, record := range k.Records {
		fmt.Fprintf(w, "           %s\n", strings.ReplaceAll(record, "\t", " "))
	}
}

func (r *orderedRoute) print(w io.Writer, zone string) error {
	fmt.Fprintf(w, "route    %s of %s -> %s, %d of %s questions in flight\n", zone, strings.Join(r.Zones, " "), r.From, r.InFlight, humanCount(r.Limit))
	for _, note := range r.Notes {
		fmt.Fprintf(w, "         %s\n", note)
	}
	if len(r.Servers) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\n  ATTEMPT\tTIER\tSERVER\tSTATE\tHEALTH\tTIME\tIN FLIGHT\tWHY\n")
	for i, s := range r.Servers {
		if i == maxServersShown {
			fmt.Fprintf(table, "  and %d more; -o json has them\n", len(r.Servers)-i)
			break
		}
		health := "good"
		if !s.Healthy {
			health = "avoided"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", s.turns(), s.Tier, s.Address, s.State, health, humanRTT(s.RTT), s.InFlight, s.Why)
	}
	return table.Flush()
}

// turns are the attempts that may go to the server.
func (s *orderedServer) turns() string {
	if len(s.Attempts) == 0 {
		return "–"
	}
	var numbers []string
	for _, n := range s.Attempts {
		numbers = append(numbers, fmt.Sprint(n))
	}
	return strings.Join(numbers, " or ")
}
