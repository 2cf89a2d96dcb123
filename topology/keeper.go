package topology

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Defaults of KeeperConfig.
const (
	defaultKeepEvery = 5 * time.Second
	defaultKeepProbe = 500 * time.Millisecond
)

// KeeperConfig configures a Keeper.
type KeeperConfig struct {
	// Watcher is whose world is kept and restored. Required.
	Watcher *Watcher
	// Folder of the file; it is made if it does not exist. The file is named
	// after namespace and Service, so that several may share a folder. Required
	// unless there is a Store.
	Folder string
	// Store keeps what the file would hold somewhere else. Default: the file.
	Store Store
	// Cluster identifies the cluster. It is called for each attempt; while it
	// fails, nothing is restored or saved. Required.
	Cluster func() (string, error)
	// Namespace and Service name what is kept, as it is configured.
	Namespace, Service string

	// Verify asks a restored endpoint who it is: an address may be another pod's
	// by now. It must end with its context. Default nil: every endpoint is
	// believed.
	Verify func(ctx context.Context, server netip.AddrPort) bool
	// Probe is how long the endpoints have to answer Verify, 10 ms to 5 s,
	// default 500 ms.
	Probe time.Duration
	// Every is how often the file is written at most, and how often a restore
	// that failed is tried again, 10 ms to 1 h, default 5 s.
	Every time.Duration

	// Log gets a line when a snapshot is restored, refused, or cannot be
	// written. Default nil: silent.
	Log *zap.Logger
}

// Store keeps the bytes of a snapshot.
type Store interface {
	// Name says what is kept where, for people.
	Name() string
	// Load returns what was kept, or nil if there is nothing. It may wait until
	// ctx ends.
	Load(ctx context.Context) ([]byte, error)
	// Save keeps data, which nobody changes later.
	Save(data []byte) error
}

// KeeperStats describes a Keeper.
type KeeperStats struct {
	Path   string
	Saves  uint64 // files written
	Failed uint64 // attempts to write that failed
	// LastError is why the last attempt to write failed; "" = it did not.
	LastError string
	// Refused is why the file that was there at the start is not used; "" = it
	// is, or there was none.
	Refused Refusal
	// Found says that there was a usable file at the start, SavedAt when it was
	// written. Restored is how many of its endpoints were put in force, and
	// Unverified how many of those that were asked did not prove who they are.
	Found                bool
	SavedAt              time.Time
	Restored, Unverified int
}

// Keeper keeps the endpoints of a Watcher on disk. What it restores is in force
// until a source says better; an empty world is never saved.
type Keeper struct {
	cfg KeeperConfig

	tried    chan struct{} // closed after the first attempt to restore
	snapshot *Snapshot     // as it was found; nil = none; Run's alone, like saved
	saved    uint64        // state of the world that was saved last

	mu    sync.Mutex // guards stats
	stats KeeperStats
}

// NewKeeper makes a Keeper; nothing is read yet.
func NewKeeper(cfg KeeperConfig) (*Keeper, error) {
	if cfg.Watcher == nil || (cfg.Folder == "" && cfg.Store == nil) || cfg.Cluster == nil {
		return nil, errors.New("topology: KeeperConfig.Watcher, Folder or Store, and Cluster must be set")
	}
	if cfg.Store == nil {
		// Neither name can hold a dot, so no two pairs share a file.
		cfg.Store = snapshotFile(filepath.Join(cfg.Folder, "endpoints."+cfg.Namespace+"."+cfg.Service+".json"))
	}
	if cfg.Probe == 0 {
		cfg.Probe = defaultKeepProbe
	}
	if cfg.Every == 0 {
		cfg.Every = defaultKeepEvery
	}
	switch {
	case cfg.Probe < 10*time.Millisecond || cfg.Probe > 5*time.Second:
		return nil, errors.New("topology: KeeperConfig.Probe must be 10ms to 5s")
	case cfg.Every < 10*time.Millisecond || cfg.Every > time.Hour:
		return nil, errors.New("topology: KeeperConfig.Every must be 10ms to 1h")
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	k := &Keeper{cfg: cfg, tried: make(chan struct{})}
	k.stats.Path = cfg.Store.Name()
	return k, nil
}

// Stats may be called at any time.
func (k *Keeper) Stats() KeeperStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stats
}

// Restored reports whether endpoints of a snapshot were put in force.
func (k *Keeper) Restored() bool { return k.Stats().Restored > 0 }

// Tried is closed when the first attempt to restore is over, within Probe: then
// it is known whether a source has to hurry.
func (k *Keeper) Tried() <-chan struct{} { return k.tried }

// Run restores, and tries again as long as that does not succeed and no source
// has said anything; and it saves, until ctx ends, and once more then. It
// returns nil. Call it once.
func (k *Keeper) Run(ctx context.Context) error {
	k.load(ctx)
	k.restore(ctx)
	close(k.tried)
	ticker := time.NewTicker(k.cfg.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			k.save()
			return nil
		case <-ticker.C:
		}
		if k.cfg.Watcher.confirmed() {
			k.snapshot = nil // the memory can go
			k.save()
		} else if !k.Restored() {
			k.restore(ctx)
		}
	}
}

// save writes the world if it is worth it and was not written already.
func (k *Keeper) save() {
	slices, zone, state := k.cfg.Watcher.keepable()
	if len(slices) == 0 || state == k.saved {
		return
	}
	err := k.write(Snapshot{Zone: zone, Slices: slices})
	if err == nil {
		k.saved = state
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.stats.Saves++
		k.stats.LastError = ""
		return
	}
	k.stats.Failed++
	if k.stats.LastError == "" {
		k.cfg.Log.Warn("endpoints cannot be kept on disk: a start without the API server would know none; mount a writable folder",
			zap.String("path", k.stats.Path), zap.Error(err))
	}
	k.stats.LastError = err.Error()
}

func (k *Keeper) write(s Snapshot) error {
	cluster, err := k.cfg.Cluster()
	if err != nil {
		return err
	}
	s.Cluster, s.Namespace, s.Service = cluster, k.cfg.Namespace, k.cfg.Service
	s.Saved = time.Now().UTC().Truncate(time.Second)
	data, err := s.Encode()
	if err != nil {
		return err
	}
	return k.cfg.Store.Save(data)
}
