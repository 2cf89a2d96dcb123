package main

import (
	"bufio"
	"bytes"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// resolvConf follows the nameservers of a resolv.conf file.
type resolvConf struct {
	path string
	// listen are the daemon's own addresses, own those of the machine's
	// interfaces: a nameserver that leads back here is left out.
	listen []netip.AddrPort
	own    func() []netip.Addr
	// publish gets the nameservers in the order of the file: once at the
	// start, and whenever they changed. Never an empty list.
	publish func([]netip.AddrPort)
	log     *zap.Logger
	// poll is how often the file is looked at even if nobody reports a
	// change; 0 means 30 s.
	poll time.Duration
}

// run follows the file until ctx ends. A file that is missing, unreadable or
// without a usable nameserver changes nothing: the last good list stays.
func (r resolvConf) run(ctx context.Context) error {
	var last []netip.AddrPort
	var warned string
	return followFile(ctx, r.path, r.poll, func() {
		servers, left, err := r.read()
		if warning := r.warning(left, servers, err); warning != warned {
			if warned = warning; warning != "" {
				r.log.Warn(warning, zap.String("file", r.path), zap.Stringers("keeping", last))
			}
		}
		if len(servers) == 0 || slices.Equal(servers, last) {
			return
		}
		last = servers
		r.log.Info("nameservers taken from resolv.conf", zap.String("file", r.path), zap.Stringers("servers", servers))
		r.publish(servers)
	})
}

// warning says what is wrong with the file, or nothing.
func (r resolvConf) warning(left []string, servers []netip.AddrPort, err error) string {
	var parts []string
	if err != nil {
		parts = append(parts, "resolv.conf cannot be read: "+err.Error()+"; make it readable, or name another file in resolvConf")
	}
	if len(left) > 0 {
		parts = append(parts, "nameservers left out: "+strings.Join(left, ", "))
	}
	if len(servers) == 0 && err == nil {
		parts = append(parts, "resolv.conf names no usable nameserver; add one, or name the servers in the configuration")
	}
	return strings.Join(parts, "; ")
}

// read gives the usable nameservers of the file, and those left out with the
// reason.
func (r resolvConf) read() (servers []netip.AddrPort, left []string, err error) {
	data, err := readFile(r.path)
	if err != nil {
		return nil, nil, err
	}
	own := r.own()
	for _, server := range nameservers(data) {
		why := unusable(server)
		if listen, loop := ownListen(r.listen, server, own); loop {
			why = "nodens itself listens at " + listen.String()
		}
		switch {
		case why != "":
			left = append(left, server.String()+" ("+why+")")
		case !slices.Contains(servers, server):
			servers = append(servers, server)
		}
	}
	return servers, left, nil
}

// nameservers are the addresses of the nameserver lines, with port 53. Lines
// that say something else are none of our business; an IPv6 address may have a
// zone (fe80::1%eth0).
func nameservers(data []byte) []netip.AddrPort {
	var found []netip.AddrPort
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if ip, err := netip.ParseAddr(words[1]); err == nil {
			found = append(found, netip.AddrPortFrom(ip.Unmap(), 53))
		}
	}
	return found
}
