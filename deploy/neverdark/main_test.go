package neverdark

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/world"
)

// nodens is the binary under test.
var nodens string

func TestMain(m *testing.M) {
	if dir := os.Getenv("NEVERDARK_HOG"); dir != "" {
		hog(dir)
	}
	if os.Getenv(lightRole) != "" {
		answerLightly()
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		return m.Run() // every row skips
	}
	dir, err := os.MkdirTemp("", "nodens-neverdark-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// A nodens that runs as another user has to find its binary.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if nodens, err = world.Nodens(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	printFigures()
	return code
}

// rate is the queries per second of a row. NODENS_RATE is for a machine that is too
// small for a full one.
func rate() float64 {
	if own, err := strconv.ParseFloat(os.Getenv("NODENS_RATE"), 64); err == nil {
		return own
	}
	return space.Form(1500.0, 20000.0)
}

// waitFor waits until a condition holds, and tells how long it took.
func waitFor(t *testing.T, what string, patience time.Duration, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}
