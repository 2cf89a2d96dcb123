package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

const (
	apiPatience    = 5 * time.Second
	serverPatience = 500 * time.Millisecond // for one of serverTries
	serverTries    = 3
	serversAtOnce  = 16
)

// daemon looks at the daemon that runs, whose servers are those to look at later.
func (v *visit) daemon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	body, err := askAdmin(ctx, v.config.Admin.Address.String(), http.MethodGet, "/statusz", url.Values{"format": {"json"}})
	switch {
	case err != nil && v.before:
		v.find(fine, "daemon", "none runs on this node yet", "")
		return
	case err != nil:
		v.find(warning, "daemon", err.Error(), "")
		return
	}
	defer body.Close()
	var r report
	if err := json.NewDecoder(io.LimitReader(body, maxReport)).Decode(&r); err != nil {
		v.find(warning, "daemon", fmt.Sprintf("%v answers, but not as nodens does: %v", v.config.Admin.Address, err), "correct admin.address")
		return
	}
	v.report = &r
	v.judgeDaemon(&r, thisBuild())
}

// judgeDaemon compares the daemon with the binary that asks.
func (v *visit) judgeDaemon(r *report, own build) {
	switch {
	case r.Version != own.Version || r.Revision != own.Revision:
		v.find(warning, "daemon", fmt.Sprintf("it is nodens %s, and the doctor is %s", strings.TrimSpace(r.Version+" "+r.Revision), strings.TrimSpace(own.Version+" "+own.Revision)),
			"give serve and guard the same image")
	case !r.Ready:
		v.find(warning, "daemon", "it is not ready: "+r.Why, "'nodens status' says more")
	default:
		v.find(fine, "daemon", "nodens "+r.Version+" runs, the same as the doctor", "")
	}
	if r.Config.Error != "" {
		v.find(warning, "daemon", "the configuration as it is now is not in force: "+r.Config.Error, "correct it; 'nodens check' names every mistake")
	}
	if h := r.Host; h != nil && h.Fallback != "" && !h.Ready {
		v.find(warning, "fallback", "it is "+h.Fallback, "until then nobody answers these queries while the daemon is away: see that the servers have addresses of this family and answer")
	}
}

// collected is what the API server told.
type collected struct {
	mu     sync.Mutex
	slices []topology.Slice
	synced bool
}

func (c *collected) Put(s topology.Slice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slices = append(c.slices, s)
}

func (c *collected) Delete(string, string) {}

func (c *collected) Replace(all []topology.Slice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slices = slices.Clone(all)
}

func (c *collected) Synced() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.synced = true
}

// told is how many endpoints there are, once all are known.
func (c *collected) told() (endpoints int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.slices {
		endpoints += len(c.slices[i].Endpoints)
	}
	return endpoints, c.synced
}

// api asks the API server for the endpoints, as the daemon would.
func (v *visit) api(ctx context.Context) {
	for _, r := range v.config.Routes {
		if !r.fromAPI() {
			continue
		}
		var heard collected
		status, err := v.list(ctx, &r, &heard)
		endpoints, synced := heard.told()
		service := r.Topology.serviceName()
		switch {
		case err != nil:
			v.find(bad, "API server", err.Error(), "")
		case status.Fault != kube.None:
			v.find(bad, "API server", fmt.Sprintf("the endpoints of %s are not told (%v): %s", service, status.Fault, status.LastError), apiRemedy(status.Fault))
		case !synced:
			v.find(bad, "API server", fmt.Sprintf("it does not tell the endpoints of %s within %v", service, apiPatience), apiRemedy(kube.Unreachable))
		case endpoints == 0:
			v.find(warning, "API server", fmt.Sprintf("%s has no endpoint", service), "look at the Service's pods, or correct topology.namespace and topology.service")
		default:
			v.find(fine, "API server", fmt.Sprintf("it tells %d endpoints of %s", endpoints, service), "")
		}
	}
}

// list asks until something is known.
func (v *visit) list(ctx context.Context, r *RouteConfig, to *collected) (kube.Status, error) {
	k := v.config.Kubernetes
	client := kube.NewClient(kube.API{Server: k.Server, CAFile: k.CAFile, TokenFile: k.TokenFile})
	defer client.Close()
	began := time.Now()
	source, err := kube.New(kube.Config{
		Client: client, Namespace: r.Topology.Namespace, Service: r.Topology.Service,
		Now: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		return kube.Status{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = source.Run(ctx, to) // its status tells
	}()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for known := false; !known && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			_, known = to.told()
			known = known || source.Status().Fault != kube.None
		}
	}
	status := source.Status() // before the end, which is a fault as well
	cancel()
	<-ended
	return status, nil
}

// apiRemedy is what to do about a fault.
func apiRemedy(f kube.Fault) string {
	switch f {
	case kube.Forbidden:
		return "bind the ServiceAccount to a Role with list and watch of endpointslices (deploy/manifests/rbac.yaml); until then the ClusterIP is asked"
	case kube.NoServer:
		return "run the doctor in the pod of nodens, which has the token, or name kubernetes.server, caFile and tokenFile"
	case kube.Unauthorized:
		return "look at the ServiceAccount and at the clock of the node"
	case kube.Certificate:
		return "correct kubernetes.caFile"
	}
	return "look whether the node reaches it; until then the ClusterIP and what was kept are asked"
}

// asked is a server and what it is asked.
type asked struct {
	at   netip.AddrPort
	name string
}

// servers puts a question to each server: of the daemon that runs, or else of the
// configuration.
func (v *visit) servers(ctx context.Context) {
	list := v.askedServers()
	if len(list) == 0 {
		return
	}
	silent := make([]bool, len(list))
	var tries errgroup.Group
	tries.SetLimit(serversAtOnce)
	for i, a := range list {
		tries.Go(func() error { silent[i] = !answersAt(ctx, a); return nil })
	}
	_ = tries.Wait() // they return nothing
	var names []string
	for i, a := range list {
		if silent[i] {
			names = append(names, a.at.String())
		}
	}
	const do = "look at the pod or the machine, and at what is in between: a network policy, a firewall, a route"
	switch {
	case len(names) == len(list):
		v.find(bad, "servers", "none answers: "+strings.Join(names, ", "), do)
	case len(names) > 0:
		v.find(warning, "servers", fmt.Sprintf("%d of %d do not answer: %s", len(names), len(list), strings.Join(names, ", ")), do)
	default:
		v.find(fine, "servers", fmt.Sprintf("each of %d answers", len(list)), "")
	}
}

// askedServers leaves out those that are asked over TLS.
func (v *visit) askedServers() (list []asked) {
	for i := range v.config.Routes {
		r := &v.config.Routes[i]
		for _, at := range slices.Concat(r.Servers, r.Topology.Local, r.Topology.ClusterIP, r.Topology.Fallback, v.reportedServers(r)) {
			known := slices.ContainsFunc(list, func(a asked) bool { return a.at == at })
			if at.IsValid() && !known && r.TLSNames[at] == "" {
				list = append(list, asked{at, r.asksFor()})
			}
		}
	}
	return list
}

// reportedServers are the servers of a route that the daemon reports.
func (v *visit) reportedServers(r *RouteConfig) (list []netip.AddrPort) {
	if v.report == nil {
		return nil
	}
	for _, told := range v.report.Routes {
		if !slices.Equal(told.Zones, r.Zones) {
			continue
		}
		for _, s := range told.Servers {
			at, _ := netip.ParseAddrPort(s.Address) // what is none is not valid
			list = append(list, at)
		}
	}
	return list
}

// asksFor is the name that shows how a server is.
func (r *RouteConfig) asksFor() string {
	if r.Probe != "" {
		return r.Probe
	}
	return "."
}

// answersAt tells whether a server answers, whatever it says. A datagram may be lost.
func answersAt(ctx context.Context, a asked) bool {
	query := new(dns.Msg).SetQuestion(dns.Fqdn(a.name), dns.TypeA)
	client := dns.Client{Timeout: serverPatience}
	for range serverTries {
		if _, _, err := client.ExchangeContext(ctx, query, a.at.String()); err == nil {
			return true
		}
	}
	return false
}
