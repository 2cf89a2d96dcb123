package topology

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"
)

// How many endpoints of a snapshot are asked who they are: all of the node, and
// enough of the others to be served.
const (
	askZone    = 4
	askCluster = 2
)

// restore puts the endpoints of the snapshot in force, if there is one. It takes
// at most Probe.
func (k *Keeper) restore(ctx context.Context) {
	switch {
	case k.snapshot == nil:
	case k.cfg.Verify == nil:
		k.adopt(nil)
	default:
		k.verify(ctx, asked(k.cfg.Watcher.preview(k.snapshot.Slices, k.snapshot.Zone)))
	}
}

// load reads the file and keeps why it cannot be used.
func (k *Keeper) load(ctx context.Context) {
	snapshot, err := k.read(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		k.stats.Refused = refusal
		fallthrough
	case err != nil:
		k.cfg.Log.Warn("the endpoints kept on disk are not used", zap.String("path", k.stats.Path), zap.Error(err))
	case snapshot != nil:
		k.snapshot = snapshot
		k.stats.Found, k.stats.SavedAt = true, snapshot.Saved
	}
}

func (k *Keeper) read(ctx context.Context) (*Snapshot, error) {
	data, err := k.cfg.Store.Load(ctx)
	if data == nil || err != nil {
		return nil, err
	}
	cluster, err := k.cfg.Cluster()
	if err != nil {
		return nil, errors.Join(SnapshotOtherCluster, err)
	}
	s, err := DecodeSnapshot(data, Snapshot{Cluster: cluster, Namespace: k.cfg.Namespace, Service: k.cfg.Service})
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// asked picks the addresses to verify, nearest first.
func asked(t Table) []netip.AddrPort {
	var list []netip.AddrPort
	add := func(members []Member, most int) {
		for _, m := range members[:min(most, len(members))] {
			if m.UDP.IsValid() {
				list = append(list, m.UDP)
			} else {
				list = append(list, m.TCP)
			}
		}
	}
	add(t.Tiers[TierNode], askZone)
	add(t.Tiers[TierZone], askZone)
	add(t.Tiers[TierCluster], askCluster)
	if len(list) == 0 {
		add(t.Last, askZone)
	}
	return list
}

// verify asks all at once. The first that proves itself is put in force at
// once, the others when all have answered or the time is over. What proves itself
// is an address, at whatever port: it is one host or pod.
func (k *Keeper) verify(ctx context.Context, servers []netip.AddrPort) {
	ctx, cancel := context.WithTimeout(ctx, k.cfg.Probe)
	defer cancel()
	proved := make(chan netip.Addr, len(servers))
	var running sync.WaitGroup
	for _, server := range servers {
		running.Go(func() {
			if k.cfg.Verify(ctx, server) {
				proved <- server.Addr()
			}
		})
	}
	go func() {
		running.Wait()
		close(proved)
	}()
	good := make(map[netip.Addr]bool)
	for addr := range proved {
		good[addr] = true
		if len(good) == 1 {
			k.adopt(good)
		}
	}
	if len(good) > 1 {
		k.adopt(good)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.Unverified = len(servers) - len(good)
}

// adopt hands the endpoints with a good address to the Watcher, all of them for
// nil.
func (k *Keeper) adopt(good map[netip.Addr]bool) {
	n := k.cfg.Watcher.restore(k.snapshot, good)
	k.mu.Lock()
	first := k.stats.Restored == 0
	k.stats.Restored = n
	k.mu.Unlock()
	if first && n > 0 {
		k.cfg.Log.Info("endpoints kept on disk are in force until the API server tells better ones",
			zap.Int("endpoints", n), zap.Duration("age", time.Since(k.snapshot.Saved).Round(time.Second)))
	}
}
