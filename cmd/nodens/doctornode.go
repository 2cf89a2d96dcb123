package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// proxyMode is where kube-proxy says its mode, unless it was told another address.
const proxyMode = "http://127.0.0.1:10249/proxyMode"

// others looks at kube-proxy and at firewalls.
func (v *visit) others(ctx context.Context) {
	others, err := v.host.Others()
	if err != nil {
		v.find(warning, "kube-proxy", err.Error(), "run the doctor as root")
		return
	}
	v.judgeProxy(others.Proxies, saidMode(ctx, proxyMode))
	v.firewalls = others.Firewalls
}

// judgeProxy says what the mode of kube-proxy means for ours. traces are what its rules
// look like, says is what it says of itself.
func (v *visit) judgeProxy(traces []string, says string) {
	if says != "" && !slices.Contains(traces, says) {
		traces = append(traces, says)
	}
	ipvs := slices.Contains(traces, "ipvs")
	switch {
	case len(traces) == 0:
		v.find(fine, "kube-proxy", "no rules of it are seen: it does not run, or something else does its work, such as Cilium, or it uses iptables-legacy", "")
	case ipvs && v.state.Mode == hostnet.Service:
		v.find(bad, "kube-proxy", "it uses IPVS, which takes packets to a Service before nodens does", "use host.mode link-local, and name its address in the kubelet's clusterDNS")
	case len(traces) > 1 && says == "":
		v.find(warning, "kube-proxy", "there are rules of several modes: "+strings.Join(traces, ", "), "remove those of the mode it is no longer in: 'kube-proxy --cleanup'")
	case len(traces) > 1:
		v.find(warning, "kube-proxy", fmt.Sprintf("its mode is %s, and there are rules of others: %s", says, strings.Join(without(traces, []string{says}), ", ")),
			"remove them: 'kube-proxy --cleanup', or restart the node")
	case ipvs:
		v.find(fine, "kube-proxy", "its mode is ipvs, beside which mode link-local works", "")
	default:
		v.find(fine, "kube-proxy", "its mode is "+traces[0], "")
	}
}

// saidMode asks kube-proxy; "" = it does not say.
func saidMode(ctx context.Context, url string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 20)) // a part is no mode
	if mode := string(text); slices.Contains([]string{"iptables", "ipvs", "nftables"}, mode) {
		return mode
	}
	return ""
}

// owners looks whether a program that configures networks takes our link for its own.
func (v *visit) owners() {
	link, err := net.InterfaceByName(v.config.Host.Link)
	if err != nil {
		return // it is not there yet
	}
	name, index := v.config.Host.Link, fmt.Sprint(link.Index)
	found := false
	if v.says("/run/NetworkManager/devices/"+index, "managed") == "true" {
		found = true
		v.find(warning, "link owner", "NetworkManager manages link "+name+" and may take its addresses away",
			fmt.Sprintf("write 'unmanaged-devices+=interface-name:%s' below [keyfile] into /etc/NetworkManager/conf.d/nodens.conf, then 'nmcli general reload'", name))
	}
	if state := v.says("/run/systemd/netif/links/"+index, "ADMIN_STATE"); state != "" && state != "unmanaged" {
		found = true
		v.find(warning, "link owner", fmt.Sprintf("systemd-networkd manages link %s (%s) and may take its addresses away", name, state),
			fmt.Sprintf("write '[Match]', 'Name=%s', '[Link]', 'Unmanaged=yes' into /etc/systemd/network/10-nodens.network, then 'networkctl reload'", name))
	}
	if !found {
		v.find(fine, "link owner", "neither NetworkManager nor systemd-networkd is seen to manage link "+name, "")
	}
}

// says is the value of a line NAME=VALUE in a file; "" = there is none.
func (v *visit) says(path, name string) string {
	f, err := os.Open(filepath.Join(v.root, path))
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// resolvers looks whether the files that routes take their servers from lead back here.
func (v *visit) resolvers() {
	var files []string
	for _, r := range v.config.Routes {
		if r.ResolvConf != "" {
			files = append(files, without([]string{r.ResolvConf}, files)...)
		}
	}
	if v.config.Path == "" {
		files = []string{"/etc/resolv.conf"}
	}
	for _, file := range files {
		servers, left, err := resolvConf{path: filepath.Join(v.root, file), listen: v.listens(), own: interfaceAddrs}.read()
		do := "name a file with the servers of the machine in resolvConf, such as /run/systemd/resolve/resolv.conf, or the servers themselves"
		switch {
		case err != nil:
			v.find(warning, "resolv.conf", err.Error(), do)
		case len(servers) == 0:
			v.find(bad, "resolv.conf", file+" names no server that can be asked"+leftWhy(left), do)
		case len(left) > 0:
			v.find(warning, "resolv.conf", "of "+file+" are left out: "+strings.Join(left, ", "), do)
		default:
			v.find(fine, "resolv.conf", file+" leads away from here", "")
		}
	}
}

func leftWhy(left []string) string {
	if len(left) == 0 {
		return ""
	}
	return ": " + strings.Join(left, ", ")
}
