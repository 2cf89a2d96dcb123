package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxSnapshot bounds what is read, in bytes; 5 000 endpoints are 1.5 MB.
const maxSnapshot = 16 << 20

// snapshotFile is the Store at a path.
type snapshotFile string

// Name implements [Store].
func (f snapshotFile) Name() string { return string(f) }

// Load implements [Store].
func (f snapshotFile) Load(context.Context) ([]byte, error) {
	removeLeftovers(string(f))
	return readSnapshot(string(f))
}

// Save implements [Store].
func (f snapshotFile) Save(data []byte) error { return writeSnapshot(string(f), data) }

// readSnapshot returns the file, or nil if there is none.
func readSnapshot(path string) ([]byte, error) {
	// Without waiting: opening a pipe waits for a writer, and reading it for more.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Join(SnapshotUnreadable, err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, SnapshotNoFile
	}
	data, err := io.ReadAll(io.LimitReader(file, maxSnapshot+1))
	switch {
	case err != nil:
		return nil, errors.Join(SnapshotUnreadable, err)
	case len(data) > maxSnapshot:
		return nil, SnapshotCorrupt
	}
	return data, nil
}

// writeSnapshot replaces the file in one step that survives a loss of power:
// afterwards there is the old file or the new one, whole.
func writeSnapshot(path string, data []byte) (err error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	// CreateTemp makes it readable for the owner only.
	file, err := os.CreateTemp(folder, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// removeLeftovers removes files of writers that died. Another process may be
// writing one now.
func removeLeftovers(path string) {
	found, _ := filepath.Glob(path + ".*") // a name that is no pattern has no leftovers
	for _, name := range found {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(name)
		}
	}
}

// syncFolder makes a rename in the folder last.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the snapshot is written, but may not outlast a loss of power: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}
