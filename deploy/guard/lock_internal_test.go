package guard

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// The file of a lock goes when nobody holds it, and a guard that had it open by then ends
// with the file that the next one finds.
func TestRemoveLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guard.lock")
	expect := func(what string, want bool) {
		t.Helper()
		if removed, err := RemoveLock(path); removed != want || err != nil {
			t.Errorf("%s: removed %v, %v", what, removed, err)
		}
	}
	expect("without a file", false)
	first, err := takeLock(t.Context(), path, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	expect("while it is held", false)

	waits := make(chan struct{})
	second := make(chan *os.File, 1)
	go func() {
		file, err := takeLock(context.Background(), path, func(int) { close(waits) })
		if err != nil {
			t.Error(err)
		}
		second <- file
	}()
	<-waits
	if err := os.Remove(path); err != nil { // as RemoveLock does while it holds it
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	file := <-second
	if _, held := Holder(path); !held || !isAt(file, path) {
		t.Error("the second guard holds a lock that nobody finds")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	expect("at the end", true)
	expect("again", false)
}
