package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const defaultNodeEvery = 10 * time.Minute

// zoneLabel is the label of a Node that names its zone.
const zoneLabel = "topology.kubernetes.io/zone"

// partial asks for metadata only: a Node with its list of images is 20 KB.
const partial = protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// NodeConfig configures a Node.
type NodeConfig struct {
	// Client is the connection. Required.
	Client *Client
	// Name of the Node object. Required.
	Name string
	// Publish is given the zone, "" for none, when it was read first and when it
	// changed, from the goroutine of Run. Required.
	Publish func(zone string)
	// Every is how often the object is read. The label hardly ever changes, and
	// a watch for it would cost each node more than it is worth. Default
	// 10 min, give or take a tenth; at least 10 ms.
	Every time.Duration
	// Listed is closed once the endpoints are known, one of which may tell the
	// zone too: what fails before is logged then. Default nil: at once.
	Listed <-chan struct{}
	// Now is the time since an arbitrary monotonic epoch. Required.
	Now func() time.Duration
	// Log gets a line when reading fails or works again. Default nil: silent.
	Log *zap.Logger
}

// Node reads the zone of one Node object. It needs the permission to get nodes,
// which cannot be narrowed to one; without it, it says so in its Status and
// tries again.
type Node struct {
	cfg     NodeConfig
	contact *contact
	unsaid  func() // logs what failed; nil = nothing to log; Run's alone
}

// NewNode makes a Node; nothing is sent yet.
func NewNode(cfg NodeConfig) (*Node, error) {
	if cfg.Client == nil || cfg.Name == "" || cfg.Publish == nil || cfg.Now == nil {
		return nil, errors.New("topology kube: NodeConfig.Client, Name, Publish and Now must be set")
	}
	orDefault(&cfg.Every, defaultNodeEvery)
	if cfg.Every < 10*time.Millisecond {
		return nil, errors.New("topology kube: NodeConfig.Every must be at least 10ms")
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Listed == nil {
		listed := make(chan struct{})
		close(listed)
		cfg.Listed = listed
	}
	n := &Node{cfg: cfg}
	n.contact = newContact(cfg.Now, cfg.Log, n.complain)
	return n, nil
}

// Status describes the last attempts; Namespace and Service are empty.
func (n *Node) Status() Status { return n.contact.snapshot() }

// Run reads until ctx ends and then returns nil. It may be called once.
func (n *Node) Run(ctx context.Context) error {
	known, zone := false, ""
	for {
		if now, err := n.read(ctx); err == nil && (!known || now != zone) {
			known, zone = true, now
			n.cfg.Publish(zone)
		}
		if !n.rest(ctx) {
			return nil
		}
	}
}

// complain keeps the line about a failure until it is known what it means.
func (n *Node) complain(fault Fault, err error) {
	n.unsaid = func() {
		n.cfg.Log.Warn("the Node of this node cannot be read: its zone is known while an endpoint on it tells it, or by the settings",
			zap.String("node", n.cfg.Name), zap.Stringer("fault", fault), zap.Error(err))
	}
}

// rest waits for the next attempt, and reports false if ctx ended first. What is
// unsaid is logged on the way, once the endpoints are listed.
func (n *Node) rest(ctx context.Context) bool {
	wait, cancel := context.WithTimeout(ctx, n.cfg.Every*9/10+jitter(n.cfg.Every/5))
	defer cancel()
	if n.unsaid != nil {
		select {
		case <-n.cfg.Listed:
			n.unsaid()
			n.unsaid = nil
		case <-wait.Done():
		}
	}
	<-wait.Done()
	return ctx.Err() == nil
}

// read asks for the metadata of the Node and nothing else of it.
func (n *Node) read(ctx context.Context) (zone string, err error) {
	client, err := n.cfg.Client.get()
	if err != nil {
		n.contact.failed(faultOf(err), err)
		return "", err
	}
	object := &meta.PartialObjectMetadata{}
	err = client.Get().AbsPath("/api/v1/nodes", n.cfg.Name).SetHeader("Accept", partial).MaxRetries(0).Do(ctx).Into(object)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		n.contact.failed(faultOf(err), n.explain(err))
		return "", err
	}
	n.contact.heard()
	n.unsaid = nil
	return object.Labels[zoneLabel], nil
}

// explain says what to do about an error.
func (n *Node) explain(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the zone is not read from the Node: grant get of nodes, or say the zone: %w", err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the name of this node is wrong; take spec.nodeName of the pod, never the host name: %w", err)
	}
	return fmt.Errorf("the zone is not read from the Node: %w", err)
}
