package guard_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMain turns the test binary into another process when a test starts it as one.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(strings.Fields(role)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
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
