package space

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Needs skips the test where something is missing, or fails it where
// NODENS_REQUIRE counts on it.
func Needs(t testing.TB, what string, there bool) {
	t.Helper()
	switch {
	case there:
	case slices.Contains(strings.Split(os.Getenv("NODENS_REQUIRE"), ","), what):
		t.Fatalf("this run counts on %s, and it is missing", what)
	default:
		t.Skipf("needs %s", what)
	}
}
