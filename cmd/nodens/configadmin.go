package main

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxHTTP bounds the further addresses of one kind.
const maxHTTP = 8

func (f *configFile) admin() fields {
	a := &f.config.Admin
	return fields{
		"address":       f.adminAddress,
		"socket":        f.to(&a.Socket),
		"pprof":         f.word(&a.Pprof, "loopback", "all", "off"),
		"control":       f.word(&a.Control, "loopback", "all", "off"),
		"metrics":       f.httpAddresses(&a.Metrics),
		"health":        f.httpAddresses(&a.Health),
		"metricsTLS":    f.metricsTLS(&a.MetricsTLS),
		"legacyMetrics": f.flag(&a.LegacyMetrics),
	}
}

func (f *configFile) metricsTLS(t *MetricsTLSConfig) reader {
	return func(path string, n *yaml.Node) {
		f.object(path, n, fields{
			"listen":       f.httpAddresses(&t.Listen),
			"certFile":     f.to(&t.CertFile),
			"keyFile":      f.to(&t.KeyFile),
			"clientAuth":   f.word(&t.ClientAuth, clientAuths()...),
			"clientCAFile": f.to(&t.ClientCAFile),
			"minVersion":   f.word(&t.MinVersion, "1.2", "1.3"),
		}, "listen", "certFile", "keyFile")
		if strings.HasPrefix(t.ClientAuth, "verify") && t.ClientCAFile == "" {
			f.add(n.Line, path+".clientAuth is "+t.ClientAuth+" without clientCAFile, so that whoever this machine trusts could vouch for a client",
				"name the file of the clients' authorities, or write require")
		}
	}
}

// clientAuths are what clients may have to show.
func clientAuths() []string {
	return []string{"none", "request", "require", "verify-if-given", "verify"}
}

func (f *configFile) adminAddress(path string, n *yaml.Node) {
	if address, ok := f.addrPort(path, n, 0); ok {
		f.config.Admin.Address, f.adminLine = address, n.Line
	}
}

// httpAddresses reads addresses that may lack the host.
func (f *configFile) httpAddresses(to *[]string) reader {
	return func(path string, n *yaml.Node) {
		f.list(path, n, "addresses", func(path string, n *yaml.Node) {
			if n.Kind != yaml.ScalarNode || !isHTTPAddress(n.Value) {
				f.wrongKind(path, n, `an address and a port, such as "127.0.0.1:9253", or ":9253" for all addresses`)
				return
			}
			addNew(to, n.Value)
			if a, err := netip.ParseAddrPort(n.Value); err == nil {
				f.served = append(f.served, serverLine{a, path, n.Line})
			}
		})
		if len(*to) > maxHTTP {
			f.add(n.Line, fmt.Sprintf("%s has %d addresses", path, len(*to)), fmt.Sprintf("keep at most %d", maxHTTP))
		}
	}
}

// compareServed looks for addresses that two of queries, admin and the guard would have to
// share.
func (f *configFile) compareServed() {
	c := &f.config
	served := append([]serverLine{{c.Admin.Address, "admin.address", f.adminLine}}, f.served...)
	if c.Host.guarded() {
		guard := serverLine{c.Host.Metrics, "host.metrics", f.guardLine}
		for _, s := range served {
			if collide(s.address, guard.address) {
				f.add(cmp.Or(guard.line, s.line, f.hostLine), fmt.Sprintf("%s is %s, which %s has with %s", guard.path, guard.address, s.path, s.address), "choose another port")
			}
		}
		served = append(served, guard)
	}
	for _, s := range served {
		f.compareListen(s)
	}
}

func (f *configFile) compareListen(s serverLine) {
	for i, listen := range f.config.Listen {
		if !collide(listen, s.address) {
			continue
		}
		line := s.line
		if line == 0 && i < len(f.listenLines) {
			line = f.listenLines[i]
		}
		f.add(line, fmt.Sprintf("%s is %s, which the listen address %s takes", s.path, s.address, listen), "choose another port")
	}
}

// collide tells whether nobody can listen on both. Port 0 will be any.
func collide(a, b netip.AddrPort) bool {
	if a.Port() != b.Port() || a.Port() == 0 {
		return false
	}
	wild := a.Addr().IsUnspecified() || b.Addr().IsUnspecified()
	return a.Addr() == b.Addr() || wild && a.Addr().Is4() == b.Addr().Is4()
}

// isHTTPAddress says that text is [ADDRESS]:PORT.
func isHTTPAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, badHost := netip.ParseAddr(host)
	_, badPort := strconv.ParseUint(port, 10, 16)
	return badPort == nil && (host == "" || badHost == nil)
}

func addNew(list *[]string, one string) {
	for _, other := range *list {
		if other == one {
			return
		}
	}
	*list = append(*list, one)
}
