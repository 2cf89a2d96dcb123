package dnstest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nodens-dns/nodens/forwarder/cache"
)

// settings are what the configuration of a file comes to.
type settings struct {
	policy      cache.Policy
	maxInFlight int
	expired     bool // serve-expired
	noSnooping  bool
}

// defaultSettings are those of the resolver that the format comes from, as far
// as replies depend on them.
func defaultSettings() settings {
	return settings{
		maxInFlight: 1024,
		policy: cache.Policy{
			MaxTTL: 24 * time.Hour, MaxNegativeTTL: time.Hour,
			FailureTTL: time.Second, ServFailTTL: 5 * time.Second, Recheck: 5 * time.Second,
			MaxStale: 24 * time.Hour, StaleOnError: true, StaleTTL: 30 * time.Second,
			StaleWait: 1800 * time.Millisecond,
		},
	}
}

// settings reads the configuration. Names without a meaning for a forwarder are
// passed over, but not those that start with our own.
func (s *Scenario) settings() (settings, error) {
	out := defaultSettings()
	for _, k := range s.Knobs {
		if err := out.set(k); err != nil {
			return out, fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	if !out.expired {
		out.policy.MaxStale = 0
	}
	return out, nil
}

func (s *settings) set(k Knob) error {
	p := &s.policy
	seconds := map[string]*time.Duration{
		"cache-max-ttl": &p.MaxTTL, "cache-min-ttl": &p.MinTTL, "cache-max-negative-ttl": &p.MaxNegativeTTL,
		"serve-expired-reply-ttl": &p.StaleTTL, "serve-expired-ttl": &p.MaxStale,
		"nodens-prefer-positive": &p.PreferPositive, "nodens-max-servfail-ttl": &p.MaxServFailTTL,
	}
	flags := map[string]*bool{
		"serve-expired": &s.expired, "minimal-responses": &p.Minimal, "nodens-refuse-snooping": &s.noSnooping,
		"nodens-share-nxdomain": &p.ShareNXDomain, "nodens-stale-on-error": &p.StaleOnError, "nodens-keep-aa": &p.KeepAA,
	}
	switch {
	case seconds[k.Name] != nil:
		n, err := strconv.Atoi(k.Value)
		*seconds[k.Name] = time.Duration(n) * time.Second
		return err
	case flags[k.Name] != nil:
		*flags[k.Name] = k.Value == "yes"
	case k.Name == "prefetch" && k.Value == "yes":
		p.Prefetch = 1
	case k.Name == "num-queries-per-thread":
		n, err := strconv.Atoi(k.Value)
		s.maxInFlight = n
		return err
	case k.Name == "serve-expired-client-timeout":
		n, err := strconv.Atoi(k.Value)
		if p.StaleWait = time.Duration(n) * time.Millisecond; n == 0 {
			p.StaleWait = -1
		}
		return err
	case strings.HasPrefix(k.Name, "nodens-"):
		return fmt.Errorf("there is no such setting")
	}
	return nil
}
