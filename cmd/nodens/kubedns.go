package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// kubeDNS is the ConfigMap kube-dns as it is mounted: each key is a file.
type kubeDNS struct {
	// Stubs are servers by their domain.
	Stubs map[string][]string
	// Upstreams take the place of the servers for all other names. Default none:
	// those of /etc/resolv.conf.
	Upstreams []string

	folder string
	files  map[string]string
}

// maxUpstreams is how many a resolv.conf can have, too.
const maxUpstreams = 3

// upstreams are the servers of all names that nobody else has.
func (k *kubeDNS) upstreams() []string {
	if len(k.Upstreams) == 0 {
		return []string{"/etc/resolv.conf"}
	}
	return k.Upstreams
}

// readKubeDNS reads the folder. One that is empty or not there says nothing. The
// error names every mistake.
func readKubeDNS(folder string) (kubeDNS, error) {
	k := kubeDNS{folder: folder, files: map[string]string{}}
	if folder == "" {
		return k, nil
	}
	m := mistakes{file: folder}
	for key, to := range map[string]any{"stubDomains": &k.Stubs, "upstreamNameservers": &k.Upstreams} {
		path := filepath.Join(folder, key)
		data, err := readFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			m.addIn(path, 1, err.Error(), "make it a readable file")
			continue
		}
		k.files[key] = string(data)
		if strings.TrimSpace(string(data)) == "" {
			continue
		}
		if err := json.Unmarshal(data, to); err != nil {
			m.addIn(path, lineOf(data, err), "this is not the JSON that is expected: "+err.Error(),
				`write {"example.org": ["192.0.2.1"]} for stubDomains, ["192.0.2.1"] for upstreamNameservers`)
		}
	}
	k.check(&m)
	if err := m.err(); err != nil {
		return kubeDNS{folder: folder}, kubeDNSError{err}
	}
	return k, nil
}

// kubeDNSError is about the ConfigMap kube-dns.
type kubeDNSError struct{ error }

// lineOf is where a JSON text is wrong.
func lineOf(data []byte, err error) int {
	offset := 0
	switch e := err.(type) {
	case *json.SyntaxError:
		offset = int(e.Offset)
	case *json.UnmarshalTypeError:
		offset = int(e.Offset)
	}
	return 1 + strings.Count(string(data[:min(offset, len(data))]), "\n")
}

func (k *kubeDNS) check(m *mistakes) {
	path := filepath.Join(k.folder, "upstreamNameservers")
	if len(k.Upstreams) > maxUpstreams {
		m.addIn(path, 1, fmt.Sprintf("there are %d servers", len(k.Upstreams)), fmt.Sprintf("keep at most %d", maxUpstreams))
	}
	k.checkServers(m, path, k.Upstreams)
	path = filepath.Join(k.folder, "stubDomains")
	for _, domain := range sortedKeys(k.Stubs) {
		line := 1 + strings.Count(before(k.files["stubDomains"], domain), "\n")
		if _, ok := dns.IsDomainName(domain); !ok || strings.ContainsAny(domain, ` /:*\`) || strings.Trim(domain, ".") == "" {
			m.addIn(path, line, fmt.Sprintf("%q is no domain", cut(domain)), "write a name such as example.org")
		}
		if len(k.Stubs[domain]) == 0 {
			m.addIn(path, line, fmt.Sprintf("%q has no servers", cut(domain)), "name one")
		}
		k.checkServers(m, path, k.Stubs[domain])
	}
}

func (k *kubeDNS) checkServers(m *mistakes, path string, servers []string) {
	for _, server := range servers {
		at, _, err := plainServer(server)
		if why := unusable(at); err == nil && why != "" {
			err = fmt.Errorf("%s is named, %s", server, why)
		}
		if err != nil {
			line := 1 + strings.Count(before(k.files[filepath.Base(path)], server), "\n")
			m.addIn(path, line, err.Error(), "write an address, with a port where it is not 53")
		}
	}
}

// before is what stands in front of word.
func before(text, word string) string {
	text, _, _ = strings.Cut(text, word)
	return text
}

// plainServer reads [dns:// | tls://]ADDRESS[:PORT].
func plainServer(text string) (server netip.AddrPort, overTLS bool, err error) {
	rest, overTLS := strings.CutPrefix(text, "tls://")
	port := uint16(53)
	if overTLS {
		port = 853
	}
	server, err = address(strings.TrimPrefix(rest, "dns://"), port)
	return server, overTLS, err
}

// stubTTL is how long node-cache keeps the answers of stub domains.
const stubTTL = 30 * time.Second

// stubDomains makes routes of the ConfigMap's domains.
func (c *corefile) stubDomains() {
	path := filepath.Join(c.kube.folder, "stubDomains")
	for _, domain := range slices.Sorted(maps.Keys(c.kube.Stubs)) {
		zone := dns.CanonicalName(domain)
		if slices.ContainsFunc(c.config.Routes, func(r RouteConfig) bool { return slices.Contains(r.Zones, zone) }) {
			c.addIn(path, 1, fmt.Sprintf("the domain %q is also a zone of the Corefile", domain), "keep it in one place")
			continue
		}
		r := corefileRoute(false)
		r.Zones = []string{zone}
		r.Cache.MaxTTL, r.Cache.MaxNegativeTTL = stubTTL, stubTTL
		for _, text := range c.kube.Stubs[domain] {
			server, overTLS, _ := plainServer(text) // check has read it already
			if overTLS {
				r.TLSNames = withName(r.TLSNames, server, server.Addr().String())
			}
			r.Servers = append(r.Servers, without([]netip.AddrPort{server}, r.Servers)...)
			c.servers = append(c.servers, serverLine{address: server, path: path, line: 1})
		}
		c.config.Routes = append(c.config.Routes, r)
	}
}
