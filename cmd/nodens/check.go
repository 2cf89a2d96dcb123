package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"strings"
)

//go:embed sample.yaml
var sampleConfig string

// checkCommand prints every mistake of a file, or one line that says what it
// sets up.
func checkCommand(_ context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens check", flag.ContinueOnError)
	path := flags.String("config", "", "the configuration `FILE` to check")
	corefile := addCorefileFlags(flags)
	sample := flags.Bool("sample", false, "print a commented configuration to start from")
	if err := parse(flags, s, args); err != nil {
		return err
	}
	if *sample {
		_, err := io.WriteString(s.stdout, sampleConfig)
		return err
	}
	switch {
	case *path == "" && corefile.options.Path == "":
		return misused(flags, "-config FILE or -corefile FILE is missing")
	case *path != "" && corefile.options.Path != "":
		return misused(flags, "it takes -config or -corefile, one at a time")
	}
	config, err := corefile.orConfig(*path, s)
	if err == nil {
		err = config.Admin.MetricsTLS.unreadable()
	}
	if err != nil {
		return err
	}
	for _, remark := range append(config.Notes, remarks(&config)...) {
		fmt.Fprintf(s.stderr, "note: %s\n", remark)
	}
	fmt.Fprintln(s.stdout, summary(config))
	return nil
}

// orConfig reads the Corefile, or the file at path.
func (f *corefileFlags) orConfig(path string, s surroundings) (Config, error) {
	if path != "" {
		return loadConfig(path, s.getenv)
	}
	return f.load(s.environ())
}

func needConfig(flags *flag.FlagSet) error {
	return misused(flags, "-config FILE is missing")
}

// summary is a configuration in one line.
func summary(c Config) string {
	var routes []string
	for _, r := range c.Routes {
		routes = append(routes, strings.Join(r.Zones, " ")+" -> "+r.source())
	}
	var listen []string
	for _, l := range c.Listen {
		listen = append(listen, l.String())
	}
	return fmt.Sprintf("%s: good; listens on %s, cache %s, %s",
		c.Path, strings.Join(listen, " "), shortBytes(c.Cache.Size), strings.Join(routes, ", "))
}

// source says where the servers of a route come from.
func (r RouteConfig) source() string {
	switch {
	case r.Topology.File != "":
		return "endpoints in " + r.Topology.File
	case r.fromAPI():
		return "endpoints of " + r.Topology.serviceName()
	case r.ResolvConf != "":
		return "nameservers in " + r.ResolvConf
	case r.RulesOnly:
		return "its rules alone"
	}
	var servers []string
	for _, s := range r.Servers {
		text := s.String()
		if name := r.TLSNames[s]; name != "" {
			text = "tls://" + text + "#" + name
		}
		servers = append(servers, text)
	}
	return strings.Join(servers, " ")
}
