package hostnet_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMain turns the test binary into a responder when a test starts it as one.
func TestMain(m *testing.M) {
	if spec := os.Getenv("HOSTNET_RESPONDER"); spec != "" {
		fmt.Fprintln(os.Stderr, respond(spec))
		os.Exit(1)
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
