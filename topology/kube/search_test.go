package kube_test

import (
	"strings"
	"testing"
	"time"

	discovery "k8s.io/api/discovery/v1"

	"github.com/nodens-dns/nodens/topology/kube"
)

func TestChoose(t *testing.T) {
	unready := slice("u", "many", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	for i := range unready.Endpoints {
		unready.Endpoints[i].Conditions.Ready = ptr(false)
	}
	unknown := slice("n", "nil", "10.0.0.1", "10.0.0.2")
	for i := range unknown.Endpoints {
		unknown.Endpoints[i].Conditions.Ready = nil
	}
	unlabelled := slice("l", "", "10.0.0.1", "10.0.0.2")
	for _, c := range []struct {
		name string
		list []*discovery.EndpointSlice
		want string
	}{
		{"nothing there", nil, ""},
		{"a slice of no Service", []*discovery.EndpointSlice{unlabelled}, ""},
		{"the only one", []*discovery.EndpointSlice{slice("a", "coredns", "10.0.0.1")}, "coredns"},
		{"the only one, without endpoints", []*discovery.EndpointSlice{slice("a", "coredns")}, "coredns"},
		{"kube-dns, though others have more", []*discovery.EndpointSlice{slice("a", "coredns", "10.0.0.1", "10.0.0.2"), slice("b", "kube-dns", "10.0.0.3")}, "kube-dns"},
		{"kube-dns, though it has none", []*discovery.EndpointSlice{slice("a", "coredns", "10.0.0.1"), slice("b", "kube-dns")}, "kube-dns"},
		{"the one with the most ready endpoints", []*discovery.EndpointSlice{slice("a", "a", "10.0.0.1"), slice("b", "b", "10.0.0.2", "10.0.0.3"), unready}, "b"},
		{"counted over all its slices", []*discovery.EndpointSlice{slice("a", "z", "10.0.0.4", "10.0.0.5"), slice("a2", "z", "10.0.0.1"), slice("b", "b", "10.0.0.2", "10.0.0.3")}, "z"},
		{"nil means ready", []*discovery.EndpointSlice{slice("a", "a", "10.0.0.1"), unknown}, "nil"},
		{"equal: the first by name", []*discovery.EndpointSlice{slice("b", "b", "10.0.0.2"), slice("a", "a", "10.0.0.1")}, "a"},
		{"never the copy beside the original", []*discovery.EndpointSlice{slice("u", "kube-dns-upstream", "10.0.0.1", "10.0.0.2"), slice("r", "rke2-coredns-rke2-coredns", "10.0.0.1")}, "rke2-coredns-rke2-coredns"},
		{"the copy if it is alone", []*discovery.EndpointSlice{slice("u", "kube-dns-upstream", "10.0.0.1")}, "kube-dns-upstream"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var items []discovery.EndpointSlice
			for _, s := range c.list {
				items = append(items, *s)
			}
			if got := kube.Choose(items); got != c.want {
				t.Errorf("chose %q, want %q", got, c.want)
			}
		})
	}
}

func TestServiceOfAnotherName(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("r", "rke2-coredns-rke2-coredns", "10.0.0.1"))
	f.put(slice("u", "kube-dns-upstream", "10.0.0.1", "10.0.0.7"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.1")
	if s := r.Status(); s.Service != "rke2-coredns-rke2-coredns" || !s.Found || r.smallest() != 1 {
		t.Errorf("status %+v, smallest set %d; want it found, and no empty set before", s, r.smallest())
	}
	f.put(slice("r", "rke2-coredns-rke2-coredns", "10.0.0.2"))
	r.wants("10.0.0.2")
}

// The Service is renamed while we run.
func TestServiceIsReplaced(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.1")
	f.put(slice("b", "coredns", "10.0.0.2"))
	f.remove("a")
	r.wants("10.0.0.2")
	f.put(slice("a", "kube-dns", "10.0.0.3"))
	f.remove("b")
	r.wants("10.0.0.3")
	if s := r.Status(); s.Service != "kube-dns" || s.Found {
		t.Errorf("status %+v, want the default Service again", s)
	}
}

func TestNoServiceAtAll(t *testing.T) {
	f := newFakeAPI(t)
	r := start(t, f.api(), kube.Config{})
	r.wants("")
	before := r.Status().Counters.Searches
	within(t, time.Minute, "it is looked for again", func() bool { return r.Status().Counters.Searches > before+1 })
	f.put(slice("b", "coredns", "10.0.0.2"))
	r.wants("10.0.0.2")
}

// A name that somebody wrote down is not exchanged for another.
func TestServiceThatIsNamedIsNotSearched(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("b", "coredns", "10.0.0.2"))
	r := start(t, f.api(), kube.Config{Service: "kube-dns"})
	r.wants("")
	time.Sleep(200 * time.Millisecond)
	if s := r.Status(); s.Counters.Searches != 0 || r.addresses() != "" {
		t.Errorf("status %+v", s)
	}
	for _, request := range f.requests {
		if strings.Contains(request, "k8s-app") {
			t.Errorf("asked %s", request)
		}
	}
}
