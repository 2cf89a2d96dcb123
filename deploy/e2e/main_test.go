package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
)

// shared is what all tests use: one control plane, since its start takes longer
// than most of them.
var shared struct {
	cluster *cluster.Cluster // nil if there are no programs
	delays  delays
}

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	programs := os.Getenv("NODENS_CONTROL_PLANE")
	if programs == "" {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "nodens-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	began := time.Now()
	shared.cluster, err = cluster.Start(context.Background(), cluster.Config{Programs: programs, Folder: folder})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.cluster.Stop()
	fmt.Printf("the control plane serves after %v\n", time.Since(began).Round(time.Millisecond))
	status := m.Run()
	if status != 0 {
		fmt.Println(shared.cluster.Logs())
	}
	fmt.Println("over all", shared.delays.String())
	return status
}

// plane skips a test that has no control plane.
func plane(t *testing.T) {
	t.Helper()
	if shared.cluster == nil {
		missing(t, "etcd", "NODENS_CONTROL_PLANE names no folder with etcd, kube-apiserver, kube-controller-manager and kube-proxy; use make e2e")
	}
}

// stage gives a test its part of the cluster.
func stage(t *testing.T) *cluster.Stage {
	t.Helper()
	plane(t)
	return shared.cluster.Stage(t)
}

// missing skips a test for what is not there, or fails it where NODENS_REQUIRE
// says that it has to be.
func missing(t *testing.T, what, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("NODENS_REQUIRE"), ","), what) {
		t.Fatalf("%s is required: %s", what, why)
	}
	t.Skip(why)
}
