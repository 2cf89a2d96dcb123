package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/machine"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/peers"
	"github.com/nodens-dns/nodens/bench/play"
	"github.com/nodens-dns/nodens/bench/report"
	"github.com/nodens-dns/nodens/bench/scenarios"
)

// runFlags are the flags of nodens-bench run.
type runFlags struct {
	finder
	scenario, server, target, start, behind string
	names, services, domain, ca, out        string
	profile                                 string
	rate                                    string
	length, spin                            time.Duration
	pid                                     int
	remote, insecure, pin                   bool
}

func (f *runFlags) set(flags *flag.FlagSet) {
	f.finder.flags(flags)
	flags.StringVar(&f.scenario, "scenario", "warm", "what to play: a `NAME` that 'nodens-bench scenarios' lists, or a file")
	flags.StringVar(&f.server, "server", "", "start this server on loopback: a `NAME` that compare knows")
	flags.StringVar(&f.target, "target", "", "measure the server that runs at `ADDRESS:PORT`")
	flags.StringVar(&f.start, "start", "", "start a server with this `COMMAND`; {listen} {ip} {port} {admin} {upstreams} {endpoints} and {dir} are filled in")
	flags.StringVar(&f.behind, "behind", "", "where the servers behind the target listen: a `LIST` with commas; default: free ports, or none for -target")
	flags.IntVar(&f.pid, "pid", 0, "the process `ID` of -target, to account for its CPU time and memory")
	flags.StringVar(&f.names, "names", "", "ask the names of this `FILE`, a name and a type in each line")
	flags.StringVar(&f.services, "services", "", "ask for the services of this `FILE`, written by kubectl get services -A -o json")
	flags.StringVar(&f.domain, "domain", "cluster.local", "the cluster's `DOMAIN`, for -services")
	flags.StringVar(&f.rate, "rate", "", "queries per second at the highest, such as `10k`, in place of the scenario's")
	flags.DurationVar(&f.length, "for", 0, "how `long` the load lasts, in place of the scenario's")
	flags.StringVar(&f.profile, "profile", "", "save a CPU profile of -server nodens in this `FILE`, for go tool pprof")
	flags.BoolVar(&f.pin, "pin", false, "keep the server on one core and the generator on the others")
	flags.DurationVar(&f.spin, "spin", 0, "poll instead of sleeping so `long` before each query, 0 to 1ms")
	flags.StringVar(&f.ca, "ca", "", "the certificates to trust with transport dot: a PEM `FILE`")
	flags.BoolVar(&f.insecure, "insecure", false, "with transport dot, trust any certificate")
	flags.BoolVar(&f.remote, "allow-remote", false, "let -target be another machine; only for one that is yours")
	flags.StringVar(&f.out, "out", "", "the `DIR`ectory for report.html, report.json and report.txt")
}

// runCommand is nodens-bench run.
func runCommand(ctx context.Context, o output, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	var f runFlags
	f.set(flags)
	if err := parse(flags, o, args, 0); err != nil {
		return err
	}
	cfg, err := f.config()
	if err == nil {
		err = f.refuseIgnored(flags, cfg.Scenario)
	}
	if err != nil {
		return err
	}
	cfg.Say = func(text string) { fmt.Fprintf(o.progress, "  * %s\n", text) }
	cfg.Progress = func(p load.Progress) {
		fmt.Fprintf(o.progress, "%4.0fs %-12s %7d sent  p50 %-8v p99 %-8v lost %d, SERVFAIL %d, wrong %d in all\n", p.At.Seconds(), p.Phase,
			p.Last.Counts.Sent, p.Last.Latency.P50.Round(time.Microsecond), p.Last.Latency.P99.Round(time.Microsecond),
			p.Total.Lost, p.Total.ServFail, p.Total.Wrong)
	}
	if err := prepare(f.out); err != nil {
		return err
	}
	warnRemote(o, cfg)
	m := machine.Describe(version)
	result, err := play.Play(ctx, cfg)
	if result == nil {
		return err
	}
	if result.Cut {
		err = errors.Join(err, errors.New("nodens-bench run: cut short, so the report is of a part"))
	}
	return errors.Join(err, show(o, report.OfPlay("nodens-bench run "+strings.Join(args, " "), m, result), f.out))
}

// warnRemote shows what another machine is about to get.
func warnRemote(o output, cfg play.Config) {
	if cfg.AllowRemote && cfg.Target.IsValid() && load.CheckLocal(cfg.Target.Addr()) != nil {
		fmt.Fprintf(o.progress, "%v is not of this machine: it gets %s\n", cfg.Target, play.Amount(cfg.Scenario))
	}
}

// config is what the flags say. Everything wrong with files is found here,
// before anything is sent.
func (f *runFlags) config() (play.Config, error) {
	cfg := play.Config{PID: f.pid, AllowRemote: f.remote, Spin: f.spin, Profile: f.profile}
	var err error
	if cfg.Scenario, err = f.readScenario(); err != nil {
		return cfg, err
	}
	if err := f.readNames(&cfg); err != nil {
		return cfg, err
	}
	if err := f.chooseServer(&cfg); err != nil {
		return cfg, err
	}
	if f.behind != "" {
		for text := range strings.SplitSeq(f.behind, ",") {
			addr, err := netip.ParseAddrPort(text)
			if err != nil {
				return cfg, fmt.Errorf("nodens-bench run: -behind: %w", err)
			}
			cfg.Behind = append(cfg.Behind, addr)
		}
	}
	if cpus := peers.Usable(); f.pin && len(cpus) > 1 {
		last := len(cpus) - 1
		cfg.ServerCPUs, cfg.ClientCPUs = cpus[last:], cpus[:last]
	}
	cfg.TLS, err = f.tls()
	return cfg, err
}

// refuseIgnored finds flags that would change nothing.
func (f *runFlags) refuseIgnored(flags *flag.FlagSet, s *scenarios.Scenario) error {
	needs := map[string]string{}
	if f.target == "" {
		needs["pid"], needs["allow-remote"] = "-target", "-target"
	}
	if s.Load.Transport != load.TLS {
		needs["ca"], needs["insecure"] = "a scenario with transport dot", "a scenario with transport dot"
	}
	if f.services == "" {
		needs["domain"] = "-services"
	}
	var errs []error
	flags.Visit(func(g *flag.Flag) {
		if needs[g.Name] != "" {
			errs = append(errs, fmt.Errorf("nodens-bench run: -%s means nothing without %s", g.Name, needs[g.Name]))
		}
	})
	var wanted []peers.Peer
	if f.server != "" {
		peer, err := peerOf(f.server)
		errs, wanted = append(errs, err), []peers.Peer{peer}
	}
	return errors.Join(append(errs, f.unused(wanted))...)
}

func (f *runFlags) readScenario() (*scenarios.Scenario, error) {
	s, err := scenarios.Load(f.scenario)
	if err != nil {
		return nil, err
	}
	if f.length != 0 {
		if f.length < 100*time.Millisecond || f.length > time.Hour {
			return nil, errors.New("nodens-bench run: -for must be from 100ms to 1h")
		}
		s.Stretch(f.length)
	}
	if f.rate != "" {
		to, err := rateOf(f.rate)
		if err != nil || s.Peak() == 0 {
			return nil, fmt.Errorf("nodens-bench run: %s takes no rate %q", s.Name, f.rate)
		}
		s.Pace(to)
	}
	return s, nil
}

// readNames reads the file of names, if one is given.
func (f *runFlags) readNames(cfg *play.Config) error {
	path := f.names + f.services
	if path == "" {
		return nil
	}
	if f.names != "" && f.services != "" {
		return errors.New("nodens-bench run: give -names or -services, not both")
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("nodens-bench run: %w", err)
	}
	defer func() { _ = file.Close() }()
	if f.names != "" {
		cfg.List, err = names.ReadList(f.names, file)
		return err
	}
	n := &cfg.Scenario.Names
	n.Domain, n.ExternalShare = f.domain, -1
	if n.List, err = names.ReadServices(file, 1); err != nil {
		return fmt.Errorf("%s: %w", f.services, err)
	}
	return nil
}

// chooseServer reads which server is measured.
func (f *runFlags) chooseServer(cfg *play.Config) error {
	given := 0
	for _, text := range []string{f.server, f.target, f.start} {
		if text != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return errors.New("nodens-bench run: give one of -server, -target and -start")
	case f.target != "":
		addr, err := netip.ParseAddrPort(f.target)
		if err != nil {
			return fmt.Errorf("nodens-bench run: -target: %w", err)
		}
		cfg.Target = addr
	case f.start != "":
		cfg.Server = ownServer(f.start)
	default:
		peer, err := peerOf(f.server)
		if err != nil {
			return err
		}
		c, err := f.find(peer)
		if err != nil {
			return err
		}
		cfg.Server = &play.Server{
			Name: peer.Name, Version: c.Version, Fixed: peer.Fixed, Allocations: peer.Allocations, Profile: peer.Profile,
			Start: func(s peers.Setup, cpus []int) (*peers.Process, error) { return peer.Start(c.Path, s, cpus) },
		}
	}
	return nil
}

// ownServer is a server with its command given.
func ownServer(command string) *play.Server {
	return &play.Server{
		Name: strings.Fields(command + " x")[0],
		Start: func(s peers.Setup, cpus []int) (*peers.Process, error) {
			var upstreams []string
			for _, a := range s.Upstreams {
				upstreams = append(upstreams, a.String())
			}
			filled := strings.NewReplacer("{listen}", s.Listen.String(), "{ip}", s.Listen.Addr().String(),
				"{port}", fmt.Sprint(s.Listen.Port()), "{admin}", s.Admin.String(), "{upstreams}", strings.Join(upstreams, ","),
				"{endpoints}", s.Endpoints, "{dir}", s.Dir)
			words := strings.Fields(command)
			if len(words) == 0 {
				return nil, errors.New("nodens-bench run: -start is empty")
			}
			for i := range words {
				words[i] = filled.Replace(words[i])
			}
			return peers.Command{Path: words[0], Args: words[1:], Dir: s.Dir, CPUs: cpus}.Start()
		},
	}
}

func (f *runFlags) tls() (*tls.Config, error) {
	if f.insecure {
		return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, nil
	}
	if f.ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, fmt.Errorf("nodens-bench run: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("nodens-bench run: %s holds no certificate in PEM", f.ca)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}
