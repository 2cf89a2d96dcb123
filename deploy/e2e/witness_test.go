package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
)

// witness is another client that watches the slices of a stage. The controller
// may take a second to write one: it tries again after 1 s when its own cache
// lags. The time from when the witness sees a slice is the observer's own.
type witness struct {
	t    *testing.T
	mu   sync.Mutex
	last time.Time
}

func newWitness(t *testing.T, s *cluster.Stage) *witness {
	w := &witness{t: t}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			w.watch(ctx, s.Namespace)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

// watch takes note of events until the connection ends.
func (w *witness) watch(ctx context.Context, namespace string) {
	seconds := int64(600)
	slices, err := shared.cluster.Admin.DiscoveryV1().EndpointSlices(namespace).Watch(ctx, metav1.ListOptions{TimeoutSeconds: &seconds})
	if err != nil {
		time.Sleep(10 * time.Millisecond) // the API server may be away
		return
	}
	defer slices.Stop()
	for range slices.ResultChan() {
		w.mu.Lock()
		w.last = time.Now()
		w.mu.Unlock()
	}
}

// since returns when the last slice was written after a change, and waits for
// it, since it may have come here later than elsewhere.
func (w *witness) since(change time.Time) time.Time {
	w.t.Helper()
	var last time.Time
	waitFor(w.t, "the witness sees a slice", patience, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		last = w.last
		return last.After(change)
	})
	return last
}
