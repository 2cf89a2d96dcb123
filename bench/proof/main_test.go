package proof

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/machine"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/world"
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
	if nodens, err = world.Nodens(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	removeLeftovers()
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output() // without git it is unknown
	on := machine.Describe(strings.TrimSpace(string(commit)))
	code := m.Run()
	if err := tellFigures(on); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// rate is the queries per second of a row, of which a part are misses.
func rate() float64 { return space.Form(2000.0, 5000.0) }

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
