// Package lint holds the rules for the tree as a whole: the import law as tests
// of the main module, so that plain "go test ./..." enforces it, and the scripts
// behind make lint. Rules for a single package are in tools/house.
package lint_test

// module is the prefix of our own import paths.
const module = "github.com/nodens-dns/nodens"

// testKit is what any test may import and, apart from bench, nothing else may.
const testKit = "forwarder/dnstest"

// A room is a package of ours, by its folder, or all of a folder when it ends
// in "/...".
type room struct {
	path string
	// may lists the rooms its code imports; "..." is every room but the test kit.
	may []string
	// tests lists what its tests import beyond that, itself and the test kit.
	tests []string
}

// rooms is the drawing of the house. An arrow that is not here is not allowed,
// and neither is a package without a line.
func rooms() []room {
	return []room{
		// A DNS forwarder, which knows nothing of Kubernetes.
		{
			path:  "forwarder",
			may:   []string{"forwarder/access", "forwarder/wire", "forwarder/cache", "forwarder/rules", "forwarder/upstream"},
			tests: []string{"forwarder/listener"},
		},
		{path: "forwarder/access"}, // addresses and times: it knows no DNS
		{path: "forwarder/wire"},
		{path: "forwarder/cache", may: []string{"forwarder/wire"}},
		{path: "forwarder/dnstap"}, // bytes, addresses and times
		{path: "forwarder/rules", may: []string{"forwarder/wire"}},
		{path: "forwarder/upstream", may: []string{"forwarder/wire"}, tests: []string{"bench/space"}},
		{path: "forwarder/listener"}, // sockets and bytes: it knows no DNS either
		{
			path: "forwarder/dnstest",
			may:  []string{"forwarder", "forwarder/wire", "forwarder/cache", "forwarder/upstream", "forwarder/listener"},
		},

		// The endpoints of a cluster, which know nothing of DNS.
		{path: "topology"},
		{path: "topology/file", may: []string{"topology"}},
		{path: "topology/kube", may: []string{"topology"}},

		// The two halves meet in the wiring, in plain values.
		{path: "cmd/...", may: []string{"..."}},

		// How it lands on a node.
		{path: "deploy/image/..."}, // what the image is made of
		{path: "deploy/hostnet", tests: []string{"bench/space"}},
		{path: "deploy/neverdark", tests: []string{"bench/...", "deploy/hostnet"}}, // only tests
		// serve is a peer of the guard, not a part. Who listens at an address is asked in
		// one place.
		{path: "deploy/guard", may: []string{"deploy/hostnet", "forwarder/listener"}, tests: []string{"bench/space"}},

		// How we know what it does. The ruler is not made of what it measures.
		{
			path:  "bench/...",
			may:   []string{"bench/...", "forwarder/dnstest"},
			tests: []string{"forwarder/..."},
		},

		// This law.
		{path: "lint"},
	}
}

// A ban keeps a package of somebody else, and all below it, in the rooms that
// need it. Exactly one of only and not is set.
type ban struct {
	path   string
	only   []string // rooms that may import it
	not    []string // rooms that may not
	tests  bool     // tests are bound too
	reason string
}

func bans() []ban {
	hot := []string{"forwarder/access", "forwarder/wire", "forwarder/cache", "forwarder/listener"}
	wire := []string{"forwarder/wire"}
	return []ban{
		{path: "github.com/prometheus", only: []string{"cmd/..."}, tests: true, reason: "the core counts in plain numbers, the edge names them"},
		{path: "github.com/coredns", only: []string{"cmd/..."}, tests: true, reason: "a Corefile is one way to write the configuration, and what it is read with goes no further"},
		{path: "k8s.io", only: []string{"topology/kube"}, tests: true, reason: "Kubernetes objects end at the door, where they become small values"},
		{path: "github.com/dnstap", only: []string{"forwarder/dnstap"}, reason: "one package knows the format"},
		{path: "github.com/hashicorp/golang-lru/v2", only: []string{"forwarder/cache"}, reason: "there is one cache, with one budget"},
		{path: "github.com/miekg/dns", not: append(hot, "topology/..."), reason: "a hit borrows the bytes and never unpacks a message, and topology knows no DNS"},
		{path: "go.uber.org/zap", not: hot, reason: "nothing is logged per query"},
		{path: "flag", only: []string{"cmd/...", "bench/..."}, reason: "a setting arrives in a Config, so that its default is written once"},
		{path: "net", not: wire, reason: "wire is bytes only"},
		{path: "time", not: wire, reason: "wire is bytes only, and a TTL is a number of seconds"},
		{path: "log", not: wire, reason: "wire is bytes only"},
		{path: "fmt", not: wire, reason: "fmt allocates, and errors of wire are package-level values"},
	}
}

// notYet lists what the rules name before it exists. Once it exists it has to
// leave the list, so that no rule outlives its subject in silence.
func notYet() []string {
	return nil
}
