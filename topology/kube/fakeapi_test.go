package kube_test

import (
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/nodens-dns/nodens/topology/kube"
)

// fakeAPI is an API server of EndpointSlices and Nodes: lists, watches with
// bookmarks, streamed lists, protobuf over HTTP/2 and TLS, and every way to
// refuse.
type fakeAPI struct {
	*httptest.Server
	scheme *runtime.Scheme
	folder string

	mu       sync.Mutex
	version  int
	slices   map[string]*discovery.EndpointSlice
	nodes    map[string]map[string]string // labels
	history  []change
	oldest   int           // versions up to this one are forgotten
	changed  chan struct{} // closed at each change
	cut      chan struct{} // closed to end all watches
	refuse   func(*http.Request) *meta.Status
	spoil    *meta.Status // sent by every watch once it is open
	deaf     bool         // to selectors: every slice is sent
	token    string
	requests []string // method of work: list, watch, stream, node
}

type change struct {
	version int
	kind    string
	slice   *discovery.EndpointSlice
}

func newFakeAPI(t testing.TB) *fakeAPI {
	t.Helper()
	f := &fakeAPI{
		scheme: runtime.NewScheme(), folder: t.TempDir(), version: 100,
		slices: map[string]*discovery.EndpointSlice{}, nodes: map[string]map[string]string{},
		changed: make(chan struct{}), cut: make(chan struct{}), token: "first",
	}
	if err := discovery.AddToScheme(f.scheme); err != nil {
		t.Fatal(err)
	}
	if err := meta.AddMetaToScheme(f.scheme); err != nil {
		t.Fatal(err)
	}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.EnableHTTP2 = true
	f.StartTLS()
	t.Cleanup(func() {
		f.endWatches()
		f.CloseClientConnections()
		f.Close()
	})
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	f.write(t, "ca.crt", string(cert))
	f.write(t, "token", f.token)
	return f
}

func (f *fakeAPI) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// api is what a client needs to know.
func (f *fakeAPI) api() kube.API {
	return kube.API{Server: f.URL, CAFile: filepath.Join(f.folder, "ca.crt"), TokenFile: filepath.Join(f.folder, "token")}
}

// put stores a slice and tells the watches.
func (f *fakeAPI) put(slice *discovery.EndpointSlice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := "MODIFIED"
	if f.slices[slice.Name] == nil {
		kind = "ADDED"
	}
	f.record(kind, slice)
	f.slices[slice.Name] = slice
}

func (f *fakeAPI) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record("DELETED", f.slices[name].DeepCopy())
	delete(f.slices, name)
}

// record needs the lock.
func (f *fakeAPI) record(kind string, slice *discovery.EndpointSlice) {
	f.version++
	slice.TypeMeta = meta.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
	slice.ResourceVersion = strconv.Itoa(f.version)
	f.history = append(f.history, change{f.version, kind, slice})
	f.wake()
}

func (f *fakeAPI) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// set changes the server's mind about something.
func (f *fakeAPI) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.wake()
}

// endWatches ends every open watch, as a server does that restarts.
func (f *fakeAPI) endWatches() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.cut)
	f.cut = make(chan struct{})
}

// compact removes a slice, ends all watches and forgets how it came, in one
// step: a watch from an older version cannot go on.
func (f *fakeAPI) compact(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.slices, name)
	f.version += 10
	f.oldest, f.history = f.version, nil
	close(f.cut)
	f.cut = make(chan struct{})
}

// count is how many requests of a kind there were.
func (f *fakeAPI) count(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if strings.HasPrefix(r, kind) {
			n++
		}
	}
	return n
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	kind := "list"
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/"):
		kind = "node"
	case query.Get("sendInitialEvents") == "true":
		kind = "stream"
	case query.Get("watch") != "":
		kind = "watch"
	}
	f.mu.Lock()
	f.requests = append(f.requests, kind+" "+query.Get("labelSelector"))
	refuse, token := f.refuse, f.token
	f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+token {
		f.status(w, failure(http.StatusUnauthorized, meta.StatusReasonUnauthorized))
		return
	}
	if refuse != nil {
		if status := refuse(r); status != nil {
			f.status(w, status)
			return
		}
	}
	switch kind {
	case "node":
		f.serveNode(w, strings.TrimPrefix(r.URL.Path, "/api/v1/nodes/"))
	case "list":
		f.serveList(w, query.Get("labelSelector"))
	default:
		f.serveWatch(w, r)
	}
}

func failure(code int32, reason meta.StatusReason) *meta.Status {
	return &meta.Status{
		TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: meta.StatusFailure,
		Code: code, Reason: reason, Message: "the fake says " + string(reason),
	}
}

func forbidden(*http.Request) *meta.Status {
	return failure(http.StatusForbidden, meta.StatusReasonForbidden)
}

func (f *fakeAPI) status(w http.ResponseWriter, status *meta.Status) {
	f.reply(w, int(status.Code), status)
}

func (f *fakeAPI) reply(w http.ResponseWriter, code int, object runtime.Object) {
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	w.WriteHeader(code)
	_, _ = w.Write(f.encode(object)) // the client went away
}

func (f *fakeAPI) encode(object runtime.Object) []byte {
	data, err := runtime.Encode(protobuf.NewSerializer(f.scheme, f.scheme), object)
	if err != nil {
		panic(err)
	}
	return data
}

func (f *fakeAPI) serveNode(w http.ResponseWriter, name string) {
	f.mu.Lock()
	labels, ok := f.nodes[name]
	labels = maps.Clone(labels)
	f.mu.Unlock()
	if !ok {
		f.status(w, failure(http.StatusNotFound, meta.StatusReasonNotFound))
		return
	}
	f.reply(w, http.StatusOK, &meta.PartialObjectMetadata{
		TypeMeta:   meta.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels},
	})
}

// selected returns the slices of a selector, and the version they are of.
func (f *fakeAPI) selected(selector string) ([]*discovery.EndpointSlice, int) {
	want, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	var list []*discovery.EndpointSlice
	for _, name := range slices.Sorted(maps.Keys(f.slices)) {
		if s := f.slices[name]; f.deaf || want.Matches(labels.Set(s.Labels)) {
			list = append(list, s)
		}
	}
	return list, f.version
}

func (f *fakeAPI) serveList(w http.ResponseWriter, selector string) {
	f.mu.Lock()
	selected, version := f.selected(selector)
	f.mu.Unlock()
	list := &discovery.EndpointSliceList{
		TypeMeta: meta.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"},
		ListMeta: meta.ListMeta{ResourceVersion: strconv.Itoa(version)},
	}
	for _, s := range selected {
		list.Items = append(list.Items, *s)
	}
	f.reply(w, http.StatusOK, list)
}

// serveWatch streams: all that is there first if asked for, then what changes.
func (f *fakeAPI) serveWatch(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	at, _ := strconv.Atoi(query.Get("resourceVersion"))
	stream := query.Get("sendInitialEvents") == "true"
	f.mu.Lock()
	cut := f.cut
	initial, version := f.selected(query.Get("labelSelector"))
	gone := !stream && at < f.oldest
	f.mu.Unlock()

	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
	w.WriteHeader(http.StatusOK)
	if gone {
		f.event(w, "ERROR", failure(http.StatusGone, meta.StatusReasonExpired))
		return
	}
	if stream {
		for _, s := range initial {
			f.event(w, "ADDED", s)
		}
		f.event(w, "BOOKMARK", bookmark(version, map[string]string{meta.InitialEventsAnnotationKey: "true"}))
		at = version
	}
	f.follow(w, r, at, cut)
}

// follow sends what changes after a version, until cut or refused.
func (f *fakeAPI) follow(w http.ResponseWriter, r *http.Request, at int, cut <-chan struct{}) {
	for {
		changed, due, now, status := f.after(at, r)
		if status != nil {
			f.event(w, "ERROR", status)
			return
		}
		for _, c := range due {
			f.event(w, c.kind, c.slice)
		}
		if at = max(at, now); len(due) == 0 {
			f.event(w, "BOOKMARK", bookmark(at, nil))
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// after returns what changed after a version, and what ends the watch instead.
func (f *fakeAPI) after(at int, r *http.Request) (changed <-chan struct{}, due []change, now int, status *meta.Status) {
	want, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.history {
		if c.version > at && (f.deaf || want.Matches(labels.Set(c.slice.Labels))) {
			due = append(due, c)
		}
	}
	status = f.spoil
	if status == nil && f.refuse != nil {
		status = f.refuse(r)
	}
	return f.changed, due, f.version, status
}

func bookmark(version int, annotations map[string]string) *discovery.EndpointSlice {
	return &discovery.EndpointSlice{
		TypeMeta:   meta.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: meta.ObjectMeta{ResourceVersion: strconv.Itoa(version), Annotations: annotations},
	}
}

// event writes one frame: the length, then the event.
func (f *fakeAPI) event(w http.ResponseWriter, kind string, object runtime.Object) {
	event := meta.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: f.encode(object)}}
	data, err := event.Marshal()
	if err != nil {
		panic(err)
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	_, _ = w.Write(append(frame, data...)) // the client went away
}

// slice makes an IPv4 slice of a Service with ready endpoints.
func slice(name, service string, addresses ...string) *discovery.EndpointSlice {
	yes, no := true, false
	udp, tcp := meta53("UDP"), meta53("TCP")
	s := &discovery.EndpointSlice{
		ObjectMeta: meta.ObjectMeta{
			Namespace: "kube-system", Name: name,
			Labels: map[string]string{discovery.LabelServiceName: service, "k8s-app": "kube-dns"},
		},
		AddressType: discovery.AddressTypeIPv4,
		Ports:       []discovery.EndpointPort{udp, tcp},
	}
	for i, a := range addresses {
		node := fmt.Sprintf("n%d", i+1)
		s.Endpoints = append(s.Endpoints, discovery.Endpoint{
			Addresses:  []string{a},
			Conditions: discovery.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
			NodeName:   &node,
		})
	}
	return s
}

// within waits until a condition holds.
func within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within %v: %s", limit, what)
}
