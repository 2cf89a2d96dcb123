package hostnet_test

import (
	"fmt"
	"os"
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
