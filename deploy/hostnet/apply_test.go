package hostnet_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// TestTheTextIsWhatTheKernelGets loads the golden files with nft, and compares what
// it lists then with what it lists after Apply.
func TestTheTextIsWhatTheKernelGets(t *testing.T) {
	for name, state := range golden() {
		t.Run(name, func(t *testing.T) {
			byText, byApply := space.New(t), space.New(t)
			byText.Run(t, "nft", "-f", filepath.Join("testdata", name+".nft"))
			host := node{Node: space.Node{Space: byApply}}.openHost(t)
			if _, err := host.Apply(state); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(ruleset(t, byText), ruleset(t, byApply)); diff != "" {
				t.Errorf("rule set (-text +Apply):\n%s", diff)
			}
		})
	}
}

// ruleset lists what is there, without counts and remaining times.
func ruleset(t *testing.T, s space.Space) string {
	t.Helper()
	counted := regexp.MustCompile(`packets \d+ bytes \d+|expires [0-9a-z]+`)
	return counted.ReplaceAllString(s.Run(t, "nft", "list", "ruleset"), "")
}

func TestApplyIsIdempotent(t *testing.T) {
	for name, state := range golden() {
		t.Run(name, func(t *testing.T) {
			host := node{Node: space.Node{Space: space.New(t)}}.openHost(t)
			first, err := host.Apply(state)
			if err != nil {
				t.Fatal(err)
			}
			if state.Mode != hostnet.None && len(first.Changed) == 0 {
				t.Error("the first Apply changed nothing")
			}
			found, err := host.Read(state)
			if err != nil {
				t.Fatal(err)
			}
			if missing := found.Missing(state); len(missing) > 0 {
				t.Errorf("missing after Apply: %q", missing)
			}
			second, err := host.Apply(state)
			if err != nil {
				t.Fatal(err)
			}
			if len(second.Changed) > 0 {
				t.Errorf("the second Apply changed %q", second.Changed)
			}
		})
	}
}
