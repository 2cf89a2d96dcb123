package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// stored is the file of a guard.
type stored struct {
	Format string    `json:"format"`
	Saved  time.Time `json:"saved"`
	Table  Table     `json:"table"`
	Kept   []kept    `json:"kept,omitempty"`
}

const (
	storeFormat = "nodens-guard-1"
	maxKept     = 16 // names
	// storeEvery is how often the file is written at most.
	storeEvery = time.Second
)

// store keeps what a node needs at a start on disk. Its methods belong to the loop but
// for run, which writes.
type store struct {
	path string
	log  *zap.Logger
	wake chan struct{}

	mu      sync.Mutex // guards all below
	content stored
	owned   bool // by a guard that owns the node: others do not write
	problem string
}

func newStore(path string, log *zap.Logger) *store {
	s := &store{path: path, log: log, wake: make(chan struct{}, 1)}
	content, err := readStored(path)
	if err != nil {
		s.problem = err.Error()
		log.Warn("what was kept on disk is not used: the fallback waits for serve", zap.Error(err))
	}
	s.content = content
	return s
}

// readStored reads the file. That there is none is no error.
func readStored(path string) (stored, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return stored{}, nil
	}
	if err != nil {
		return stored{}, fmt.Errorf("the file of endpoints cannot be read: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, 2*maxMessage))
	if err != nil {
		return stored{}, fmt.Errorf("the file of endpoints cannot be read: %w", err)
	}
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return stored{}, fmt.Errorf("the file of endpoints %s is damaged, remove it: %w", path, err)
	}
	if s.Format != storeFormat {
		return stored{}, fmt.Errorf("the file of endpoints %s has the format %q and not %q, remove it", path, s.Format, storeFormat)
	}
	return s, nil
}

func (s *store) table() (Table, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.content.Table, !s.content.Table.empty()
}

func (s *store) all() []kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.content.Kept)
}

func (s *store) keepTable(t Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content.Table = t
}

// put keeps bytes under a name, in the place of former ones.
func (s *store) put(k kept) {
	s.mu.Lock()
	list := slices.DeleteFunc(slices.Clone(s.content.Kept), func(o kept) bool { return o.Name == k.Name })
	if len(list) < maxKept {
		s.content.Kept = append(list, k)
	}
	owned := s.owned
	s.mu.Unlock()
	if owned {
		s.write()
	}
}

// write has the file written. The caller owns the node.
func (s *store) write() {
	s.mu.Lock()
	s.owned = true
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run writes until ctx ends, and once more then if something waits.
func (s *store) run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
			s.save()
		case <-ctx.Done():
			select {
			case <-s.wake:
				s.save()
			default:
			}
			return
		}
		select {
		case <-time.After(storeEvery):
		case <-ctx.Done():
		}
	}
}

func (s *store) save() {
	s.mu.Lock()
	content := s.content
	s.mu.Unlock()
	if content.Table.empty() && len(content.Kept) == 0 {
		return
	}
	content.Format, content.Saved = storeFormat, time.Now().UTC().Truncate(time.Second)
	data, err := json.Marshal(content)
	if err == nil {
		err = replaceFile(s.path, data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != "" && problem != s.problem {
		s.log.Warn("the endpoints cannot be kept on disk: after a reboot the fallback waits for serve", zap.Error(err))
	}
	s.problem = problem
}

// replaceFile writes a file in one step that survives a loss of power.
func replaceFile(path string, data []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func (s *store) trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}
