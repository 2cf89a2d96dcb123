// Command sbom prints what a Go binary is made of, as an SPDX 2.3 document: the
// module it was built from, every module in it with its version, and the
// compiler. It reads what the Go command wrote into the binary, so that it says
// what was built and not what was meant to be. Only the version of the module itself is
// not there, where the linker was told it and paths were trimmed; it is given.
//
//	sbom BINARY VERSION
//
// The time of the document is that of SOURCE_DATE_EPOCH, or the epoch: the same
// binary always has the same document.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, getenv func(string) string, stdout io.Writer) error {
	if len(args) != 2 || args[1] == "" {
		return errors.New("usage: sbom BINARY VERSION")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("%s says nothing of its modules: %w; name a binary that the Go command built", args[0], err)
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("binary cannot be read: %w", err)
	}
	sum := sha256.Sum256(data)
	seconds, err := strconv.ParseInt(getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		seconds = 0
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(describe(info, args[1], hex.EncodeToString(sum[:]), time.Unix(seconds, 0)))
}
