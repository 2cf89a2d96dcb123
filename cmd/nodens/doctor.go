package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// severity is how bad a finding is.
type severity int

const (
	fine severity = iota
	warning
	bad
)

func (s severity) String() string { return [...]string{"fine", "warning", "bad"}[s] }

// finding is one thing that the doctor looked at: what it saw, and what to do.
type finding struct {
	Check    string `json:"check"`
	Severity string `json:"severity"`
	Says     string `json:"says"`
	Do       string `json:"do,omitempty"`

	severity severity
}

// visit is what the doctor looks at.
type visit struct {
	config   Config
	host     *hostnet.Host
	state    hostnet.State
	root     string // before the paths of the system's files; "" outside tests
	before   bool   // an installation: nothing of ours has to run
	findings []finding

	report    *report  // of the daemon that runs; nil = none does
	firewalls []string // chains that may be one
}

func (v *visit) find(s severity, check, says, do string) {
	v.findings = append(v.findings, finding{Check: check, Severity: s.String(), Says: says, Do: do, severity: s})
}

// warned says that nothing is bad but something is not as it should be.
type warned int

func (w warned) Error() string {
	return fmt.Sprintf("nodens doctor: warnings %d", int(w))
}

// doctorCommand is nodens doctor. Its exit status is 0 when all is good, 1 when
// something is bad, 3 when there are only warnings.
func doctorCommand(ctx context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens doctor", flag.ContinueOnError)
	path := flags.String("config", "", "the configuration `FILE` that this node should serve; without it the defaults, or what node-cache's flags say")
	format := flags.String("o", "text", "the `FORMAT` of the output, text or json")
	before := flags.Bool("before", false, "look before an installation: neither guard nor daemon is missed")
	fail := flags.String("fail", "warning", "the least `SEVERITY` that makes the exit status other than 0, warning or bad")
	dropIn, args := dropInFlags(flags, args)
	if err := parse(flags, s, args); err != nil {
		return err
	}
	if *path != "" && dropIn != nil {
		return misused(flags, "it takes -config or node-cache's flags, one at a time")
	}
	if *format != "text" && *format != "json" {
		return misused(flags, fmt.Sprintf("-o is %q; write text or json", *format))
	}
	if *fail != warning.String() && *fail != bad.String() {
		return misused(flags, fmt.Sprintf("-fail is %q; write warning or bad", *fail))
	}
	v := &visit{before: *before}
	v.read(*path, dropIn, s)
	var err error
	if v.host, err = hostnet.New(hostnet.Config{}); err != nil {
		return err
	}
	defer v.host.Close()
	v.look(ctx)
	if err := v.print(s.stdout, *format); err != nil {
		return err
	}
	err = v.verdict()
	if errors.As(err, new(warned)) && *fail == bad.String() {
		return nil
	}
	return err
}

// read takes in what this node should serve: a configuration, what node-cache's flags
// say, or the defaults.
func (v *visit) read(path string, dropIn *nodeCacheFlags, s surroundings) {
	var err error
	if dropIn != nil {
		v.config, err = v.readDropIn(dropIn, s.environ())
	} else if v.config, err = hostOf(path, s.getenv); err != nil {
		v.config = defaultConfig()
	}
	if err != nil {
		v.find(bad, "configuration", err.Error(), "correct it; 'nodens check' names every mistake")
	}
	v.state = v.config.hostState()
}

// look looks at everything: the kernel, what is on the node, and who should answer. What
// the daemon that runs answers at is nobody's leftover, so it comes before that.
func (v *visit) look(ctx context.Context) {
	for _, look := range []func(){v.powers, v.buffers, v.ports} {
		look()
	}
	v.daemon(ctx)
	for _, look := range []func(){v.found, v.owners, v.fallbackFile, v.guard, v.resolvers} {
		look()
	}
	for _, look := range []func(context.Context){v.others, v.api, v.servers, v.outside} {
		look(ctx)
	}
}

func (v *visit) print(w io.Writer, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(v.findings)
	}
	for _, f := range v.findings {
		fmt.Fprintf(w, "%-8s %s: %s\n", f.Severity, f.Check, f.Says)
		if f.Do != "" {
			fmt.Fprintf(w, "%-8s   %s\n", "", f.Do)
		}
	}
	return nil
}

// verdict is nil when all is good.
func (v *visit) verdict() error {
	counts := map[severity]int{}
	for _, f := range v.findings {
		counts[f.severity]++
	}
	switch {
	case counts[bad] > 0:
		return fmt.Errorf("nodens doctor: bad %d, warnings %d", counts[bad], counts[warning])
	case counts[warning] > 0:
		return warned(counts[warning])
	}
	return nil
}

// exitOf is the exit status that an error asks for.
func exitOf(err error) int {
	var w warned
	if errors.As(err, &w) {
		return 3
	}
	return 1
}
