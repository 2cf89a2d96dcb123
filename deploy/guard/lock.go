package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockTry is how often a lock that another guard holds is tried. In between nobody
// renews what the kernel decides by, so it is much less than holdTime.
const lockTry = 50 * time.Millisecond

// lockLook is how often the owner looks whether the lock's file is still there.
const lockLook = time.Second

// takeLock waits until the lock is ours or ctx ends. The lock ends with the file, and
// so with the process, however that ends.
func takeLock(ctx context.Context, path string, held func(pid int)) (*os.File, error) {
	for told := false; ; {
		file, err := tryLock(path)
		if file != nil || err != nil {
			return file, err
		}
		if !told {
			told = true
			held(readPID(path))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockTry):
		}
	}
}

// tryLock takes the lock; the file is nil if another guard has it. Each try opens the
// file anew: the one before may have been removed.
func tryLock(path string) (*os.File, error) {
	file, err := openLock(path)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil && isAt(file, path):
		return file, writePID(file)
	case err == nil, errors.Is(err, unix.EWOULDBLOCK):
		return nil, file.Close()
	}
	return nil, errors.Join(fmt.Errorf("the lock %s cannot be taken: %w", path, err), file.Close())
}

func openLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("the folder of the lock cannot be made: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("the lock cannot be opened: %w", err)
	}
	return file, nil
}

// keepLock returns when the file is not the one at path any more, or ctx ends.
func keepLock(ctx context.Context, file *os.File, path string) {
	ticker := time.NewTicker(lockLook)
	defer ticker.Stop()
	for isAt(file, path) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// isAt tells whether the file is the one at path.
func isAt(file *os.File, path string) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data))) // 0: nobody knows
	return pid
}

// RemoveLock removes the file of a lock that nobody holds, and tells whether it did.
func RemoveLock(path string) (removed bool, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("the lock cannot be opened: %w", err)
	}
	defer file.Close() // only now may another guard have it
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil || !isAt(file, path) {
		return false, nil
	}
	return true, os.Remove(path)
}

// Holder is the process that holds the lock at path, in the words of its own namespace
// of processes, and whether there is one.
func Holder(path string) (pid int, held bool) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return 0, false // and the lock ends with the file
	}
	return readPID(path), true
}
