// Command nodens-bench measures DNS servers: how fast they answer, what they
// lose, and what they cost the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is what the source is called. The linker sets it:
// -ldflags '-X main.version=v1.2.3'.
var version string

func main() {
	ctx, stop := untilSignal()
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// untilSignal is a context that ends with the signals that end programs, a
// terminal's hang-up among them unless nohup ignores it: servers and folders are
// cleared away.
func untilSignal() (context.Context, context.CancelFunc) {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), ends...)
}

// command is one subcommand. run gets the arguments after its name.
type command struct {
	name, args, does string
	run              func(ctx context.Context, o output, args []string) error
}

// output is where a command writes: results, and how it goes.
type output struct{ result, progress io.Writer }

func commands() []command {
	return []command{
		{"run", "[-scenario NAME|FILE] -server NAME | -target ADDRESS | -start COMMAND", "play a scenario against a server", runCommand},
		{"compare", "[-peers LIST] [-rounds N] [-out DIR]", "measure servers against each other", compareCommand},
		{"report", "[-out DIR] FILE", "show what an earlier measurement found", reportCommand},
		{"simulate", "[-nodes LIST] [-replicas N]", "what a cluster of such daemons costs the API server", simulateCommand},
		{"scenarios", "[-show NAME]", "list the scenarios of this program, or print one", scenariosCommand},
		{"reflector", "[-addr ADDRESS] [-sockets N]", "the yardstick: send every query back with a fixed answer", reflectorCommand},
	}
}

// errUsage says that the usage, or the error of a flag, was already printed.
var errUsage = errors.New("wrong usage")

// run is the whole program. It returns the exit status: 0, 1 after an error, 2
// after a wrong command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return 2
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return 0
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return exitStatus(c.run(ctx, output{stdout, stderr}, args[1:]), stderr)
		}
	}
	fmt.Fprintf(stderr, "nodens-bench: there is no command %q\n\n", args[0])
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
	return 1
}

func usage(w io.Writer) {
	fmt.Fprint(w, "nodens-bench measures DNS servers: how fast they answer, what they lose, what they cost.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  nodens-bench %-9s %s\n  %23s%s\n", c.name, c.args, "", c.does)
	}
	fmt.Fprint(w, "\n'nodens-bench COMMAND -h' lists the flags of a command.\n")
}

// parse reads the flags of a command and allows so many other arguments.
func parse(flags *flag.FlagSet, o output, args []string, others int) error {
	flags.SetOutput(o.progress)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return errUsage
	}
	if flags.NArg() != others {
		fmt.Fprintf(o.progress, "nodens-bench %s takes %d arguments beside its flags, not %d: %q\n", flags.Name(), others, flags.NArg(), flags.Args())
		flags.Usage()
		return errUsage
	}
	return nil
}
