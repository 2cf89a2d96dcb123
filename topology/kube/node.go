package kube

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

const defaultNodeEvery = 10 * time.Minute

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
	return errors.New("not yet")
}
