package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/nodens-dns/nodens/topology"
)

// Run implements [topology.Source]: it emits until ctx ends and never gives up.
// It may be called once.
func (s *Source) Run(ctx context.Context, sink topology.Sink) error {
	// What the library has to say is told by Status and by our own log.
	ctx = klog.NewContext(ctx, klog.Logger{})
	if s.cfg.Warm != nil && s.cfg.Warm() && !pause(ctx, jitter(s.cfg.StartJitter)) {
		return nil
	}
	r := &run{
		Source: s, sink: sink, service: s.first(), searching: s.cfg.Service == "",
		backoff: backoff{least: s.cfg.RetryMin, most: s.cfg.RetryMax, random: rand.Float64},
	}
	for ctx.Err() == nil {
		r.round(ctx)
	}
	return nil
}

func jitter(most time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(most) + 1))
}

// run is what Run remembers between attempts.
type run struct {
	*Source
	sink    topology.Sink
	backoff backoff
	service string // followed now
	store   *store // of that Service
	vacancy *vacancy
	// searching says that no search was made yet: an empty set is not emitted
	// before one has shown that there is no other Service.
	searching bool
}

// round follows the Service until it has no slices, the connection is of no use
// any more, or ctx ends.
func (r *run) round(ctx context.Context) {
	client, err := r.cfg.Client.get()
	if err != nil {
		r.refuse(err)
		pause(ctx, r.retry())
		return
	}
	asks := r.requests(client)
	lost := r.follow(ctx, asks)
	switch {
	case ctx.Err() != nil:
	case lost:
		r.move(ctx, asks)
	default:
		r.cfg.Client.renew(client)
	}
}

func (r *run) requests(client *rest.RESTClient) *requests {
	return &requests{
		client:    client,
		contact:   r.contact,
		namespace: r.cfg.Namespace,
		selector:  discovery.LabelServiceName + "=" + r.service,
		refused:   r.refuse,
	}
}

// refuse takes note of a failure in words that say what to do.
func (r *run) refuse(err error) {
	fault := faultOf(err)
	switch fault {
	case Forbidden:
		err = fmt.Errorf("grant list and watch of endpointslices in namespace %s: %w", r.cfg.Namespace, err)
	case Unauthorized:
		err = fmt.Errorf("the token is not accepted; look at the service account and the clock of the node: %w", err)
	case Certificate:
		err = fmt.Errorf("the certificate authority that is configured did not sign the server's certificate: %w", err)
	}
	r.contact.failed(fault, err)
}

// retry is the wait after an attempt that ended, well or not.
func (r *run) retry() time.Duration {
	switch r.contact.snapshot().Fault {
	case None:
		r.backoff.reset() // a watch that ended because its version was too old
		return r.backoff.next(r.cfg.RetryMax)
	case Forbidden, Unauthorized, NoServer:
		return r.backoff.next(r.cfg.RefusedMax)
	default:
		return r.backoff.next(r.cfg.RetryMax)
	}
}

// follow lists and watches. It reports true when another Service should be
// looked for, and false when the connection has to be made anew.
func (r *run) follow(ctx context.Context, asks *requests) (lost bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.vacancy = &vacancy{every: r.cfg.SearchEvery, cancel: cancel}
	defer r.vacancy.stop()
	reflector := cache.NewReflectorWithOptions(asks.listWatch(), &discovery.EndpointSlice{}, r.into(), cache.ReflectorOptions{
		Name:    "endpointslices",
		Logger:  &klog.Logger{},
		Backoff: r.inner(),
	})
	for ctx.Err() == nil {
		began := r.cfg.Now()
		// The requests tell their errors themselves, those too that the
		// reflector keeps to itself.
		_ = reflector.ListAndWatchWithContext(ctx)
		if r.cfg.Now()-began > r.cfg.RefusedMax {
			r.backoff.reset()
		}
		if !pause(ctx, r.retry()) || r.contact.snapshot().Fault == Certificate {
			break
		}
	}
	return r.vacancy.noticed()
}

// into is the store of the Service. It outlives the connection, because it
// knows the latest version.
func (r *run) into() *store {
	if r.store == nil || r.store.service != r.service {
		r.store = &store{
			sink: r.sink, contact: r.contact, namespace: r.cfg.Namespace, service: r.service,
			now: r.cfg.Now, rewindHold: r.cfg.RewindHold, names: make(map[string]bool), empty: r.empty,
		}
	}
	return r.store
}

// empty hears whether the Service has no slices now, and tells whether an empty
// set shall be emitted.
func (r *run) empty(empty bool) bool {
	if r.cfg.Service != "" {
		return true
	}
	return r.vacancy.set(empty, r.searching)
}

// move looks for another Service, because the followed one has no slices. If
// there is none, the default one is followed again, and may be empty.
func (r *run) move(ctx context.Context, asks *requests) {
	found, err := asks.search(ctx)
	if err != nil {
		pause(ctx, r.retry())
		return
	}
	r.searching = false
	if found == "" {
		found = DefaultService
	}
	if found != r.service {
		r.cfg.Log.Info("another DNS Service is followed, found by its label",
			zap.String("namespace", r.cfg.Namespace), zap.String("service", found), zap.String("before", r.service))
	}
	r.service = found
	r.contact.follows(r.cfg.Namespace, found, found != DefaultService)
}

// inner is the wait between attempts that the reflector makes by itself, when a
// connection is refused or the server is busy.
func (r *run) inner() *wait.Backoff {
	return &wait.Backoff{
		Duration: r.cfg.RetryMin,
		Factor:   2,
		Jitter:   1, // up to twice as long
		Steps:    32,
		Cap:      max(r.cfg.RetryMin, r.cfg.RetryMax/2),
	}
}
