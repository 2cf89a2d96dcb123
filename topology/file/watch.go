package file

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

// configMapLink is the symlink that the kubelet swaps when a mounted ConfigMap
// changes; the files beside it are symlinks through it.
const configMapLink = "..data"

// watch announces changes of one file. It watches the folder, not the file: a
// rename or a symlink swap puts another file in its place.
type watch struct {
	path    string
	folder  string
	log     *zap.Logger
	notify  *fsnotify.Watcher // nil if the node has no inotify instance left
	refused bool              // the folder could not be watched; said once
}

func newWatch(path string, log *zap.Logger) *watch {
	w := &watch{path: path, folder: filepath.Dir(path), log: log}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("no file events, only polling", zap.String("file", path), zap.Error(err))
		return w
	}
	w.notify = notify
	_ = notify.Add(w.folder) // attach tells why not, if that lasts
	return w
}

func (w *watch) close() {
	if w.notify != nil {
		_ = w.notify.Close() // it has nothing to report that matters now
	}
}

// attach watches the folder, also when it was missing before or made anew; to
// attach twice is no mistake.
func (w *watch) attach() {
	err := w.notify.Add(w.folder)
	if err != nil && !w.refused {
		w.log.Warn("cannot watch the folder, only polling for now",
			zap.String("folder", w.folder), zap.Error(err))
	}
	w.refused = err != nil
}

// wait returns true when the file should be read: after a change and a time of
// quiet, or because it was not looked at for a while. It returns false when ctx
// ends.
func (w *watch) wait(ctx context.Context, poll, settle time.Duration) bool {
	deadline := time.Now().Add(poll) // also for a file that never gets quiet
	timer := time.NewTimer(poll)
	defer timer.Stop()
	var events chan fsnotify.Event
	var faults chan error
	if w.notify != nil {
		events, faults = w.notify.Events, w.notify.Errors
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			if w.notify != nil {
				w.attach()
			}
			return true
		case e := <-events:
			if w.concerns(e.Name) {
				timer.Reset(min(settle, time.Until(deadline)))
			}
		case <-faults: // events were lost: look
			timer.Reset(min(settle, time.Until(deadline)))
		}
	}
}

// concerns reports whether an event can change what the path leads to.
func (w *watch) concerns(name string) bool {
	base := filepath.Base(name)
	return base == filepath.Base(w.path) || base == configMapLink
}
