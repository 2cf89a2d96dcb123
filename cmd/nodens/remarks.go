package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/file"
)

// remarks are what is no mistake and yet likely not meant. Checking on another
// machine than the node is not one: files may be missing here.
func remarks(c *Config) []string {
	var list []string
	for i := range c.Routes {
		r := &c.Routes[i]
		switch {
		case r.Topology.File != "":
			list = append(list, topologyRemarks(c, r)...)
		case r.ResolvConf != "":
			if f, err := openFile(r.ResolvConf); err != nil {
				list = append(list, fmt.Sprintf("%v; serve will not start without it", err))
			} else {
				_ = f.Close() // it was only looked at
			}
		}
	}
	if c.nameless() {
		list = append(list, noNodeName)
	}
	return list
}

// topologyRemarks are about a file of endpoints.
func topologyRemarks(c *Config, r *RouteConfig) []string {
	list, err := file.Read(r.Topology.File)
	if err != nil {
		return []string{fmt.Sprintf("%v; serve will not start without it", err)}
	}
	var remarks []string
	route, rules := "route for "+strings.Join(r.Zones, " ")+": ", r.Topology.rules(ownPorts(c.Listen, nil))
	endpoints, services := topology.Survey(list, rules)
	if endpoints == 0 {
		remarks = append(remarks, route+topology.Unmatched(rules, services))
	}
	told := slices.ContainsFunc(list, func(s topology.Slice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e topology.SliceEndpoint) bool { return e.Node == c.Node.Name && e.Zone != "" })
	})
	if c.Node.Name != "" && c.Node.Zone == "" && !told {
		remarks = append(remarks, route+noNodeZone)
	}
	return remarks
}

const (
	noNodeName = "the name of this node is not known, so that no endpoint counts as being on it: set node.name, or the variable NODE_NAME where it runs"
	noNodeZone = "the zone of this node is not known, and no endpoint on it tells, so that none is in the same zone: set node.zone, or the variable NODE_ZONE where it runs"
)

// nameless says that endpoints are chosen by their place and our node is not
// known.
func (c *Config) nameless() bool {
	return c.Node.Name == "" && slices.ContainsFunc(c.Routes, func(r RouteConfig) bool { return r.topological() })
}

// warnPlace says once if the place of this node is not known, though new routes
// go by it.
func (d *daemon) warnPlace(next, old *generation) {
	for _, r := range without(next.routes, old.routes) {
		switch {
		case r.watcher == nil:
			continue
		case next.config.nameless():
			d.log.Warn(noNodeName)
			return
		case r.lacksZone():
			d.log.Warn(noNodeZone)
			return
		}
	}
}

// lacksZone says that nobody tells the zone, nor is being asked for it.
func (r *route) lacksZone() bool {
	status := r.watcher.Status()
	asked := r.api != nil && r.api.node != nil
	return status.Synced && status.Table.Usable() > 0 && status.ZoneFrom == topology.ZoneUnknown && !asked
}
