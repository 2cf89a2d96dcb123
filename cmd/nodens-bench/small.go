package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/nodens-dns/nodens/bench/reflector"
	"github.com/nodens-dns/nodens/bench/report"
	"github.com/nodens-dns/nodens/bench/scenarios"
)

// reportCommand is nodens-bench report.
func reportCommand(_ context.Context, o output, args []string) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	dir := flags.String("out", "", "the `DIR`ectory for report.html, report.json and report.txt; without it only the table is printed")
	if err := parse(flags, o, args, 1); err != nil {
		return err
	}
	document, err := report.Read(flags.Arg(0))
	if err != nil {
		return err
	}
	return show(o, document, *dir)
}

// scenariosCommand is nodens-bench scenarios.
func scenariosCommand(_ context.Context, o output, args []string) error {
	flags := flag.NewFlagSet("scenarios", flag.ContinueOnError)
	name := flags.String("show", "", "print the file of the scenario `NAME`, to start an own one from")
	if err := parse(flags, o, args, 0); err != nil {
		return err
	}
	if *name != "" {
		_, text, err := scenarios.Text(*name)
		fmt.Fprintf(o.result, "%s", text)
		return err
	}
	for _, name := range scenarios.Names() {
		s, err := scenarios.Load(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(o.result, "%-10s %4v  %s\n", name, s.Length(), s.Does)
	}
	return nil
}

// reflectorCommand is nodens-bench reflector.
func reflectorCommand(ctx context.Context, o output, args []string) error {
	flags := flag.NewFlagSet("reflector", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:5300", "`ADDRESS` and port to listen on")
	sockets := flags.Int("sockets", 1, "number of sockets that share the port, 1 to 64")
	if err := parse(flags, o, args, 0); err != nil {
		return err
	}
	return reflector.Run(ctx, *addr, *sockets)
}
