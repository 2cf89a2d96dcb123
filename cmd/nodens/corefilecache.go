package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cacheReader reads one cache of a block. What it finds is applied to every
// route of the block.
type cacheReader struct {
	c *corefile
	b *corefileBlock
}

func (r cacheReader) apply(change func(k *RouteCacheConfig)) {
	r.b.apply = append(r.b.apply, func(route *RouteConfig) { change(&route.Cache) })
}

func readCache(c *corefile, b *corefileBlock, s *statement) {
	if b.cached {
		c.wrong(s, "cache is given twice in one block", "remove one")
		return
	}
	b.cached = true
	r := cacheReader{c, b}
	args := s.texts()
	if len(args) > 0 {
		if _, err := strconv.Atoi(args[0]); err == nil {
			if ttl, ok := r.seconds(s, args[0], 1, 24*time.Hour); ok {
				r.apply(func(k *RouteCacheConfig) { k.MaxTTL, k.MaxNegativeTTL = ttl, min(ttl, maxNegativeTTL) })
			}
			args = args[1:]
		}
	}
	r.zones(s, args)
	known := map[string]func(s *statement){
		"success": r.success, "denial": r.denial, "prefetch": r.prefetch, "serve_stale": r.serveStale,
		"serve_stale_policy": r.stalePolicy, "servfail": r.servFail, "disable": r.disable, "keepttl": r.keepTTL,
	}
	for i := range s.block {
		if read := known[s.block[i].name()]; read != nil {
			read(&s.block[i])
		} else {
			c.unknownOption(&s.block[i], "cache", sortedKeys(known)...)
		}
	}
}

// maxNegativeTTL is the bound of the setting of this name.
const maxNegativeTTL = 3 * time.Hour

// zones are those that are cached, which are all of the block unless it says others.
func (r cacheReader) zones(s *statement, names []string) {
	for _, name := range names {
		found, why := zonesOf(name)
		if why != "" {
			r.c.wrong(s, fmt.Sprintf("cache is for %q: %s", cut(name), why), "write a zone")
			continue
		}
		if found[0] != "." && !slices.Contains(r.b.zones, found[0]) {
			r.c.note(s, fmt.Sprintf("cache is for %s only", name), "every name of the block is kept; give the zone a block of its own")
		}
	}
}

// seconds reads a number of seconds. One that is above high counts as high.
func (r cacheReader) seconds(s *statement, text string, low int, high time.Duration) (time.Duration, bool) {
	n, err := strconv.Atoi(text)
	if err != nil || n < low {
		r.c.wrong(s, fmt.Sprintf("%s says %q, which is no number of seconds from %d on", s.name(), cut(text), low), "write a whole number")
		return 0, false
	}
	if n > int(high/time.Second) {
		r.c.note(s, fmt.Sprintf("%s says %s seconds", s.name(), text), "the most there is counts: "+shortDuration(high))
		return high, true
	}
	return time.Duration(n) * time.Second, true
}

// duration reads a duration and brings it between the bounds.
func (r cacheReader) duration(s *statement, text string, low, high time.Duration) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		r.c.wrong(s, fmt.Sprintf("%s says %q, which is no duration", s.name(), cut(text)), "write one such as 30s")
		return 0, false
	}
	if bounded := min(max(d, low), high); bounded != d {
		r.c.note(s, fmt.Sprintf("%s says %s", s.name(), text), shortDuration(bounded)+" counts")
		return bounded, true
	}
	return d, true
}

// capacity looks at a number of entries: memory is bounded in bytes instead.
func (r cacheReader) capacity(s *statement) (rest []string) {
	args := s.texts()
	if len(args) == 0 {
		r.c.wrong(s, s.name()+" says nothing", "write a capacity, and a TTL behind it")
		return nil
	}
	if n, err := strconv.Atoi(args[0]); err != nil || n < 0 {
		r.c.wrong(s, fmt.Sprintf("%s has the capacity %q, which is no number", s.name(), cut(args[0])), "write a whole number")
	}
	return args[1:]
}

func (r cacheReader) success(s *statement) {
	rest := r.capacity(s)
	if len(rest) > 0 {
		if ttl, ok := r.seconds(s, rest[0], 1, 24*time.Hour); ok {
			r.apply(func(k *RouteCacheConfig) { k.MaxTTL = ttl })
		}
	}
	if len(rest) > 1 {
		if ttl, ok := r.seconds(s, rest[1], 0, time.Hour); ok {
			r.apply(func(k *RouteCacheConfig) { k.MinTTL = ttl })
		}
	}
}

func (r cacheReader) denial(s *statement) {
	rest := r.capacity(s)
	if len(rest) > 0 {
		if ttl, ok := r.seconds(s, rest[0], 1, maxNegativeTTL); ok {
			r.apply(func(k *RouteCacheConfig) { k.MaxNegativeTTL = ttl })
		}
	}
	if len(rest) > 1 && rest[1] != "0" {
		r.c.note(s, "a least TTL for denials has no equivalent", "what the zone says counts, up to the TTL before it")
	}
}

func (r cacheReader) prefetch(s *statement) {
	args := s.texts()
	if len(args) == 0 || len(args) > 3 {
		r.c.wrong(s, "prefetch needs the number of hits", "write prefetch 5")
		return
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 {
		r.c.wrong(s, fmt.Sprintf("prefetch says %q, which is no number", cut(args[0])), "write a whole number")
		return
	}
	if !r.c.check(s, argumentRule{"prefetch AMOUNT [DURATION [PERCENTAGE%]], from 10% to 90%", isPrefetch}) {
		return
	}
	if len(args) > 1 {
		r.c.note(s, "duration and percentage of prefetch have no equivalent", "hits count over the life of an answer, which is renewed in its last tenth")
	}
	r.apply(func(k *RouteCacheConfig) { k.Prefetch = min(n, 1_000_000) })
}

// serveStale reads how long, and whether the servers are asked first. The bound is
// one for all routes: the longest one that is said.
func (r cacheReader) serveStale(s *statement) {
	args := append(s.texts(), "", "", "")
	mode := strings.ToLower(args[1])
	if len(s.args()) > 5 || mode != "" && mode != "immediate" && mode != "verify" {
		r.c.wrong(s, fmt.Sprintf("serve_stale says %q", cut(strings.Join(s.texts(), " "))), "write serve_stale [DURATION] [immediate | verify [TIMEOUT]]")
		return
	}
	if d, ok := r.duration(s, cmp.Or(args[0], "1h"), 0, 72*time.Hour); ok {
		r.staleFor(d)
	}
	wait := time.Duration(0)
	if mode == "verify" {
		wait = r.verifyTime(s, args[2])
	}
	r.b.apply = append(r.b.apply, func(route *RouteConfig) {
		route.Cache.Stale, route.Cache.StaleWait = true, wait
		if wait < 0 {
			route.Cache.StaleWait = min(route.Timeout, maxStaleWait)
		}
	})
	if len(s.args()) > 3 || mode == "immediate" && len(s.args()) > 2 {
		r.c.note(s, "TTL and recheck of serve_stale have no equivalent", "stale answers show 30s and are checked every 5s")
	}
}

// maxStaleWait is the bound of the setting staleWait.
const maxStaleWait = 5 * time.Second

// verifyTime is how long servers are waited for. Without a time of its own, as long
// as they are given, which is less than 0.
func (r cacheReader) verifyTime(s *statement, text string) time.Duration {
	if text == "" || text == "0s" || text == "0" {
		return -1
	}
	wait, ok := r.duration(s, text, time.Millisecond, maxStaleWait)
	if !ok {
		return -1
	}
	return wait
}

func (r cacheReader) staleFor(d time.Duration) {
	if k := &r.c.config.Cache; !r.c.staled || d > k.MaxStale {
		k.MaxStale, r.c.staled = d, true
	}
}

func (r cacheReader) stalePolicy(s *statement) {
	if text := strings.Join(s.texts(), " "); text != "prefer_positive" {
		r.c.wrong(s, fmt.Sprintf("serve_stale_policy says %q", cut(text)), "write prefer_positive")
		return
	}
	r.apply(func(k *RouteCacheConfig) { k.PreferPositive = r.c.config.Cache.MaxStale })
}

func (r cacheReader) servFail(s *statement) {
	if len(s.args()) != 1 {
		r.c.wrong(s, "servfail needs a duration", "write servfail 5s")
		return
	}
	if d, ok := r.duration(s, s.args()[0].text, time.Second, 5*time.Minute); ok {
		r.apply(func(k *RouteCacheConfig) { k.ServFailTTL = d })
	}
}

func (r cacheReader) disable(s *statement) {
	args := s.texts()
	if len(args) == 0 || args[0] != "success" && args[0] != "denial" {
		r.c.wrong(s, fmt.Sprintf("disable says %q", cut(strings.Join(args, " "))), "write disable success or disable denial")
		return
	}
	r.c.note(s, fmt.Sprintf("disable %s has no equivalent", strings.Join(args, " ")), "what it names is kept for 1s, for all names of the block")
	r.apply(func(k *RouteCacheConfig) {
		if args[0] == "denial" {
			k.MaxNegativeTTL = time.Second
			return
		}
		k.MaxTTL, k.MinTTL = time.Second, 0
	})
}

func (r cacheReader) keepTTL(s *statement) {
	r.c.note(s, "keepttl has no equivalent", "the TTL of an answer counts down while it is kept")
}
