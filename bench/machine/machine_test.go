package machine_test

import (
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/bench/machine"
)

func TestThisMachineIsDescribed(t *testing.T) {
	m := machine.Describe("v1.2.3")
	if m.Cores < 1 || m.Memory < 1<<26 || m.Kernel == "unknown" || !strings.HasPrefix(m.Go, "go1.") || m.Commit != "v1.2.3" {
		t.Errorf("%+v", m)
	}
	if text := m.String(); !strings.Contains(text, m.Kernel) || strings.Contains(text, "\n") {
		t.Errorf("%q", text)
	}
}
