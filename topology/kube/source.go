package kube

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/topology"
)

// Defaults of Config.
const (
	DefaultNamespace = "kube-system"
	DefaultService   = "kube-dns"

	defaultStartJitter = 30 * time.Second
	defaultRetryMin    = time.Second
	defaultRetryMax    = 10 * time.Second
	defaultRefusedMax  = 30 * time.Second
	defaultSearchEvery = 30 * time.Second
	defaultRewindHold  = 60 * time.Second
)

// Config configures a Source.
type Config struct {
	// Client is the connection. Required.
	Client *Client

	// Namespace of the Service. Default kube-system.
	Namespace string
	// Service is its name. Default kube-dns; and if that has no slices, the one
	// whose slices carry the label k8s-app=kube-dns is taken: of several, the one
	// with the most ready endpoints, an "upstream" copy only if it is alone. A
	// name that is set is not looked for under another.
	Service string

	// Warm tells, when Run begins, whether a usable set is in force already,
	// from a snapshot on disk for example. Then there is no hurry, and the first
	// request waits a random time of up to StartJitter, so that nodes that start
	// together do not ask together. Default nil: never.
	Warm func() bool
	// StartJitter is 0 (default: 30 s) to 5 min.
	StartJitter time.Duration

	// RetryMin and RetryMax bound the random wait after a failure; it starts
	// near the first and grows. Defaults 1 s and 10 s; at least 1 ms.
	RetryMin, RetryMax time.Duration
	// RefusedMax bounds the wait after a refusal, which only people can end,
	// and a new permission is found after at most this time. Default 30 s, at
	// least RetryMax.
	RefusedMax time.Duration
	// SearchEvery is how often a Service is looked for by its label while the
	// default one has no slices. Default 30 s, at least 10 ms.
	SearchEvery time.Duration
	// RewindHold is how long a list is held back that is older than what is
	// known: a server that was restored from a backup, or that lags behind.
	// Default 60 s; it ends with the first event or bookmark after that.
	RewindHold time.Duration

	// Now is the time since an arbitrary monotonic epoch. Required.
	Now func() time.Duration
	// Log gets a line when the server fails or answers again, and when a
	// Service was found. Default nil: silent.
	Log *zap.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Client == nil || c.Now == nil {
		return c, errors.New("topology kube: Config.Client and Config.Now must be set")
	}
	orDefault(&c.Namespace, DefaultNamespace)
	orDefault(&c.StartJitter, defaultStartJitter)
	orDefault(&c.RetryMin, defaultRetryMin)
	orDefault(&c.RetryMax, max(defaultRetryMax, c.RetryMin))
	orDefault(&c.RefusedMax, max(defaultRefusedMax, c.RetryMax))
	orDefault(&c.SearchEvery, defaultSearchEvery)
	orDefault(&c.RewindHold, defaultRewindHold)
	switch {
	case c.StartJitter < 0 || c.StartJitter > 5*time.Minute:
		return c, fmt.Errorf("topology kube: Config.StartJitter is %v; want 0 to 5m", c.StartJitter)
	case c.RetryMin < time.Millisecond || c.RetryMax < c.RetryMin || c.RefusedMax < c.RetryMax:
		return c, fmt.Errorf("topology kube: Config.RetryMin, RetryMax and RefusedMax are %v, %v, %v; want 1ms or more, in this order", c.RetryMin, c.RetryMax, c.RefusedMax)
	case c.SearchEvery < 10*time.Millisecond:
		return c, fmt.Errorf("topology kube: Config.SearchEvery is %v; want 10ms or more", c.SearchEvery)
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c, nil
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Source emits the slices of one Service as the API server has them.
type Source struct {
	cfg     Config
	contact *contact
}

var _ topology.Source = (*Source)(nil)

// New makes a Source; nothing is sent yet.
func New(cfg Config) (*Source, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Source{cfg: cfg, contact: newContact(cfg.Now, cfg.Log, func(fault Fault, err error) {
		cfg.Log.Warn("the API server is of no help; what was known stays in force", zap.Stringer("fault", fault), zap.Error(err))
	})}
	s.contact.follows(cfg.Namespace, s.first(), false)
	return s, nil
}

// first is the Service that is tried first.
func (s *Source) first() string {
	if s.cfg.Service == "" {
		return DefaultService
	}
	return s.cfg.Service
}

// Status describes the connection as it is now. It may be called at any time.
func (s *Source) Status() Status { return s.contact.snapshot() }
