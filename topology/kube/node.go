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
	return &Node{cfg: cfg, contact: newContact(cfg.Now, cfg.Log)}, nil
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
		if !pause(ctx, n.cfg.Every*9/10+jitter(n.cfg.Every/5)) {
			return nil
		}
	}
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
