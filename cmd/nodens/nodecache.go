package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"go.uber.org/zap"
)

// nodeCache is the daemon under node-cache's command line: a Corefile that is a
// template, and the network of the node.
type nodeCache struct {
	flags    *nodeCacheFlags
	options  corefileOptions
	imported []string // by the Corefile that was read last
}

// nodeCacheCommand is nodens with node-cache's flags in place of a command.
func nodeCacheCommand(ctx context.Context, s surroundings, args []string) error {
	f, err := parseNodeCache(args, s.stderr)
	switch {
	case err != nil:
		return err
	case f.version:
		return versionCommand(ctx, s, nil)
	case f.list:
		fmt.Fprintln(s.stdout, strings.Join(sortedKeys(allDirectives()), "\n"))
		return nil
	}
	n, err := newNodeCache(f, s.environ())
	if err != nil {
		return err
	}
	if _, err := n.corefile(); err != nil {
		return err
	}
	strong := giveUpPowers() // before it reads what others wrote
	config, bad, err := n.first()
	if err != nil {
		return err
	}
	level := zap.NewAtomicLevel()
	d := newDaemon(newLogger(config.Log, level, s.stderr), level, s.getenv)
	if strong != nil {
		d.log.Warn("this process may do more than it needs", zap.Error(strong))
	}
	n.wire(d, bad)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer otherSignals(d.log, stop)()
	return n.serve(ctx, d, config)
}

// newNodeCache turns the flags into options.
func newNodeCache(f *nodeCacheFlags, environ []string) (*nodeCache, error) {
	ips, empty, err := localIPs(f.localIP)
	if err != nil {
		return nil, err
	}
	if err := f.tls.unreadable(); err != nil {
		return nil, fmt.Errorf("-tls-enabled: %w, with -tls-cert-file, -tls-private-key-file and -tls-client-ca-file", err)
	}
	if empty {
		f.warn("-localip has a comma too much; it is passed over")
	}
	if f.kubeDNS == "" {
		if info, err := os.Stat("/etc/kube-dns"); err == nil && info.IsDir() {
			f.kubeDNS = "/etc/kube-dns"
		}
	}
	return &nodeCache{flags: f, options: corefileOptions{
		LocalIPs: ips, Upstream: f.upstream, Port: uint16(f.port), MetricsAt: f.prometheusAt,
		KubeDNS: f.kubeDNS, Environ: environ, IPv6: hasIPv6(), Node: cmp.Or(podNode(podAccount), hostName()),
	}}, nil
}

// hostName is what the kubelet calls a node unless it was told otherwise. A pod in the
// host's network has it, too.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return strings.ToLower(strings.TrimSpace(name))
}

// corefiles are where a Corefile may be, in this order: the template, the file that
// node-cache makes of it, which may be mounted instead, and the other flag for that.
func (n *nodeCache) corefiles() []string {
	var paths []string
	for _, path := range []string{n.flags.baseCorefile, n.flags.conf, n.flags.corefile} {
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// corefile is the one that is read.
func (n *nodeCache) corefile() (string, error) {
	paths := n.corefiles()
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no Corefile at %s; mount one or name it with -conf", orList(paths))
}

// files are all that the configuration is read from.
func (n *nodeCache) files() []string {
	files := append(n.corefiles(), n.imported...)
	if n.options.KubeDNS != "" {
		files = append(files, filepath.Join(n.options.KubeDNS, "stubDomains"))
	}
	return files
}

// first is the first load. A ConfigMap kube-dns with mistakes counts as an empty one:
// the node needs its DNS more than the stub domains. bad says what is wrong with it.
func (n *nodeCache) first() (c Config, bad, err error) {
	kube, bad := readKubeDNS(n.options.KubeDNS)
	c, err = n.read(kube)
	return c, bad, err
}

// load is every later one.
func (n *nodeCache) load() (Config, error) {
	kube, bad := readKubeDNS(n.options.KubeDNS)
	c, err := n.read(kube)
	if err := errors.Join(bad, err); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (n *nodeCache) read(kube kubeDNS) (Config, error) {
	options := n.options
	var err error
	if options.Path, err = n.corefile(); err != nil {
		return Config{}, err
	}
	c, err := loadCorefile(options, kube)
	if err != nil {
		return Config{}, err
	}
	n.imported = c.Imports
	n.adjust(&c)
	c.Host = n.host()
	return c, nil
}

// adjust adds what the flags say and the Corefile does not.
func (n *nodeCache) adjust(c *Config) {
	a := &c.Admin
	a.LegacyMetrics = n.flags.legacyMetrics
	if n.flags.tlsEnabled {
		a.MetricsTLS = n.flags.tls
	} else if n.flags.metricsAt != a.Address.String() {
		addNew(&a.Metrics, n.flags.metricsAt)
	}
	port := strconv.Itoa(int(n.flags.healthPort))
	served := slices.ContainsFunc(a.Health, func(at string) bool {
		_, p, _ := net.SplitHostPort(at)
		return p == port
	})
	if len(a.Health) > 0 && !served && n.flags.healthPort != 8080 {
		c.Notes = append(c.Notes, fmt.Sprintf("-health-port is %s, and the Corefile serves health checks at %s, which counts", port, strings.Join(a.Health, " ")))
	}
}

// wire tells the daemon what it cannot know from the configuration. bad is what is
// wrong with the ConfigMap kube-dns.
func (n *nodeCache) wire(d *daemon, bad error) {
	d.source = source{load: n.load, files: n.files}
	for _, warning := range n.flags.warnings {
		d.log.Warn("of the command line", zap.String("warning", warning))
	}
	if bad != nil {
		// It is counted by the first look for changes, which meets it again.
		d.log.Error("the ConfigMap kube-dns counts as empty", zap.Error(bad))
	}
}

// serve runs the daemon between the set-up of the node's network and its end.
func (n *nodeCache) serve(ctx context.Context, d *daemon, c Config) error {
	if path := n.flags.pidFile; path != "" {
		d.whenReady = func() {
			if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
				d.log.Warn("the number of the process cannot be written; correct -pidfile", zap.Error(err))
			}
		}
		defer func() { _ = os.Remove(path) }() // it may never have been written
	}
	release, err := n.settle(d, &c)
	if err != nil {
		return err
	}
	return errors.Join(d.serve(ctx, c), release())
}

// otherSignals handles those that node-cache knows beside the usual ones: QUIT stops,
// and USR2, which would replace the binary, is passed over. The function it returns
// ends that.
func otherSignals(log *zap.Logger, stop func()) (end func()) {
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	done := make(chan struct{})
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGUSR2)
	go func() {
		defer close(done)
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGQUIT {
					stop()
					continue
				}
				log.Warn("USR2 is passed over: a new binary comes with a new pod, which takes over without a loss")
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
		<-done
	}
}
