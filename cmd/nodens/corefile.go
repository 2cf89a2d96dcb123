package main

import (
	"bytes"
	"cmp"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// corefileOptions are what a Corefile does not say itself. On node-cache's command
// line they have flags.
type corefileOptions struct {
	// Path of the Corefile.
	Path string
	// LocalIPs are what the placeholder for the local addresses stands for.
	// Default none.
	LocalIPs []netip.Addr
	// Upstream is the Service that the placeholder for the cluster's servers stands
	// for, NAME or NAMESPACE/NAME. Default kube-dns.
	Upstream string
	// Namespace is where a Service without one is. Default kube-system.
	Namespace string
	// Port of zones that name none, 1 to 65535. Default 53.
	Port uint16
	// MetricsAt is what the placeholder for the metrics' address stands for.
	// Default :9253.
	MetricsAt string
	// KubeDNS is the folder of the ConfigMap kube-dns. Default none.
	KubeDNS string
	// Environ are the variables of the environment, as NAME=VALUE. The kubelet tells
	// the addresses of Services in them.
	Environ []string
	// Node is the name of the node where the environment has no NODE_NAME. Default none.
	Node string
	// IPv6 says that this machine has it: a block without bind is then served there
	// too.
	IPv6 bool
}

func (o corefileOptions) filled() corefileOptions {
	for _, text := range []struct {
		to      *string
		without string
	}{{&o.Upstream, "kube-dns"}, {&o.Namespace, podNamespace()}, {&o.MetricsAt, ":9253"}} {
		if *text.to == "" {
			*text.to = text.without
		}
	}
	if o.Port == 0 {
		o.Port = 53
	}
	return o
}

// variable is the value of a variable of the environment.
func (o *corefileOptions) variable(name string) string {
	for _, line := range slices.Backward(o.Environ) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// corefile reads a Corefile into a Config: the same that a YAML file is read
// into. What it states counts; what it says and nodens has no equivalent of
// is a note or, where leaving it out would change answers, a mistake.
type corefile struct {
	mistakes
	options corefileOptions
	kube    kubeDNS
	config  Config
	notes   []mistake
	blocks  []*corefileBlock
	servers []serverLine
	staled  bool // a serve_stale said how long
	// whenPlaced are called when it is known where the admin address is.
	whenPlaced []func()
	// starts are the words that server blocks begin with, imports followed, in their order.
	starts []caddyfile.Token
	// unset are the variables that are not set, by where they are used.
	unset map[fileLine][]string
}

// readCorefile turns a Corefile, and what the ConfigMap kube-dns says beside it,
// into a Config, or into every mistake in them.
func readCorefile(options corefileOptions, data []byte, kube kubeDNS) (Config, error) {
	c := &corefile{
		mistakes: mistakes{file: options.Path},
		options:  options.filled(),
		kube:     kube,
		config:   defaultConfig(),
		unset:    map[fileLine][]string{},
	}
	c.config.Path = options.Path
	c.config.Listen = nil
	c.config.Node.Name, c.config.Node.Zone = cmp.Or(options.variable("NODE_NAME"), options.Node), options.variable("NODE_ZONE")
	if !c.followImports(data) {
		return Config{}, c.err()
	}
	found, err := caddyfile.Parse(options.Path, bytes.NewReader(data), nil)
	if err != nil {
		c.syntax(err)
	}
	for _, one := range found {
		c.readBlock(one)
	}
	if err == nil && len(found) == 0 {
		c.add(1, "there is no server block", "write one, such as .:53 { forward . /etc/resolv.conf }")
	}
	c.finish()
	c.config.Hash = c.hash(data, found)
	if err := c.err(); err != nil {
		return Config{}, err
	}
	return c.config, nil
}

// finish puts together what the blocks say.
func (c *corefile) finish() {
	c.compareBlocks()
	c.compareAccess()
	c.mergeRoutes()
	c.stubDomains()
	c.keepSpecialNames()
	for _, server := range c.servers {
		if listen, ok := ownListen(c.config.Listen, server.address, nil); ok {
			c.addIn(server.path, server.line, fmt.Sprintf("forward names %s, where nodens itself listens (%s): queries would go round in a loop", server.address, listen),
				"name the server behind nodens")
		}
	}
	if len(c.config.Listen) > maxListen {
		c.add(1, fmt.Sprintf("there are %d addresses to listen on", len(c.config.Listen)), fmt.Sprintf("bind at most %d", maxListen))
	}
	c.adminAddress()
	c.denyUnrouted()
	c.config.complete(c.options.variable)
	for _, n := range sortedMistakes(c.notes) {
		c.config.Notes = append(c.config.Notes, n.in(c.file))
	}
}

// adminAddress is on the port of the metrics, for this machine alone: the address
// of the metrics itself serves nothing else.
func (c *corefile) adminAddress() {
	a := &c.config.Admin
	if len(a.Metrics) > 0 {
		if at, err := netip.ParseAddrPort("127.0.0.1:" + a.Metrics[0][strings.LastIndexByte(a.Metrics[0], ':')+1:]); err == nil {
			a.Address = at
		}
	}
	a.Metrics = without(a.Metrics, []string{a.Address.String()})
	for _, note := range c.whenPlaced {
		note()
	}
}

// denyUnrouted leaves out names that have a route all the same.
func (c *corefile) denyUnrouted() {
	for _, r := range c.config.Routes {
		c.config.Local.Deny = without(c.config.Local.Deny, r.Zones)
	}
	if len(c.config.Local.Deny) > maxDenied {
		c.add(1, fmt.Sprintf("except keeps %d names from being forwarded", len(c.config.Local.Deny)), fmt.Sprintf("keep at most %d", maxDenied))
	}
}

// note is about something that is left out or done in another way.
func (c *corefile) note(s *statement, what, instead string) {
	c.notes = append(c.notes, mistake{file: s.file, line: s.line, what: what, do: instead})
}

// wrong is a mistake in a statement. Where a variable is not set, that is likely why.
func (c *corefile) wrong(s *statement, what, do string) {
	if names := c.unset[fileLine{s.file, s.line}]; len(names) > 0 {
		do += fmt.Sprintf("; the variable %s is not set", orList(names))
	}
	c.addIn(s.file, s.line, what, do)
}

// mergeRoutes makes routes of the blocks. Those that differ in their zones only are
// one route, which then has one set of servers to watch.
func (c *corefile) mergeRoutes() {
	for _, b := range c.blocks {
		for _, r := range b.routes() {
			same := slices.IndexFunc(c.config.Routes, func(other RouteConfig) bool {
				other.Zones = r.Zones
				return reflect.DeepEqual(other, r)
			})
			if same >= 0 {
				c.config.Routes[same].Zones = append(c.config.Routes[same].Zones, r.Zones...)
				continue
			}
			c.config.Routes = append(c.config.Routes, r)
		}
	}
}

// specialNames are answered here unless a route has them. node-cache asks its
// servers for them.
func specialNames() []string { return []string{"localhost.", "invalid.", "onion.", "resolver.arpa."} }

// keepSpecialNames sends the names that nodens would answer by itself where all
// others go: a Corefile does not ask for anything else.
func (c *corefile) keepSpecialNames() {
	root := slices.IndexFunc(c.config.Routes, func(r RouteConfig) bool { return slices.Contains(r.Zones, ".") })
	if root < 0 {
		return
	}
	var taken []string
	for _, r := range c.config.Routes {
		taken = append(taken, r.Zones...)
	}
	r := &c.config.Routes[root]
	r.Zones = append(r.Zones, without(specialNames(), taken)...)
}

// fileLine is a line of a file.
type fileLine struct {
	file string
	line int
}

// findUnset notes the variables in words that are used and not set: nothing stands in
// their place, as in CoreDNS.
func (c *corefile) findUnset(words []caddyfile.Token) {
	pattern := variablePattern()
	for _, w := range words {
		for _, found := range pattern.FindAllStringSubmatch(w.Text, -1) {
			if name := found[1]; c.options.variable(name) == "" {
				at := fileLine{c.shown(w.File), w.Line}
				c.unset[at] = append(c.unset[at], name)
				c.note(&statement{file: at.file, line: at.line}, fmt.Sprintf("the variable %s is not set", name), "nothing stands in its place")
			}
		}
	}
}

// hash is over everything that was read: the Corefile, what it imports, and the
// ConfigMap kube-dns.
func (c *corefile) hash(data []byte, found []caddyfile.ServerBlock) string {
	h := sha512.New()
	write := func(parts ...string) {
		for _, p := range parts {
			_, _ = fmt.Fprintf(h, "%d %s", len(p), p) // a hash takes everything
		}
	}
	write(string(data))
	for _, one := range found {
		for _, name := range sortedKeys(one.Tokens) {
			for _, t := range one.Tokens[name] {
				if t.File != "" {
					write(t.File, t.Text)
				}
			}
		}
	}
	for _, key := range sortedKeys(c.kube.files) {
		write(key, c.kube.files[key])
	}
	return hex.EncodeToString(h.Sum(nil))
}
