package peers

import (
	"fmt"
	"net/netip"
	"strings"
)

// Servers that Debian has packages of. Each is one thread that answers.

func unbound() Peer {
	return Peer{
		Name: "unbound", Binaries: []string{"unbound"}, Debian: "unbound", version: []string{"-V"},
		files: func(s Setup) map[string]string { return map[string]string{"unbound.conf": unboundConfig(s)} },
		args:  func(Setup) []string { return []string{"-d", "-p", "-c", "unbound.conf"} },
	}
}

func unboundConfig(s Setup) string {
	return fmt.Sprintf(`server:
  interface: %[1]s@%[2]d
  port: %[2]d
  directory: "%[3]s"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: "log"
  verbosity: 0
  num-threads: 1
  module-config: "iterator"
  msg-cache-size: %[4]dm
  rrset-cache-size: %[5]dm
  key-cache-size: 1m
  cache-max-negative-ttl: 3600
  do-not-query-localhost: no
  access-control: 127.0.0.0/8 allow
  access-control: ::1 allow
  local-zone: "test." nodefault
  so-rcvbuf: 4m
  num-queries-per-thread: 4096
  outgoing-range: 8192
remote-control:
  control-enable: no
forward-zone:
  name: "."
%[6]s`, s.Listen.Addr(), s.Listen.Port(), s.Dir, max(32, s.Entries/1000), max(64, s.Entries/500),
		each(s.Upstreams, "  forward-addr: %v@%d\n"))
}

// each writes a line for every address, with its IP and port.
func each(addrs []netip.AddrPort, format string) string {
	var b strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&b, format, a.Addr(), a.Port())
	}
	return b.String()
}

func dnsmasq() Peer {
	return Peer{
		Name: "dnsmasq", Binaries: []string{"dnsmasq"}, Debian: "dnsmasq", version: []string{"--version"},
		files: func(s Setup) map[string]string { return map[string]string{"dnsmasq.conf": dnsmasqConfig(s)} },
		args: func(s Setup) []string {
			return []string{"--keep-in-foreground", "--conf-file=" + s.Dir + "/dnsmasq.conf", "--pid-file="}
		},
	}
}

func dnsmasqConfig(s Setup) string {
	return fmt.Sprintf(`port=%d
listen-address=%s
bind-interfaces
user=root
group=root
no-resolv
no-hosts
log-facility=/dev/null
cache-size=%d
dns-forward-max=10000
%s`, s.Listen.Port(), s.Listen.Addr(), s.Entries, each(s.Upstreams, "server=%v#%d\n"))
}

func recursor() Peer {
	return Peer{
		Name: "pdns-recursor", Binaries: []string{"pdns_recursor"}, Debian: "pdns-recursor", version: []string{"--version"},
		files: func(s Setup) map[string]string { return map[string]string{"recursor.conf": recursorConfig(s)} },
		args:  func(s Setup) []string { return []string{"--config-dir=" + s.Dir} },
	}
}

func recursorConfig(s Setup) string {
	var to []string
	for _, a := range s.Upstreams {
		to = append(to, a.String())
	}
	return fmt.Sprintf(`local-address=%s
local-port=%d
socket-dir=%s
daemon=no
write-pid=no
disable-syslog=yes
quiet=yes
loglevel=0
threads=1
pdns-distributes-queries=no
dnssec=off
dont-query=
allow-from=127.0.0.0/8, ::1/128
serve-rfc1918=no
security-poll-suffix=
max-negative-ttl=3600
max-cache-entries=%[4]d
max-packetcache-entries=%[4]d
forward-zones-recurse=.=%[5]s
`, s.Listen.Addr(), s.Listen.Port(), s.Dir, 2*s.Entries, strings.Join(to, ";"))
}

func dnsdist() Peer {
	return Peer{
		Name: "dnsdist", Binaries: []string{"dnsdist"}, Debian: "dnsdist", version: []string{"--version"},
		files: func(s Setup) map[string]string { return map[string]string{"dnsdist.conf": dnsdistConfig(s)} },
		args: func(s Setup) []string {
			return []string{"--supervised", "--disable-syslog", "-C", s.Dir + "/dnsdist.conf"}
		},
	}
}

func dnsdistConfig(s Setup) string {
	var b strings.Builder
	fmt.Fprintf(&b, "setLocal(%q)\nsetACL({\"127.0.0.0/8\", \"::1/128\"})\nsetSecurityPollSuffix(\"\")\nsetMaxUDPOutstanding(65535)\nsetUDPSocketBufferSizes(4194304, 4194304)\n", s.Listen)
	for _, a := range s.Upstreams {
		fmt.Fprintf(&b, "newServer({address=%q, sockets=4}):setUp()\n", a)
	}
	b.WriteString("setServerPolicy(firstAvailable)\n")
	fmt.Fprintf(&b, "getPool(\"\"):setCache(newPacketCache(%d, {maxTTL=3600, maxNegativeTTL=3600}))\n", s.Entries)
	return b.String()
}

func knot() Peer {
	return Peer{
		Name: "knot-resolver", Binaries: []string{"kresd"}, Debian: "knot-resolver", version: []string{"--version"},
		files: func(s Setup) map[string]string { return map[string]string{"kresd.conf": knotConfig(s)} },
		args: func(s Setup) []string {
			return []string{"--noninteractive", "--config=" + s.Dir + "/kresd.conf", s.Dir}
		},
	}
}

func knotConfig(s Setup) string {
	var to []string
	for _, a := range s.Upstreams {
		to = append(to, fmt.Sprintf("'%v@%d'", a.Addr(), a.Port()))
	}
	return fmt.Sprintf(`net.listen('%s', %d, { kind = 'dns' })
log_level('crit')
trust_anchors.remove('.')
modules.unload('ta_update')
modules.unload('ta_signal_query')
modules.unload('priming')
cache.open(%d * MB, 'lmdb://%s/cache')
policy.add(policy.all(policy.STUB({%s})))
`, s.Listen.Addr(), s.Listen.Port(), max(100, s.Entries/500), s.Dir, strings.Join(to, ", "))
}
