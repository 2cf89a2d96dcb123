package kube

import (
	"context"

	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// requests lists and watches the slices of one namespace that carry a label,
// and tells the contact how it went. Each is sent once: the waits between
// attempts are the caller's.
type requests struct {
	client    *rest.RESTClient
	contact   *contact
	namespace string
	selector  string
	refused   func(error) // hears every failure
}

// listWatch is what the reflector asks.
func (r *requests) listWatch() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
			list, err := r.list(ctx, options)
			if err != nil {
				return nil, err // not a typed nil
			}
			return list, nil
		},
		WatchFuncWithContext: r.watch,
	}
}

func (r *requests) list(ctx context.Context, options meta.ListOptions) (*discovery.EndpointSliceList, error) {
	options.LabelSelector = r.selector
	list := &discovery.EndpointSliceList{}
	err := r.client.Get().Namespace(r.namespace).Resource("endpointslices").
		VersionedParams(&options, meta.ParameterCodec).MaxRetries(0).Do(ctx).Into(list)
	if err != nil {
		r.fail(ctx, err)
		return nil, err
	}
	return list, nil
}

func (r *requests) watch(ctx context.Context, options meta.ListOptions) (watch.Interface, error) {
	options.LabelSelector = r.selector
	options.Watch = true
	w, err := r.client.Get().Namespace(r.namespace).Resource("endpointslices").
		VersionedParams(&options, meta.ParameterCodec).MaxRetries(0).Watch(ctx)
	if err != nil {
		// A server that cannot stream a list says so; the reflector then lists.
		if options.SendInitialEvents == nil || !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			r.fail(ctx, err)
		}
		return nil, err
	}
	r.contact.heard()
	r.contact.count(func(c *Counters) { c.Watches++ })
	return newTap(w, func(event watch.Event) {
		if event.Type == watch.Error {
			r.fail(ctx, apierrors.FromObject(event.Object))
		}
	}), nil
}

// fail tells of a failure, unless we caused it, or it is only a version that is
// too old or too new, which a new list repairs.
func (r *requests) fail(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || tooNew(err) {
		return
	}
	r.refused(err)
}

// tooNew reports that the server does not know our version yet.
func tooNew(err error) bool {
	return apierrors.HasStatusCause(err, meta.CauseTypeResourceVersionTooLarge)
}
