package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
	"github.com/nodens-dns/nodens/forwarder/listener"
)

// told is what was found, a line each.
func (v *visit) told() string {
	var lines []string
	for _, f := range v.findings {
		lines = append(lines, f.Severity+" "+f.Check+": "+f.Says+" | "+f.Do)
	}
	return strings.Join(lines, "\n")
}

// wants compares the only finding, or all of them, with the beginning of each and with
// parts.
func (v *visit) wants(t *testing.T, begins string, parts ...string) {
	t.Helper()
	if !strings.HasPrefix(v.told(), begins) {
		t.Errorf("found:\n%s\nwant %s", v.told(), begins)
	}
	for _, part := range parts {
		if !strings.Contains(v.told(), part) {
			t.Errorf("found:\n%s\nwithout %q", v.told(), part)
		}
	}
}

// visiting is a visit with a configuration.
func visiting(t *testing.T, config string) *visit {
	t.Helper()
	c, err := readConfig("f", []byte("version: v1\n"+config), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	return &visit{config: c, state: c.hostState(), root: t.TempDir()}
}

// Whoever may not look at the kernel is told so.
func TestDoctorWithoutPower(t *testing.T) {
	var v visit
	err := space.OnThread(func() error { // which takes the loss with it
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			return err
		}
		v.powers() // kernel and links have nothing to add
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	v.wants(t, "warning capability: the doctor has no NET_ADMIN", "run it as root")
	if len(v.findings) != 1 {
		t.Errorf("found:\n%s\nwant one finding", v.told())
	}
}

// Without the table it is the fallback that is missing, where somebody counts on it.
func TestDoctorJudgesKernel(t *testing.T) {
	lacks := errors.New("the kernel does not take the nft table: this kernel lacks a part of what is needed")
	const route = "routes: [{zones: [.], servers: [192.0.2.1]}]\n"
	for name, c := range map[string]struct {
		config string
		err    error
		want   string
	}{
		"it takes it":     {"listen: [\"169.254.20.10:53\"]\nhost: {mode: link-local}\n", nil, "fine kernel: it takes the nft table"},
		"with a guard":    {"listen: [\"169.254.20.10:53\"]\nhost: {mode: link-local}\n", lacks, "bad kernel: " + lacks.Error() + " | without the table there is no fallback; nodens answers all the same in mode link-local"},
		"without a guard": {"listen: [\"127.0.0.1:53\"]\n", lacks, "warning kernel: " + lacks.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			v := visiting(t, c.config+route)
			v.judgeKernel(c.err)
			v.wants(t, c.want)
		})
	}
}

// The doctor takes node-cache's command line as it is, and looks at what that sets up.
func TestDoctorReadsADropIn(t *testing.T) {
	folder := t.TempDir()
	write(t, folder+"/good", ". {\n bind __PILLAR__LOCAL__DNS__\n forward . 192.0.2.1\n cache\n prometheus :9263\n}\n")
	write(t, folder+"/bad", ". {\n forward . nobody\n}\n")
	type state struct {
		Mode, Link   string
		Own, Service []string
		Admin        string
	}
	for line, want := range map[string]struct {
		state state
		told  string
	}{
		"-localip 169.254.20.10,10.96.0.10 -conf good":           {state{"service", "nodelocaldns", []string{"169.254.20.10"}, []string{"10.96.0.10"}, "127.0.0.1:9263"}, ""},
		"-localip=169.254.20.10 -conf=good -setupiptables=false": {state{"none", "nodelocaldns", []string{"169.254.20.10"}, nil, "127.0.0.1:9263"}, ""},
		"-fail bad -localip 169.254.20.10 -setupebtables -conf good -interfacename x": {
			state{"link-local", "x", []string{"169.254.20.10"}, nil, "127.0.0.1:9263"}, "warning command line: there is no flag -setupebtables",
		},
		"-localip 169.254.20.10 -conf bad":              {state{"link-local", "nodelocaldns", []string{"169.254.20.10"}, nil, "127.0.0.1:9253"}, "bad configuration: "},
		"-localip 169.254.20.10 -conf nowhere":          {state{"link-local", "nodelocaldns", []string{"169.254.20.10"}, nil, "127.0.0.1:9253"}, "bad configuration: there is no Corefile"},
		"-localip nine -conf good":                      {state{"none", "nodens", nil, nil, "127.0.0.1:9253"}, "bad configuration: -localip has \"nine\""},
		"-fail bad":                                     {state{"none", "nodens", nil, nil, "127.0.0.1:9253"}, ""},
		"-localip 169.254.20.10 -dns.port 0 -conf good": {state{"none", "nodens", nil, nil, "127.0.0.1:9253"}, "bad configuration: -dns.port"},
	} {
		args := strings.Fields(strings.NewReplacer("conf ", "conf "+folder+"/", "conf=", "conf="+folder+"/").Replace(line))
		flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
		flags.String("fail", "", "")
		dropIn, args := dropInFlags(flags, args)
		if err := flags.Parse(args); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if dropIn != nil {
			dropIn.baseCorefile, dropIn.corefile, dropIn.kubeDNS = "", "", folder+"/nowhere" // those of this machine
		}
		v := &visit{}
		v.read("", dropIn, surroundings{getenv: noEnv, environ: func() []string { return []string{"KUBE_DNS_SERVICE_HOST=10.96.0.10"} }})
		got := state{v.state.Mode.String(), v.state.Link, addressTexts(v.state.Own), addressTexts(v.state.Service), v.config.Admin.Address.String()}
		if diff := cmp.Diff(want.state, got); diff != "" || !strings.HasPrefix(v.told(), want.told) || want.told == "" && v.told() != "" {
			t.Errorf("%s: told %q, want %q (-want +got):\n%s", line, v.told(), want.told, diff)
		}
	}
	for _, line := range []string{"-config a -conf b", "-conf b -o xml", "-confg b"} {
		if status, out := call(t, append([]string{"doctor"}, strings.Fields(line)...)...); status != 2 {
			t.Errorf("%s: status %d: %s", line, status, out)
		}
	}
}

// What a daemon that runs under node-cache's flags stands on is no leftover, whatever the
// doctor is told of it; once that daemon is gone, it is.
func TestDoctorBesideADropIn(t *testing.T) {
	onNode(t, func(t *testing.T) {
		shell(t, "ip link set lo up")
		folder := t.TempDir()
		server := newScriptedAt(t, "127.0.0.2:0", 53, 0)
		write(t, folder+"/Corefile", fmt.Sprintf(".:53 {\n bind 169.254.20.10\n forward . %s\n cache\n prometheus 127.0.0.1:9253\n}\n", server.address))
		write(t, folder+"/native", fmt.Sprintf("version: v1\nlisten: [\"169.254.20.10:53\"]\nhost: {mode: link-local}\nroutes: [{zones: [.], servers: [%q]}]\n", server.address))
		same := "-localip 169.254.20.10 -setupiptables=false -basecorefile " + folder + "/Corefile"
		const link, leftover = "fine     link: the daemon that runs answers at addresses of link nodelocaldns", "leftovers: of node-cache: link nodelocaldns"
		consult := func(args string, want, never []string) {
			t.Helper()
			_, text := runSelf(append([]string{"doctor"}, strings.Fields(args)...)...)
			at := 0
			for _, w := range want {
				i := strings.Index(text[at:], w)
				if i < 0 {
					t.Errorf("doctor %s: not told, or not in this order: %q in\n%s", args, w, text)
					continue
				}
				at += i
			}
			for _, n := range never {
				if strings.Contains(text, n) {
					t.Errorf("doctor %s: told: %q in\n%s", args, n, text)
				}
			}
		}
		daemon := begin(t, strings.Fields(same)...)
		untilOneAnswers(t, "start", byServer)
		await(t, "the admin address", func() bool { _, err := fetchHere("http://127.0.0.1:9253/livez"); return err == nil })
		consult("", []string{"fine     daemon: nodens ", link}, []string{leftover})
		consult("-before -config "+folder+"/native", []string{link}, []string{leftover, "169.254.20.10 is on link"})
		consult(same, []string{"fine     port: ", "fine     daemon: nodens ", "fine     servers: each of 1 answers"}, []string{leftover, "link name", "169.254.20.10 is on link"})
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
		consult("", []string{leftover}, []string{link})
		consult("-before -config "+folder+"/native", []string{"169.254.20.10 is on link nodelocaldns already", leftover}, []string{link})
		consult(same, nil, []string{leftover, "link name"})
	})
}

func TestDoctorJudgesProxy(t *testing.T) {
	for name, c := range map[string]struct {
		mode   hostnet.Mode
		traces []string
		says   string
		want   string
	}{
		"none":                        {hostnet.LinkLocal, nil, "", "fine kube-proxy: no rules"},
		"iptables":                    {hostnet.Service, []string{"iptables"}, "", "fine kube-proxy: its mode is iptables"},
		"nftables":                    {hostnet.Service, []string{"nftables"}, "nftables", "fine kube-proxy: its mode is nftables"},
		"iptables-legacy":             {hostnet.Service, nil, "iptables", "fine kube-proxy: its mode is iptables"},
		"ipvs beside link-local":      {hostnet.LinkLocal, []string{"ipvs"}, "", "fine kube-proxy: its mode is ipvs"},
		"ipvs and its iptables":       {hostnet.Service, []string{"ipvs", "iptables"}, "ipvs", "bad kube-proxy: it uses IPVS"},
		"ipvs says so":                {hostnet.Service, nil, "ipvs", "bad kube-proxy: it uses IPVS"},
		"it changed":                  {hostnet.Service, []string{"iptables", "nftables"}, "nftables", "warning kube-proxy: its mode is nftables, and there are rules of others: iptables"},
		"it changed, and is not here": {hostnet.Service, []string{"iptables", "nftables"}, "", "warning kube-proxy: there are rules of several modes: iptables, nftables"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &visit{state: hostnet.State{Mode: c.mode}}
			v.judgeProxy(c.traces, c.says)
			v.wants(t, c.want)
		})
	}
}

func TestProxySaysItsMode(t *testing.T) {
	for answer, want := range map[string]string{"ipvs": "ipvs", "nftables": "nftables", "<html>no such page</html>": "", "": ""} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		if got := saidMode(t.Context(), server.URL); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
		server.Close()
		if got := saidMode(t.Context(), server.URL); got != "" {
			t.Errorf("without a server: %q", got)
		}
	}
}

func TestDoctorLooksForOwnersOfTheLink(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	index := strconv.Itoa(lo.Index)
	for name, c := range map[string]struct{ file, text, want string }{
		"nobody":                           {"else", "", "fine link owner: neither"},
		"NetworkManager":                   {"run/NetworkManager/devices/" + index, "[device]\nmanaged=true\n", "warning link owner: NetworkManager manages link lo"},
		"NetworkManager leaves it alone":   {"run/NetworkManager/devices/" + index, "[device]\nmanaged=false\n", "fine link owner: neither"},
		"systemd-networkd":                 {"run/systemd/netif/links/" + index, "# private\nADMIN_STATE=configured\n", "warning link owner: systemd-networkd manages link lo (configured)"},
		"systemd-networkd leaves it alone": {"run/systemd/netif/links/" + index, "ADMIN_STATE=unmanaged\n", "fine link owner: neither"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &visit{config: Config{Host: HostConfig{Link: "lo"}}, root: t.TempDir()}
			path := filepath.Join(v.root, c.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, path, c.text)
			v.owners()
			v.wants(t, c.want)
		})
	}
}

func TestDoctorFollowsResolvConf(t *testing.T) {
	const config = "listen: [\"169.254.20.10:53\"]\nroutes: [{zones: [.], resolvConf: /etc/r.conf}]\n"
	for name, c := range map[string]struct{ text, want string }{
		"away":            {"nameserver 192.0.2.1\n", "fine resolv.conf: /etc/r.conf leads away"},
		"back":            {"nameserver 169.254.20.10\n", "bad resolv.conf: /etc/r.conf names no server that can be asked: 169.254.20.10:53 (nodens itself listens"},
		"back and away":   {"nameserver 169.254.20.10\nnameserver 192.0.2.1\n", "warning resolv.conf: of /etc/r.conf are left out: 169.254.20.10:53"},
		"nothing":         {"search example\n", "bad resolv.conf: /etc/r.conf names no server that can be asked | name a file"},
		"it is not there": {"", "warning resolv.conf: "},
	} {
		t.Run(name, func(t *testing.T) {
			v := visiting(t, config)
			if c.text != "" {
				if err := os.Mkdir(v.root+"/etc", 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, v.root+"/etc/r.conf", c.text)
			}
			v.resolvers()
			v.wants(t, c.want)
		})
	}
}

func TestDoctorAsksTheAPIServer(t *testing.T) {
	const route = "routes: [{zones: [cluster.local], topology: {}}]\n"
	refused := visiting(t, "node: {name: n1}\n"+refusing(t)+route)
	refused.api(t.Context())
	refused.wants(t, "bad API server: the endpoints of kube-system/kube-dns are not told (forbidden)", "list and watch of endpointslices")
	folder := t.TempDir()
	nowhere := visiting(t, "node: {name: n1}\nkubernetes: {caFile: "+folder+"/ca, tokenFile: "+folder+"/token}\n"+route)
	nowhere.api(t.Context())
	nowhere.wants(t, "bad API server: the endpoints of kube-system/kube-dns are not told (no-server)", "run the doctor in the pod")
	fixed := visiting(t, "routes: [{zones: [.], servers: [192.0.2.1]}]\n")
	if fixed.api(t.Context()); len(fixed.findings) > 0 {
		t.Errorf("without endpoints of an API server:\n%s", fixed.told())
	}
}

func TestDoctorAsksEachServer(t *testing.T) {
	good := newScripted(t, 7, 0).address
	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone := silent.LocalAddr().String()
	for name, c := range map[string]struct{ servers, told, want string }{
		"good":              {good.String(), "", "fine servers: each of 1 answers"},
		"bad":               {gone, "", "bad servers: none answers: " + gone},
		"one of two":        {good.String() + `", "` + gone, "", "warning servers: 1 of 2 do not answer: " + gone},
		"the daemon's":      {good.String(), gone, "warning servers: 1 of 2 do not answer: " + gone},
		"the daemon's, too": {good.String(), good.String(), "fine servers: each of 1 answers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := visiting(t, `routes: [{zones: [.], servers: ["`+c.servers+`"]}]`)
			if c.told != "" {
				v.report = &report{Routes: []routeReport{{Zones: []string{"."}, Servers: []serverReport{{Address: c.told}}}}}
			}
			v.servers(t.Context())
			v.wants(t, c.want)
		})
	}
}

// Servers that were kept and are of no use are named.
func TestDoctorReadsTheEndpointsFile(t *testing.T) {
	for server, want := range map[string]string{
		"10.0.0.1:53":        "fine endpoints file: ",
		"127.0.0.1:53":       "warning endpoints file: ",
		"255.255.255.255:53": "warning endpoints file: ",
	} {
		v := visiting(t, "listen: [\"169.254.20.10:53\"]\nhost: {mode: link-local, endpoints: "+t.TempDir()+"/e.json}\nroutes: [{zones: [.], servers: [192.0.2.1]}]\n")
		write(t, v.config.Host.Endpoints, `{"format":"nodens-guard-1","table":{"tiers":[[{"udp":"`+server+`"}]]}}`)
		v.fallbackFile()
		v.wants(t, want)
		if want != "fine endpoints file: " {
			v.wants(t, want, "left out", server)
		}
	}
}

func TestDoctorComparesVersions(t *testing.T) {
	own := build{Version: "v1.2.0", Revision: "abc"}
	for name, c := range map[string]struct {
		r    report
		want string
	}{
		"the same":     {report{Version: "v1.2.0", Revision: "abc", Ready: true}, "fine daemon: nodens v1.2.0 runs"},
		"older":        {report{Version: "v1.1.0", Revision: "def", Ready: true}, "warning daemon: it is nodens v1.1.0 def, and the doctor is v1.2.0 abc"},
		"not ready":    {report{Version: "v1.2.0", Revision: "abc", Why: "waiting"}, "warning daemon: it is not ready: waiting"},
		"half-written": {report{Version: "v1.2.0", Revision: "abc", Ready: true, Config: configReport{Error: "f:1: x"}}, "fine daemon: nodens v1.2.0 runs, the same as the doctor | \nwarning daemon: the configuration as it is now is not in force: f:1: x"},
		"no fallback": {
			report{Version: "v1.2.0", Revision: "abc", Ready: true, Host: &hostReport{Fallback: "not ready: no server is known for UDP queries to fd00::1"}},
			"fine daemon: nodens v1.2.0 runs, the same as the doctor | \nwarning fallback: it is not ready: no server is known for UDP queries to fd00::1 | until then",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var v visit
			v.judgeDaemon(&c.r, own)
			v.wants(t, c.want)
		})
	}
}

func TestDoctorSaysHowToGetIn(t *testing.T) {
	four, six := netip.MustParseAddrPort("169.254.20.10:53"), netip.MustParseAddrPort("[fd00:90de:d95::1]:53")
	for name, c := range map[string]struct {
		at        netip.AddrPort
		firewalls []string
		answered  bool
		err       error
		want      string
		do        string
	}{
		"it answers":  {four, nil, true, nil, "fine firewall: 169.254.20.10:53 answers", ""},
		"not tried":   {four, nil, false, errors.New("no permission"), "fine firewall: whether one keeps pods from 169.254.20.10:53 was not tried: no permission", "as root"},
		"unknown":     {six, nil, false, nil, "bad firewall: ", "ip6tables -I INPUT -p udp -d fd00:90de:d95::1 --dport 53 -j ACCEPT"},
		"a policy":    {four, []string{"chain INPUT of table ip filter (policy drop)"}, false, nil, "bad firewall: ", "; look at chain INPUT of table ip filter"},
		"firewalld":   {four, []string{"chain filter_INPUT of table inet firewalld (firewalld)"}, false, nil, "bad firewall: ", "firewall-cmd --permanent --add-rich-rule='rule family=\"ipv4\" destination address=\"169.254.20.10\""},
		"ufw":         {four, []string{"chain ufw-user-input of table ip filter (ufw)"}, false, nil, "bad firewall: ", "ufw allow to 169.254.20.10 port 53"},
		"Calico":      {four, []string{"chain cali-INPUT of table ip filter (Calico)"}, false, nil, "bad firewall: ", "defaultEndpointToHostAction"},
		"two of them": {four, []string{"x (firewalld)", "y (Calico)"}, false, nil, "bad firewall: ", "look at x (firewalld), y (Calico)"},
	} {
		t.Run(name, func(t *testing.T) {
			v := visit{firewalls: c.firewalls}
			v.judgeOutside(c.at, c.answered, c.err)
			v.wants(t, c.want, c.do)
		})
	}
}

func TestDoctorNamesWhoListens(t *testing.T) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	at := netip.MustParseAddrPort(conn.LocalAddr().String())
	holders := listener.Holders(listener.ProtoUDP, at)
	if len(holders) != 1 {
		t.Fatalf("%d sockets", len(holders))
	}
	var v visit
	if who := programOf(v.root, holders[0].Inode); who.pid != os.Getpid() || !who.ours {
		t.Errorf("%+v, want this process", who)
	}
	for name, c := range map[string]struct {
		comm     string
		uid      int
		wildcard bool
		want     string
	}{
		"root's node-cache":       {"node-cache", 0, false, "warning port: user 0 (node-cache, process 7) listens at 127.0.0.1:53 over UDP | two users cannot share an address, nodens waits for it: stop node-cache (process 7)"},
		"a stranger of our user":  {"dnsmasq", 65532, false, "warning port: user 65532 (dnsmasq, process 7) listens at 127.0.0.1:53 over UDP and takes a part"},
		"root's, out of sight":    {"", 0, false, "warning port: user 0 listens at 127.0.0.1:53 over UDP"},
		"everywhere":              {"dnsmasq", 0, true, "warning port: user 0 (dnsmasq, process 7) listens at every address"},
		"ours":                    {"nodens", 65532, false, ""},
		"our user's, from afar":   {"", 65532, false, ""},
		"ours of the former user": {"nodens", 0, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := visit{config: Config{Host: HostConfig{UID: 65532}}, root: t.TempDir()}
			if c.comm != "" {
				folder := filepath.Join(v.root, "proc/7/fd")
				if err := os.MkdirAll(folder, 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(v.root, "proc/7/comm"), c.comm+"\n")
				if err := os.Symlink("socket:[99]", filepath.Join(folder, "5")); err != nil {
					t.Fatal(err)
				}
			}
			stranger := v.holder(netip.MustParseAddrPort("127.0.0.1:53"), "UDP", listener.Holder{UID: c.uid, Wildcard: c.wildcard, Inode: 99})
			if stranger != (c.want != "") {
				t.Errorf("stranger: %t", stranger)
			}
			v.wants(t, c.want)
		})
	}
}

// A packet filter that lets the node's own processes through and nobody else is found.
func TestDoctorComesFromOutside(t *testing.T) {
	onNode(t, func(t *testing.T) {
		shell(t, "ip link set lo up")
		shell(t, "ip addr add 169.254.20.10/32 dev lo")
		newScriptedAt(t, "169.254.20.10:53", 53, 0)
		before := shell(t, "ip -o addr show")
		v := visiting(t, "listen: [\"169.254.20.10:53\"]\nhost: {mode: link-local}\nroutes: [{zones: [.], servers: [192.0.2.1]}]\n")
		v.outside(t.Context())
		v.wants(t, "fine firewall: 169.254.20.10:53 answers")
		for _, line := range []string{
			"iptables-nft -w -P INPUT DROP", "iptables-nft -w -A INPUT -i lo -j ACCEPT",
		} {
			shell(t, line)
		}
		v.findings = nil
		host, err := hostnet.New(hostnet.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer host.Close()
		v.host = host
		v.others(context.Background())
		v.outside(t.Context())
		v.wants(t, "fine kube-proxy", "bad firewall: 169.254.20.10:53 answers on the node, but not", "iptables -I INPUT -p udp -d 169.254.20.10 --dport 53 -j ACCEPT", "look at chain INPUT of table ip filter (policy drop)")
		shell(t, "iptables-nft -w -I INPUT -p udp -d 169.254.20.10 --dport 53 -j ACCEPT")
		v.findings = nil
		v.outside(t.Context())
		v.wants(t, "fine firewall: 169.254.20.10:53 answers")
		if after := shell(t, "ip -o addr show"); after != before {
			t.Errorf("the doctor left something:\n%s\nbefore:\n%s", after, before)
		}
	})
}
