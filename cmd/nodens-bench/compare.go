package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodens-dns/nodens/bench/compare"
	"github.com/nodens-dns/nodens/bench/peers"
	"github.com/nodens-dns/nodens/bench/report"
	"github.com/nodens-dns/nodens/bench/scenarios"
)

const defaultPoints = "2k,10k,50k,saturated,mixed,memory"

// compareCommand is nodens-bench compare.
func compareCommand(ctx context.Context, o output, args []string) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	var f finder
	f.flags(flags)
	which := flags.String("peers", "all", "the servers to compare, a `LIST` with commas; the first is what ratios refer to")
	points := flags.String("points", defaultPoints, "what to measure, a `LIST` with commas: rates of hits such as 10k, saturated, and names or files of scenarios, each with a rate if need be, as in mixed@20k")
	rounds := flags.Int("rounds", 3, "how often, 1 to 100; the report gives medians")
	length := flags.Duration("for", 5*time.Second, "how `long` each load lasts, 1s to 10m")
	pin := flags.String("pin", "saturated", "keep the server on one core and the generator on the others: saturated, all or none")
	spin := flags.Duration("spin", 0, "poll instead of sleeping so `long` before each query, 0 to 1ms: more punctual, more CPU")
	dir := flags.String("out", "", "the `DIR`ectory for report.html, report.json and report.txt")
	if err := parse(flags, o, args, 0); err != nil {
		return err
	}
	if *rounds < 1 || *rounds > 100 || *length < time.Second || *length > 10*time.Minute {
		return errors.New("nodens-bench compare: -rounds must be from 1 to 100 and -for from 1s to 10m")
	}
	cfg := compare.Config{Version: version, Rounds: *rounds, Spin: *spin, Say: func(text string) { fmt.Fprintln(o.progress, text) }}
	var err error
	if cfg.Points, err = pointsOf(*points, *length, *pin); err != nil {
		return err
	}
	if cfg.Candidates, cfg.Skipped, err = f.candidates(*which); err != nil {
		return err
	}
	if err := prepare(*dir); err != nil {
		return err
	}
	for _, s := range cfg.Skipped {
		cfg.Say(fmt.Sprintf("skipped %s: %s", s.Name, s.Why))
	}
	outcome, err := compare.Run(ctx, cfg)
	if outcome == nil || len(outcome.Cells) == 0 {
		return errors.Join(err, errors.New("nothing was measured"))
	}
	document := report.OfCompare("nodens-bench compare "+strings.Join(args, " "), outcome)
	return errors.Join(err, show(o, document, *dir))
}

// prepare finds out whether a report can be saved, before it is measured.
func prepare(dir string) error {
	if dir == "" {
		return nil
	}
	return report.Prepare(dir)
}

// show prints a report, and saves it if a folder is given.
func show(o output, d *report.Document, dir string) error {
	fmt.Fprintln(o.result, d.Text())
	if dir == "" {
		return nil
	}
	if err := d.Save(dir); err != nil {
		return err
	}
	fmt.Fprintf(o.result, "saved in %s\n", dir)
	return nil
}

// pointsOf reads the list of points.
func pointsOf(list string, length time.Duration, pin string) ([]compare.Point, error) {
	if !slices.Contains([]string{"saturated", "all", "none"}, pin) {
		return nil, fmt.Errorf("nodens-bench compare: -pin is %q; write saturated, all or none", pin)
	}
	var points []compare.Point
	for word := range strings.SplitSeq(list, ",") {
		p, err := pointOf(word, length)
		if err != nil {
			return nil, err
		}
		p.Pinned = pin == "all" || pin == "saturated" && p.Scenario.Load.Outstanding > 0
		if slices.ContainsFunc(points, func(o compare.Point) bool { return o.Name == p.Name }) {
			return nil, fmt.Errorf("nodens-bench compare: -points has %s twice", p.Name)
		}
		points = append(points, p)
	}
	return points, nil
}

func pointOf(word string, length time.Duration) (compare.Point, error) {
	name, rate, paced := strings.Cut(word, "@")
	if _, err := rateOf(word); err == nil {
		name, rate, paced = "warm", word, true
	}
	s, err := scenarios.Load(name)
	if err != nil {
		return compare.Point{}, err
	}
	if s.Restarts() {
		return compare.Point{}, fmt.Errorf("nodens-bench compare: %s restarts the server, so its cost cannot be compared; use run", name)
	}
	s.Stretch(length)
	if paced {
		to, err := rateOf(rate)
		if err != nil || s.Peak() == 0 {
			return compare.Point{}, fmt.Errorf("nodens-bench compare: %q: %s takes no rate %q", word, name, rate)
		}
		s.Pace(to)
	}
	return compare.Point{Name: word, Scenario: s}, nil
}

// rateOf reads a rate such as 500 or 10k.
func rateOf(text string) (float64, error) {
	digits, thousands := strings.CutSuffix(text, "k")
	rate, err := strconv.ParseFloat(digits, 64)
	if thousands {
		rate *= 1000
	}
	if err == nil && !(rate >= 1 && rate <= 1e7) {
		err = errors.New("out of range")
	}
	return rate, err
}

// finder finds the programs of servers.
type finder struct{ given map[string]string }

func (f *finder) flags(flags *flag.FlagSet) {
	f.given = map[string]string{}
	flags.Func("bin", "`NAME=FILE`: the program of a server; may be repeated", func(text string) error {
		name, path, ok := strings.Cut(text, "=")
		if _, err := peerOf(name); err != nil || !ok {
			return errors.Join(err, fmt.Errorf("%q is not NAME=FILE", text))
		}
		f.given[name] = path
		return nil
	})
}

func peerOf(name string) (peers.Peer, error) {
	var known []string
	for _, p := range peers.All() {
		if p.Name == name {
			return p, nil
		}
		known = append(known, p.Name)
	}
	return peers.Peer{}, fmt.Errorf("there is no server %q; known are %s", name, strings.Join(known, ", "))
}

// unused finds programs of servers that are not wanted.
func (f *finder) unused(wanted []peers.Peer) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		if !slices.ContainsFunc(wanted, func(p peers.Peer) bool { return p.Name == name || p.Program == name }) {
			errs = append(errs, fmt.Errorf("nodens-bench: -bin %s=... means nothing: %s is not asked for", name, name))
		}
	}
	return errors.Join(errs...)
}

// find gives a server with its program.
func (f *finder) find(p peers.Peer) (compare.Candidate, error) {
	given := f.given[p.Name]
	if given == "" {
		given = f.given[p.Program]
	}
	path, err := p.Find(given)
	if err != nil {
		return compare.Candidate{}, err
	}
	return compare.Candidate{Peer: p, Path: path, Version: p.Version(path)}, nil
}

// candidates are the servers of a list, those that are missing apart.
func (f *finder) candidates(list string) (found []compare.Candidate, missing []compare.Skip, err error) {
	wanted := peers.All()
	if list != "all" {
		wanted = nil
		for name := range strings.SplitSeq(list, ",") {
			p, err := peerOf(name)
			if err != nil {
				return nil, nil, err
			}
			if slices.ContainsFunc(wanted, func(o peers.Peer) bool { return o.Name == p.Name }) {
				return nil, nil, fmt.Errorf("nodens-bench compare: -peers has %s twice", p.Name)
			}
			wanted = append(wanted, p)
		}
	}
	if err := f.unused(wanted); err != nil {
		return nil, nil, err
	}
	for _, p := range wanted {
		c, err := f.find(p)
		if err != nil {
			missing = append(missing, compare.Skip{Name: p.Name, Why: err.Error()})
			continue
		}
		found = append(found, c)
	}
	return found, missing, nil
}
