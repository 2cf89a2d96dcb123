package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
	"github.com/nodens-dns/nodens/forwarder/listener"
)

// dnsPort is where node-cache serves.
const dnsPort = 53

// cleanupCommand is nodens cleanup.
func cleanupCommand(_ context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens cleanup", flag.ContinueOnError)
	path := flags.String("config", "", "the configuration `FILE` of what is removed; without it the defaults")
	others := flags.Bool("node-cache", false, "remove only what node-cache left: beside a guard, but not beside node-cache")
	force := flags.Bool("force", false, "also while a guard runs, which sets it all up again, and what a node-cache that serves works with")
	if err := parse(flags, s, args); err != nil {
		return err
	}
	c, err := hostOf(*path, s.getenv)
	if err != nil {
		return err
	}
	host, err := hostnet.New(hostnet.Config{})
	if err != nil {
		return err
	}
	defer host.Close()
	if !*force {
		if err := mayClean(host, &c, *others); err != nil {
			return err
		}
	}
	var report hostnet.Report
	if *others {
		report, err = host.RemoveLeftovers(c.hostState())
	} else {
		report, err = host.Cleanup(c.hostState(), livesBeside(&c, *force))
		files, fileErr := removeFiles(c.Host)
		report.Changed, err = append(report.Changed, files...), errors.Join(err, fileErr)
	}
	tellCleanup(s.stdout, report)
	if len(report.Changed) == 0 && err == nil {
		fmt.Fprintln(s.stdout, "there was nothing to remove")
	}
	return err
}

// livesBeside tells where somebody else serves, whose link and rules are not ours to take.
func livesBeside(c *Config, force bool) func(netip.Addr) bool {
	if force {
		return nil
	}
	return func(a netip.Addr) bool { return listener.ServedByOthers(netip.AddrPortFrom(a, dnsPort), c.Host.UID) }
}

// removeFiles removes those of a guard, and says which.
func removeFiles(host HostConfig) (changed []string, err error) {
	kept, err := removeFile(host.Endpoints)
	locked, lockErr := guard.RemoveLock(host.Lock)
	for path, removed := range map[string]bool{host.Endpoints: kept, host.Lock: locked} {
		if removed {
			changed = append(changed, fmt.Sprintf("file %s: removed", path))
		}
	}
	slices.Sort(changed)
	return changed, errors.Join(err, lockErr)
}

func tellCleanup(w io.Writer, report hostnet.Report) {
	for _, line := range report.Changed {
		fmt.Fprintln(w, line)
	}
	for _, note := range report.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

// mayClean says whose work would be undone.
func mayClean(host *hostnet.Host, c *Config, others bool) error {
	if !others {
		if pid, held := guard.Holder(c.Host.Lock); held {
			return fmt.Errorf("a guard runs here (process %d) and would set it all up again: stop it first, or use -force", pid)
		}
		return nil
	}
	found, err := host.Read(hostnet.State{Link: hostnet.NodeCacheLink})
	if err != nil {
		return err
	}
	for _, a := range found.Link.Addrs {
		if listener.ServedByOthers(netip.AddrPortFrom(a, dnsPort), c.Host.UID) {
			return fmt.Errorf("somebody still serves %v on link %s: stop node-cache on this node first, or use -force", a, hostnet.NodeCacheLink)
		}
	}
	return nil
}

// hostOf is a configuration for what is done to the host; the defaults without a path.
func hostOf(path string, getenv func(string) string) (Config, error) {
	if path == "" {
		return defaultConfig(), nil
	}
	return loadConfig(path, getenv)
}

func removeFile(path string) (removed bool, err error) {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return true, nil
}
