package file

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nodens-dns/nodens/topology"
	"go.uber.org/zap"
)

// Defaults and bounds of Config.
const (
	defaultPoll   = 10 * time.Second
	defaultSettle = 50 * time.Millisecond
	maxSize       = 64 << 20 // bytes; far above 5 000 endpoints in YAML
)

// Config configures a Source.
type Config struct {
	// Path of the file. Required.
	Path string
	// Required makes Run fail if the first read fails. Default false: Run
	// waits for a file it can read.
	Required bool
	// Poll is how often the file is looked at when no change was announced.
	// Default 10 s, at least 10 ms.
	Poll time.Duration
	// Settle is how long the file must be quiet after a change before it is
	// read, so that one written in place is not read half. Default 50 ms, at
	// most 10 s.
	Settle time.Duration
	// Log gets one line per bad file and one per new content. Default nil:
	// silent.
	Log *zap.Logger
}

// Stats counts what happened since New.
type Stats struct {
	Applied uint64 // contents given to the sink
	Bad     uint64 // different contents, or failures to read, that changed nothing
	// LastError is why the file as it is now is not in force; "" = it is.
	LastError string
}

// Source emits the slices of a file.
type Source struct {
	cfg Config

	applied [sha256.Size]byte // content in force; Run's alone, like all up to mu
	bad     string            // last complaint, so as not to repeat it
	synced  bool

	mu    sync.Mutex // guards stats
	stats Stats
}

var _ topology.Source = (*Source)(nil)

// New makes a Source; the file is not looked at yet.
func New(cfg Config) (*Source, error) {
	if cfg.Path == "" {
		return nil, errors.New("topology file: Config.Path must be set")
	}
	if cfg.Poll == 0 {
		cfg.Poll = defaultPoll
	}
	if cfg.Poll < 10*time.Millisecond {
		return nil, errors.New("topology file: Config.Poll must be at least 10ms")
	}
	if cfg.Settle == 0 {
		cfg.Settle = defaultSettle
	}
	if cfg.Settle < 0 || cfg.Settle > 10*time.Second {
		return nil, errors.New("topology file: Config.Settle must be 0 to 10s")
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	cfg.Path = filepath.Clean(cfg.Path)
	return &Source{cfg: cfg}, nil
}

// Stats returns the counters. It may be called at any time.
func (s *Source) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Run implements [topology.Source]. It may be called once.
func (s *Source) Run(ctx context.Context, sink topology.Sink) error {
	w := newWatch(s.cfg.Path, s.cfg.Log)
	defer w.close()
	err := s.read(sink)
	if err != nil && s.cfg.Required {
		return err // for the caller to tell
	}
	for s.complain(err); w.wait(ctx, s.cfg.Poll, s.cfg.Settle); s.complain(err) {
		err = s.read(sink)
	}
	return nil
}

// read applies the file if it has something new and good to say.
func (s *Source) read(sink topology.Sink) error {
	data, err := load(s.cfg.Path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if s.synced && sum == s.applied {
		s.clear()
		return nil
	}
	list, err := Parse(s.cfg.Path, data)
	if err != nil {
		return err
	}
	s.apply(sink, list)
	s.applied, s.synced = sum, true
	s.cfg.Log.Info("read endpoint slices", zap.String("file", s.cfg.Path), zap.Int("slices", len(list)))
	return nil
}

func (s *Source) apply(sink topology.Sink, list []topology.Slice) {
	now := time.Now()
	for i := range list {
		list[i].Seen = now
	}
	sink.Replace(list)
	s.clear()
	s.mu.Lock()
	s.stats.Applied++
	s.mu.Unlock()
	sink.Synced()
}

// complain logs and counts a failure once, however often it is met: the old state
// stays. nil is none.
func (s *Source) complain(err error) {
	if err == nil || s.bad == err.Error() {
		return
	}
	s.bad = err.Error()
	s.mu.Lock()
	s.stats.Bad++
	s.stats.LastError = s.bad
	s.mu.Unlock()
	text := "cannot use the file; what it said before stays in force"
	if !s.synced {
		text = "cannot use the file; waiting for a good one"
	}
	s.cfg.Log.Warn(text, zap.String("file", s.cfg.Path), zap.Error(err))
}

// clear forgets the last complaint.
func (s *Source) clear() {
	s.bad = ""
	s.mu.Lock()
	s.stats.LastError = ""
	s.mu.Unlock()
}

// Read reads a file of EndpointSlices once, as a [Source] does.
func Read(path string) ([]topology.Slice, error) {
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// load reads the file whole.
func load(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("topology file %s does not exist; create it, e.g. with kubectl get endpointslices -o yaml, or correct the path: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("topology file %s cannot be read: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("topology file %s is not a regular file; name a file", path)
	case info.Size() > maxSize:
		return nil, fmt.Errorf("topology file %s has %d bytes; at most %d are read", path, info.Size(), maxSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("topology file %s cannot be read: %w", path, err)
	}
	return data, nil
}
