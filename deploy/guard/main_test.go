package guard_test

import (
	"fmt"
	"os"
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
