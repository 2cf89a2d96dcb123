package main

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// routeCache reads what is kept of a route's answers.
func (f *configFile) routeCache(path string, n *yaml.Node, c *RouteCacheConfig) {
	f.object(path, n, f.routeCacheFields(c))
	switch {
	case c.MinTTL > c.MaxTTL:
		f.add(n.Line, fmt.Sprintf("%s.minTTL is %s, more than maxTTL (%s)", path, shortDuration(c.MinTTL), shortDuration(c.MaxTTL)), "lower it or raise maxTTL")
	case c.MaxServFailTTL != 0 && c.MaxServFailTTL < c.ServFailTTL:
		f.add(n.Line, fmt.Sprintf("%s.maxServFailTTL is %s, less than servFailTTL (%s)", path, shortDuration(c.MaxServFailTTL), shortDuration(c.ServFailTTL)), "raise it, or write 0s for no growth")
	case c.StaleWait == 0 && !c.Stale:
		f.add(n.Line, path+".staleWait is 0s, but expired answers are only given when no server answers", "let clients wait, for 1s as an example, or write stale: true")
	}
	if c.PreferPositive > 0 {
		f.prefer = append(f.prefer, preferLine{lasts: c.PreferPositive, path: path, line: n.Line})
	}
}

func (f *configFile) routeCacheFields(c *RouteCacheConfig) fields {
	return fields{
		"maxTTL":         f.time(&c.MaxTTL, time.Second, 24*time.Hour),
		"minTTL":         f.time(&c.MinTTL, 0, time.Hour),
		"maxNegativeTTL": f.time(&c.MaxNegativeTTL, time.Second, 3*time.Hour),
		"servFailTTL":    f.time(&c.ServFailTTL, time.Second, 5*time.Minute),
		"maxServFailTTL": f.time(&c.MaxServFailTTL, 0, 5*time.Minute),
		"stale":          f.flag(&c.Stale),
		"staleWait":      f.time(&c.StaleWait, 0, 5*time.Second),
		"preferPositive": f.time(&c.PreferPositive, 0, 72*time.Hour),
		"shareNXDomain":  f.flag(&c.ShareNXDomain),
		"prefetch":       f.number(&c.Prefetch, 0, 1_000_000),
		"keepAA":         f.flag(&c.KeepAA),
		"minimal":        f.flag(&c.Minimal),
	}
}
