package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxFile bounds the files that people write for us: 1 MiB.
const maxFile = 1 << 20

// readFile reads a regular file of at most maxFile bytes whole. Anything else
// could wait for ever, as a pipe does, or never end, as a device.
func readFile(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %s", path, shortBytes(maxFile))
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// openFile opens a regular file. Without waiting: opening a pipe waits for a
// writer.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}
