package main

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// directive takes over what a statement of a block says.
type directive func(c *corefile, b *corefileBlock, s *statement)

// directives are those of a server block that have an equivalent. nil: what it asks
// for is always so, or was read before.
func directives() map[string]directive {
	return map[string]directive{
		"bind":        nil, // read by corefile.bind
		"errors":      readErrors,
		"loop":        nil, // found, and the server left out
		"reload":      nil, // at once
		"cancel":      nil,
		"bufsize":     readBufsize,
		"cache":       readCache,
		"debug":       func(c *corefile, _ *corefileBlock, _ *statement) { c.config.Log.Level = "debug" },
		"forward":     readForward,
		"health":      readHealth,
		"dnstap":      readDnstap,
		"loadbalance": readLoadBalance,
		"log":         readLog,
		"minimal":     readMinimal,
		"multisocket": readMultisocket,
		"pprof":       readPprof,
		"prometheus":  readPrometheus,
		"ready":       readReady,
		"timeouts":    readTimeouts,
	}
}

// aside are directives that have nothing to do with queries: CoreDNS refuses those for
// a block that has no others.
func aside() []string {
	return []string{"bind", "debug", "health", "multisocket", "pprof", "ready", "reload", "timeouts"}
}

// leftOut are directives without an equivalent that change no answer, with what to
// do without them.
func leftOut() map[string]string {
	return map[string]string{
		"trace": "there are metrics for the time of servers and replies",
		"nsid":  "replies name no server",
	}
}

// refused are directives that would change answers, so that a Corefile with one of
// them cannot be taken over.
func refused() []string {
	return []string{
		"alternate", "any", "auto", "autopath", "azure", "chaos", "clouddns", "dnssec", "erratic", "etcd", "file",
		"geoip", "grpc", "header", "k8s_external", "kubernetes", "local", "metadata", "quic", "root", "route53", "rrl",
		"secondary", "sign", "tls", "transfer", "tsig", "view", "whoami",
	}
}

func (c *corefile) readDirective(b *corefileBlock, s *statement) {
	known := allDirectives()
	read, ok := known[s.name()]
	instead, without := leftOut()[s.name()]
	if !c.check(s, directiveArguments()[s.name()]) {
		return
	}
	switch {
	case read != nil:
		read(c, b, s)
	case ok:
	case without:
		c.note(s, s.name()+" has no equivalent", instead)
	case slices.Contains(refused(), s.name()):
		c.wrong(s, s.name()+" has no equivalent, and answers would differ without it", "remove it, or leave its zones to another server")
	default:
		names := slices.Concat(sortedKeys(known), slices.Collect(maps.Keys(leftOut())))
		do := "remove it"
		if near := nearest(s.name(), names); near != "" {
			do = fmt.Sprintf("did you mean %q?", near)
		}
		c.wrong(s, fmt.Sprintf("there is no directive %q", cut(s.name())), do)
	}
}

// unknownOption is a mistake in the block of a directive.
func (c *corefile) unknownOption(s *statement, of string, known ...string) {
	do := "remove it; known here: " + strings.Join(known, ", ")
	if near := nearest(s.name(), known); near != "" {
		do = fmt.Sprintf("did you mean %q?", near)
	}
	c.wrong(s, fmt.Sprintf("%s has no option %q", of, cut(s.name())), do)
}

// httpAddress reads the only argument of a directive that serves HTTP.
func (c *corefile) httpAddress(s *statement, otherwise string) (string, bool) {
	args := s.texts()
	if len(args) == 0 {
		return otherwise, true
	}
	at := args[0]
	if port, ok := strings.CutPrefix(at, "localhost:"); ok {
		at = "127.0.0.1:" + port
	}
	if len(args) > 1 || !isHTTPAddress(at) {
		c.wrong(s, fmt.Sprintf("%s is to be at %q", s.name(), cut(strings.Join(args, " "))), "write an IP address and a port, such as 127.0.0.1:9253, or :9253 for all addresses")
		return "", false
	}
	return at, true
}

func readPrometheus(c *corefile, _ *corefileBlock, s *statement) {
	if at, ok := c.httpAddress(s, "127.0.0.1:9153"); ok {
		addNew(&c.config.Admin.Metrics, at)
	}
	for i := range s.block {
		switch o := &s.block[i]; o.name() {
		case "runtime_metrics":
		case "tls":
			c.wrong(o, "tls of prometheus has no equivalent here", "the flags -tls-enabled and -tls-cert-file serve the second address of the metrics over TLS")
		default:
			c.unknownOption(o, "prometheus", "runtime_metrics")
		}
	}
}

func readHealth(c *corefile, _ *corefileBlock, s *statement) {
	if at, ok := c.httpAddress(s, ":8080"); ok {
		addNew(&c.config.Admin.Health, at)
	}
	for i := range s.block {
		o := &s.block[i]
		if o.name() != "lameduck" || len(o.args()) != 1 {
			c.unknownOption(o, "health", "lameduck")
			continue
		}
		d, err := time.ParseDuration(o.args()[0].text)
		if err != nil || d < 0 {
			c.wrong(o, fmt.Sprintf("lameduck is %q, which is no duration", cut(o.args()[0].text)), "write one such as 5s")
			continue
		}
		c.config.StopDelay = max(c.config.StopDelay, min(d, time.Minute))
	}
}

func readReady(c *corefile, _ *corefileBlock, s *statement) {
	if at, ok := c.httpAddress(s, ":8181"); ok {
		addNew(&c.config.Admin.Health, at)
	}
}

func readPprof(c *corefile, _ *corefileBlock, s *statement) {
	if at, ok := c.httpAddress(s, "127.0.0.1:6053"); ok {
		c.whenPlaced = append(c.whenPlaced, func() {
			c.note(s, fmt.Sprintf("pprof is to be at %s", at), fmt.Sprintf("profiles are at http://%s/debug/pprof/, for this machine", c.config.Admin.Address))
		})
	}
}

func readBufsize(c *corefile, _ *corefileBlock, s *statement) {
	n := 1232
	if args := s.texts(); len(args) == 1 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n < 512 || n > 4096 {
			c.wrong(s, fmt.Sprintf("bufsize is %q", cut(args[0])), "choose from 512 to 4096")
			return
		}
	}
	c.config.Limits.UDPReplySize = n
}

func readLoadBalance(c *corefile, _ *corefileBlock, s *statement) {
	for i := range s.block {
		if s.block[i].name() != "prefer" && s.block[i].name() != "reload" {
			c.unknownOption(&s.block[i], "loadbalance", "prefer", "reload")
		}
	}
	if args := s.texts(); len(args) > 0 && args[0] != "round_robin" || len(s.block) > 0 {
		c.note(s, fmt.Sprintf("loadbalance %s has no equivalent", strings.Join(args, " ")), "the addresses of an answer take turns")
	}
	c.config.Cache.Rotate = true
}

func readMinimal(_ *corefile, b *corefileBlock, _ *statement) {
	b.apply = append(b.apply, func(r *RouteConfig) { r.Cache.Minimal = true })
}

func readMultisocket(c *corefile, _ *corefileBlock, s *statement) {
	n := 4
	if args := s.texts(); len(args) == 1 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n < 1 || n > 1024 {
			c.wrong(s, fmt.Sprintf("multisocket is %q", cut(args[0])), "choose from 1 to 8")
			return
		}
	}
	c.config.Limits.UDPSockets = min(n, 8)
	c.config.Limits.CPUs = max(c.config.Limits.CPUs, c.config.Limits.UDPSockets)
}

// readLog writes queries to the log: those of the block, and as one bound holds for the
// whole daemon, of all blocks once a second one asks for it.
func readLog(c *corefile, b *corefileBlock, s *statement) {
	c.checkLog(s)
	q := &c.config.QueryLog
	below := ""
	if args := s.texts(); len(b.zones) == 1 && b.zones[0] != "." {
		below = b.zones[0]
	} else if len(args) > 0 && args[0] != "." {
		if zones, why := zonesOf(args[0]); why == "" {
			below = zones[0]
		}
	}
	if q.Every != 0 && q.Below != below {
		below = ""
	}
	q.Every, q.Below = 1, below
	c.note(s, "log has a format and a bound of its own", fmt.Sprintf("at most %d queries a second are written", q.PerSecond))
}

func readDnstap(c *corefile, _ *corefileBlock, s *statement) {
	args := s.texts()
	if len(args) == 0 {
		c.wrong(s, "dnstap names no collector", "write the path of a socket, or tcp://ADDRESS:PORT")
		return
	}
	at := strings.TrimPrefix(strings.TrimPrefix(args[0], "unix://"), "tcp://")
	if _, err := netip.ParseAddrPort(at); err != nil && !filepath.IsAbs(at) {
		c.wrong(s, fmt.Sprintf("dnstap names %q, which is neither a path nor tcp://ADDRESS:PORT", cut(args[0])), "write such as /run/dnstap.sock or tcp://192.0.2.1:6000")
		return
	}
	c.config.Dnstap.Address = at
	if o := s.option("identity"); o != nil && len(o.args()) == 1 {
		c.config.Dnstap.Identity = o.args()[0].text
	}
}

func readTimeouts(c *corefile, _ *corefileBlock, s *statement) {
	if len(s.block) == 0 {
		c.wrong(s, "timeouts says nothing", "write read, write or idle into its braces, or remove it")
	}
	for i := range s.block {
		o := &s.block[i]
		switch o.name() {
		case "maxtcpqueries":
			continue
		case "read", "write":
			c.check(o, argumentRule{"a duration from 1s to 24h", isTimeout})
			continue // a client that sends or takes nothing is cut off after the time for idle ones
		case "idle":
		default:
			c.unknownOption(o, "timeouts", "read", "write", "idle")
			continue
		}
		text := strings.Join(o.texts(), " ")
		if _, err := strconv.Atoi(text); err == nil {
			text += "s"
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			c.wrong(o, fmt.Sprintf("idle is %q", cut(text)), "choose from 1s to 10m")
			continue
		}
		c.config.Limits.TCPIdle = min(d, 10*time.Minute)
	}
}
