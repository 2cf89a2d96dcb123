package proof

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// nodens is the binary under test.
var nodens string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nodens-proof-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if nodens = os.Getenv("NODENS_BINARY"); nodens == "" {
		nodens = filepath.Join(dir, "nodens")
		build := exec.Command("go", "build", "-o", nodens, "github.com/nodens-dns/nodens/cmd/nodens")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
	}
	removeLeftovers()
	code := m.Run()
	printFigures()
	return code
}

// needs skips the test where something is missing, or fails it where
// NODENS_REQUIRE counts on it.
func needs(t *testing.T, what string, there bool) {
	t.Helper()
	switch {
	case there:
	case slices.Contains(strings.Split(os.Getenv("NODENS_REQUIRE"), ","), what):
		t.Fatalf("this run counts on %s, and it is missing", what)
	default:
		t.Skipf("needs %s", what)
	}
}

// full tells whether the rows are as long as they should be.
func full() bool { return os.Getenv("NODENS_FULL") != "" }

// form is one of two values, by the form of the run.
func form[T any](short, long T) T {
	if full() {
		return long
	}
	return short
}

// rate is the queries per second of a row, of which a part are misses.
func rate() float64 { return form(2000.0, 5000.0) }

// missShare is the part of the queries that no cache can answer.
const missShare = 0.3

// budget is how long nodens may try to answer a query of the cluster.
const budget = 2 * time.Second

// waitFor waits until a condition holds, and tells how long it took.
func waitFor(t *testing.T, what string, patience time.Duration, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}
