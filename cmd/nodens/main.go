package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// sameSignal is the time in which a second signal counts as the first.
const sameSignal = 500 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// The first signal asks for a clean stop. Then the signals get their old
	// meaning back, so that a second one kills at once; but some senders, such
	// as timeout(1), send the first one twice.
	context.AfterFunc(ctx, func() {
		time.Sleep(sameSignal)
		stop()
	})
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// surroundings are what a command sees of the world outside.
type surroundings struct {
	getenv         func(string) string
	environ        func() []string // NAME=VALUE
	stdout, stderr io.Writer
}

// command is one subcommand. run gets the arguments after its name.
type command struct {
	name, args, does string
	run              func(ctx context.Context, s surroundings, args []string) error
}

func commands() []command {
	return []command{
		{"serve", "-config FILE", "run the daemon", serveCommand},
		{"guard", "-config FILE [-teardown]", "set up the node around the daemon and watch over it", guardCommand},
		{"check", "-config FILE | -corefile FILE | -sample", "check a configuration, or print one to start from", checkCommand},
		{"convert", "-corefile FILE", "print the configuration that a Corefile comes to", convertCommand},
		{"probe", "live | ready [-socket PATH]", "ask a daemon on this host how it is, for the kubelet", probeCommand},
		{"doctor", "[-config FILE | -conf FILE ...] [-before]", "look at this node and say what to do", doctorCommand},
		{"cleanup", "[-config FILE] [-node-cache] [-force]", "remove link and rules from this node, ours and node-cache's", cleanupCommand},
		{"status", "[-address HOST:PORT] [-o json]", "show the state of a running daemon", statusCommand},
		{"explain", "[-o json] NAME [TYPE]", "show what becomes of a question: memory, route, servers", explainCommand},
		{"flush", "NAME | .SUFFIX | -all", "drop answers from memory", flushCommand},
		{"tail", "[-o json] [FILTER]", "watch queries as they are answered", tailCommand},
		{"demo", "[-for DURATION] [-rate QPS] [-keep]", "watch it at work on loopback, with servers that fail", demoCommand},
		{"version", "", "print the version", versionCommand},
	}
}

// errUsage says that the usage, or the error of a flag, was already printed.
var errUsage = errors.New("wrong usage")

// run is the whole program. It returns the exit status: 0, 1 after an error,
// 2 after a wrong command line, 3 after warnings of the doctor.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	s := surroundings{getenv: getenv, environ: os.Environ, stdout: stdout, stderr: stderr}
	if len(args) == 0 {
		usage(stderr)
		return 2
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return 0
	}
	if strings.HasPrefix(args[0], "-") {
		return exitStatus(nodeCacheCommand(ctx, s, args), stderr)
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return exitStatus(c.run(ctx, s, args[1:]), stderr)
		}
	}
	fmt.Fprintf(stderr, "nodens: there is no command %q", args[0])
	if near := nearest(args[0], commandNames()); near != "" {
		fmt.Fprintf(stderr, "; did you mean %q?", near)
	}
	fmt.Fprint(stderr, "\n\n")
	usage(stderr)
	return 2
}

func exitStatus(err error, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	fmt.Fprintf(stderr, "%v\n", err)
	return exitOf(err)
}

func usage(w io.Writer) {
	fmt.Fprint(w, "nodens answers the DNS queries of a node from its cache, and asks the nearest server for the rest.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  nodens %-8s %-42s %s\n", c.name, c.args, c.does)
	}
	fmt.Fprintf(w, "  nodens %-51s %s\n", "-localip ADDRESSES -conf FILE ...", "run the daemon with node-cache's flags and a Corefile")
	fmt.Fprint(w, "\n'nodens COMMAND -h' lists the flags of a command, 'nodens -localip= -h' those of node-cache.\n")
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// parse reads the flags of a command that takes no other arguments.
func parse(flags *flag.FlagSet, s surroundings, args []string) error {
	_, err := parseWith(flags, s, args, 0)
	return err
}

// parseWith reads the flags of a command, and up to so many other arguments
// before, between and behind them.
func parseWith(flags *flag.FlagSet, s surroundings, args []string, others int) (words []string, err error) {
	flags.SetOutput(s.stderr)
	for {
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, errUsage
		}
		switch {
		case flags.NArg() == 0:
			return words, nil
		case len(words) == others && others == 0:
			return nil, misused(flags, fmt.Sprintf("%q is too much; it takes flags only", flags.Arg(0)))
		case len(words) == others:
			return nil, misused(flags, fmt.Sprintf("%q is too much", flags.Arg(0)))
		}
		words, args = append(words, flags.Arg(0)), flags.Args()[1:]
	}
}

// misused prints what is wrong with a command line, and what would be right.
func misused(flags *flag.FlagSet, what string) error {
	fmt.Fprintf(flags.Output(), "%s: %s\n", flags.Name(), what)
	flags.Usage()
	return errUsage
}
