package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nodeCacheFlags are the flags of node-cache, and those that it has from CoreDNS.
type nodeCacheFlags struct {
	localIP        string
	setupInterface bool
	interfaceName  string
	syncInterval   syncInterval
	metricsAt      string
	setupIPTables  bool
	baseCorefile   string
	corefile       string
	kubeDNS        string
	upstream       string
	healthPort     uint
	skipTeardown   bool
	reloadBySignal bool

	prometheusAt string
	tlsEnabled   bool
	tls          MetricsTLSConfig
	tlsAuth      string
	tlsVersion   string

	conf    string
	pidFile string
	list    bool
	version bool
	quiet   bool
	port    uint

	legacyMetrics bool

	// warnings are what the command line says in vain.
	warnings []string
}

// syncInterval is the time between two looks at the host's network. node-cache
// multiplies a duration by a second, so that 60ns were a minute there and 60s
// 147 years.
type syncInterval struct {
	time.Duration
	odd string // how it was written, when that is nothing to go on writing
}

// nanoseconds below this were meant as seconds.
const bareNumber = time.Microsecond

func (i *syncInterval) String() string { return i.Duration.String() }

func (i *syncInterval) Set(text string) error {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		i.Duration, i.odd = time.Duration(n)*time.Second, ""
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("write a number of seconds, or a duration such as 60s")
	}
	if i.Duration, i.odd = d, ""; d > 0 && d < bareNumber {
		i.Duration, i.odd = time.Duration(d.Nanoseconds())*time.Second, text
	}
	return nil
}

func nodeCacheSet(f *nodeCacheFlags) *flag.FlagSet {
	set := flag.NewFlagSet("nodens", flag.ContinueOnError)
	f.declare(set)
	return set
}

// declare adds the flags to a set, each with node-cache's default.
func (f *nodeCacheFlags) declare(set *flag.FlagSet) {
	f.syncInterval.Duration = time.Minute
	set.StringVar(&f.localIP, "localip", "", "`ADDRESSES` to put on the interface, with commas between; they replace __PILLAR__LOCAL__DNS__")
	set.BoolVar(&f.setupInterface, "setupinterface", true, "keep an interface with the addresses")
	set.StringVar(&f.interfaceName, "interfacename", "nodelocaldns", "its `NAME`")
	set.Var(&f.syncInterval, "syncinterval", "`TIME` between two looks at interface and rules, beside those that the kernel asks for")
	set.StringVar(&f.metricsAt, "metrics-listen-address", "0.0.0.0:9353", "second `ADDRESS` of the metrics")
	set.BoolVar(&f.setupIPTables, "setupiptables", true, "keep the rules that bring queries here (in nftables)")
	set.StringVar(&f.baseCorefile, "basecorefile", "/etc/coredns/Corefile.base", "the Corefile: a `FILE` with placeholders")
	set.StringVar(&f.corefile, "corefile", "/etc/Corefile", "the Corefile if neither of the others exists: a `FILE`")
	set.StringVar(&f.kubeDNS, "kubednscm", "", "the `FOLDER` of the ConfigMap kube-dns; /etc/kube-dns if that exists")
	set.StringVar(&f.upstream, "upstreamsvc", "kube-dns", "the Service of the cluster's servers: `NAME` or NAMESPACE/NAME")
	set.UintVar(&f.healthPort, "health-port", 8080, "`PORT` of health checks; what the Corefile says counts")
	set.BoolVar(&f.skipTeardown, "skipteardown", false, "leave interface and rules when stopping")
	set.BoolVar(&f.reloadBySignal, "reloadwithsignal", false, "no effect: a change is always taken over at once")
	set.StringVar(&f.prometheusAt, "prometheus-listen-address", ":9253", "`ADDRESS` that replaces __PROMETHEUS__ENDPOINT__")
	set.BoolVar(&f.tlsEnabled, "tls-enabled", false, "serve the second address of the metrics over TLS")
	set.StringVar(&f.tls.CertFile, "tls-cert-file", "/etc/ssl/tls.crt", "its certificate: a `FILE`")
	set.StringVar(&f.tls.KeyFile, "tls-private-key-file", "/etc/ssl/tls.key", "its key: a `FILE`")
	set.StringVar(&f.tlsAuth, "tls-client-auth-type", "NoClientCert", "what clients have to show: a `NAME` of Go's crypto/tls")
	set.StringVar(&f.tls.ClientCAFile, "tls-client-ca-file", "", "the authorities of clients: a `FILE`")
	set.StringVar(&f.tlsVersion, "tls-min-version", "TLS13", "the oldest `VERSION`: TLS12 or TLS13")
	set.StringVar(&f.conf, "conf", "", "the Corefile where -basecorefile does not exist: a `FILE`")
	set.StringVar(&f.pidFile, "pidfile", "", "a `FILE` for the number of the process, written when queries are answered")
	set.BoolVar(&f.list, "plugins", false, "list the directives of a Corefile that are known")
	set.BoolVar(&f.version, "version", false, "print the version")
	set.BoolVar(&f.quiet, "quiet", false, "no effect")
	set.UintVar(&f.port, "dns.port", 53, "the `PORT` of zones that name none, and of the rules")
	set.UintVar(&f.port, "p", 53, "the same: a `PORT`")
	set.BoolVar(&f.legacyMetrics, "legacy-metrics", true, "serve the names that CoreDNS had before version 1.11 too")
}

// parseNodeCache reads node-cache's command line. What it does not know is a
// warning: a flag that went must not take a node's DNS with it.
func parseNodeCache(args []string, stderr io.Writer) (*nodeCacheFlags, error) {
	f := &nodeCacheFlags{}
	set := nodeCacheSet(f)
	set.SetOutput(stderr)
	known := f.known(set, args)
	if err := set.Parse(known); errors.Is(err, flag.ErrHelp) {
		return nil, err
	} else if err != nil {
		return nil, errUsage
	}
	return f, f.translate()
}

// known leaves out the arguments that set does not know, with a warning for each,
// and puts the value of a switch behind its sign, where the flag package wants it.
func (f *nodeCacheFlags) known(set *flag.FlagSet, args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		found := set.Lookup(name)
		next := i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			f.warn("%q is too much, and left out; flags only are read", args[i])
		case name == "h" || name == "help":
			kept = append(kept, args[i])
		case found == nil:
			f.warn("there is no flag -%s; it is left out", name)
			if !hasValue && next {
				i++
			}
		case hasValue:
			kept = append(kept, "-"+name+"="+value)
		case isSwitch(found) && next && slices.Contains([]string{"true", "false"}, args[i+1]):
			f.warn("-%s %s is read as -%s=%s", name, args[i+1], name, args[i+1])
			i++
			kept = append(kept, "-"+name+"="+args[i])
		case isSwitch(found) || !next:
			kept = append(kept, args[i])
		default:
			i++
			kept = append(kept, "-"+name+"="+args[i])
		}
	}
	return kept
}

func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func (f *nodeCacheFlags) warn(format string, a ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, a...))
}

// translate brings what the flags say into the words of the configuration.
func (f *nodeCacheFlags) translate() error {
	if f.syncInterval.odd != "" {
		f.warn("-syncinterval %s is read as %s, as node-cache does; write %d", f.syncInterval.odd, shortDuration(f.syncInterval.Duration), int(f.syncInterval.Seconds()))
	}
	if f.port == 0 || f.port > 65535 || f.healthPort > 65535 {
		return errors.New("-dns.port and -health-port are numbers from 1 to 65535")
	}
	for flag, text := range map[string]string{"metrics-listen-address": f.metricsAt, "prometheus-listen-address": f.prometheusAt} {
		if !isHTTPAddress(text) {
			return fmt.Errorf("-%s is %q; write an address and a port, such as 0.0.0.0:9353", flag, cut(text))
		}
	}
	if f.setupIPTables && !f.setupInterface && f.localIP != "" {
		f.warn("-setupiptables makes no rules beside -setupinterface=false: they go with the interface; write -setupiptables=false too, or leave out -setupinterface=false")
	}
	if f.tlsEnabled {
		return f.translateTLS()
	}
	return nil
}

func (f *nodeCacheFlags) translateTLS() error {
	f.tls.Listen = []string{f.metricsAt}
	auth, ok := map[string]string{
		"NoClientCert": "none", "RequestClientCert": "request", "RequireAnyClientCert": "require",
		"VerifyClientCertIfGiven": "verify-if-given", "RequireAndVerifyClientCert": "verify",
	}[f.tlsAuth]
	if !ok {
		return fmt.Errorf("-tls-client-auth-type is %q; write NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert", cut(f.tlsAuth))
	}
	f.tls.ClientAuth = auth
	switch strings.TrimPrefix(f.tlsVersion, "Version") {
	case "TLS13":
		f.tls.MinVersion = "1.3"
	case "TLS12":
		f.tls.MinVersion = "1.2"
	case "TLS10", "TLS11":
		f.tls.MinVersion = "1.2"
		f.warn("-tls-min-version %s is too old to be served; 1.2 is the oldest", f.tlsVersion)
	default:
		return fmt.Errorf("-tls-min-version is %q; write TLS12 or TLS13", cut(f.tlsVersion))
	}
	return nil
}
