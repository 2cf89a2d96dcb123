package main

import (
	"fmt"
	"net/netip"
	"strings"
)

// targets are who a forward names.
type targets struct {
	servers []netip.AddrPort
	// overTLS are those that are asked over TLS, with the name in their certificate
	// if there is one.
	overTLS map[netip.AddrPort]string
	files   []string
	places  []int // how many servers stand before each file
	// service is NAMESPACE/NAME when they are the endpoints of a Service, whose own
	// address is clusterIP, if that is known.
	service   string
	clusterIP netip.AddrPort
	// note says why they are plain servers.
	note string
}

// targets reads the servers of a forward. They are the endpoints of a Service when
// the placeholder for the cluster's servers, service:NAME, or the address of a
// Service in the environment stands alone.
func (c *corefile) targets(s *statement, words []word) (t targets) {
	services := 0
	for _, w := range words {
		name, named := strings.CutPrefix(w.text, "service:")
		switch {
		case w.text == clusterPlaceholder:
			name = c.options.Upstream
		case !named:
			c.addTarget(s, &t, w.text)
			continue
		}
		if services++; !isServiceName(name) {
			c.wrong(s, fmt.Sprintf("forward names the Service %q, which is no name of one", cut(name)), "write [NAMESPACE/]NAME, in lower case")
		}
		t.service, t.clusterIP = c.named(name)
	}
	switch {
	case services == 0:
		c.recognise(&t)
	case services > 1 || len(t.servers)+len(t.files) > 0:
		c.wrong(s, "forward names a Service beside other servers", "give it a forward of its own, for its own zone")
	}
	return t
}

// named is the Service of this name, with its address if the environment tells it.
func (c *corefile) named(name string) (service string, clusterIP netip.AddrPort) {
	namespace, bare, ok := strings.Cut(name, "/")
	if !ok {
		namespace, bare = c.options.Namespace, name
	}
	// The kubelet tells the Services of our own namespace.
	variable := strings.ToUpper(strings.ReplaceAll(bare, "-", "_")) + serviceHost
	if ip, err := netip.ParseAddr(c.options.variable(variable)); err == nil && namespace == c.options.Namespace {
		clusterIP = netip.AddrPortFrom(ip.Unmap(), 53)
	}
	return namespace + "/" + bare, clusterIP
}

// serviceHost ends the names of the variables in which the kubelet tells the
// addresses of Services.
const serviceHost = "_SERVICE_HOST"

// recognise makes a Service of its address.
func (c *corefile) recognise(t *targets) {
	if len(t.servers) == 0 || len(t.overTLS) > 0 {
		return
	}
	if len(t.servers) > 1 || len(t.files) > 0 {
		t.note = "several servers are named, which are taken as they are"
		return
	}
	for _, line := range c.options.Environ {
		name, value, _ := strings.Cut(line, "=")
		bare, ok := strings.CutSuffix(name, serviceHost)
		if ip, err := netip.ParseAddr(value); !ok || err != nil || netip.AddrPortFrom(ip.Unmap(), 53) != t.servers[0] {
			continue
		}
		t.clusterIP = t.servers[0]
		t.service = c.options.Namespace + "/" + strings.ToLower(strings.ReplaceAll(bare, "_", "-"))
		t.servers = nil
		return
	}
	t.note = fmt.Sprintf("%s is no Service that the environment tells, and so no endpoints are looked for; "+
		"service:NAMESPACE/NAME in its place names one", t.servers[0])
}

// addTarget reads an address, or the name of a file.
func (c *corefile) addTarget(s *statement, t *targets, text string) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "dns", text
	}
	port, name := uint16(53), ""
	switch scheme {
	case "dns":
	case "tls":
		port = 853
		rest, name = certificateName(rest)
	default:
		c.wrong(s, fmt.Sprintf("forward names %q: %s is not spoken here", cut(text), scheme), "ask over plain DNS or tls://")
		return
	}
	server, err := address(rest, port)
	switch {
	case err == nil:
		t.servers = append(t.servers, server)
		if scheme == "tls" {
			t.overTLS = withName(t.overTLS, server, name)
		}
	case scheme == "dns" && strings.HasPrefix(rest, "/"):
		t.files, t.places = append(t.files, rest), append(t.places, len(t.servers))
	default:
		c.wrong(s, fmt.Sprintf("forward names %q, which is neither an IP address nor the path of a file", cut(text)), "write an address, or /etc/resolv.conf")
	}
}

// certificateName splits ADDRESS%NAME:PORT: the name in the certificate stands
// where the zone of an address would.
func certificateName(text string) (rest, name string) {
	bare, name, ok := strings.Cut(text, "%")
	if !ok {
		return text, ""
	}
	host, port, ok := strings.Cut(name, ":")
	if !ok {
		return bare, strings.TrimSuffix(host, "]")
	}
	if strings.HasPrefix(bare, "[") {
		bare += "]"
	}
	return bare + ":" + port, strings.TrimSuffix(host, "]")
}

// withName adds the name of a server to names, which may be nil.
func withName(names map[netip.AddrPort]string, server netip.AddrPort, name string) map[netip.AddrPort]string {
	if names == nil {
		names = map[netip.AddrPort]string{}
	}
	names[server] = name
	return names
}
