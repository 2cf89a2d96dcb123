package main

import (
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// reloads is what became of the last configuration that was read.
type reloads struct {
	mu   sync.Mutex
	last reloadResult
	// failed counts the files that could not be taken over.
	failed uint64
	// seen is what they held at the last look.
	seen [sha512.Size]byte
	// rest is how long a refused configuration is left alone, until due.
	rest time.Duration
	due  time.Time
}

// What was refused, and has not changed since, is tried again: the address or the file
// that was missing may have come. Not with every hint of a change in a busy folder, and
// ever more seldom.
const (
	restAtFirst = time.Second
	restAtLast  = slowPoll
)

// reloadResult is the outcome of one look at the file.
type reloadResult struct {
	// At is when; Good is when the configuration in force was taken over.
	At, Good time.Time
	// Hash is that of the file in force.
	Hash string
	// Err is why the file as it is now is not in force; nil when it is.
	Err error
	// Failed counts the failures since the start.
	Failed uint64
}

func (r *reloads) done(at time.Time, hash string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.At, r.last.Err = at, err
	if err != nil {
		r.failed++
		return
	}
	r.last.Good, r.last.Hash = at, hash
}

// look notes what the files hold. It says whether that is something else than at the
// last look, and how long to wait before it is tried again.
func (r *reloads) look(files []string, now time.Time) (changed bool, wait time.Duration) {
	h := sha512.New()
	for _, path := range files {
		data, err := readFile(path)
		fmt.Fprintf(h, "%s %d %v\n", path, len(data), err)
		h.Write(data)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.seen
	h.Sum(r.seen[:0])
	if r.seen != before {
		r.rest = 0
		return true, 0
	}
	if r.last.Err == nil {
		return false, 0
	}
	return false, max(0, r.due.Sub(now))
}

// refused says how long what was refused is left alone: twice as long as before.
func (r *reloads) refused(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = min(max(2*r.rest, restAtFirst), restAtLast)
	r.due = now.Add(r.rest)
	return r.rest
}

func (r *reloads) result() reloadResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := r.last
	result.Failed = r.failed
	return result
}

// reload reads the file and, if it says something else than before, takes it
// over whole. A file that cannot be taken over changes nothing; it is logged
// and counted once, not with every look. Who asked for it hears what came of it
// in any case. It says when to look again, 0 for no need to.
func (d *daemon) reload(ctx context.Context, asked bool) (again time.Duration) {
	changed, wait := d.reloads.look(d.source.files(), time.Now())
	if wait > 0 && !asked {
		return wait
	}
	old := d.current.Load()
	config, err := d.source.load()
	before := d.reloads.result()
	if err == nil && config.Hash == before.Hash {
		switch {
		case before.Err != nil:
			d.log.Info("the configuration file is again the one in force", zap.String("config", config.Path))
			d.reloads.done(time.Now(), config.Hash, nil)
		case asked:
			d.log.Info("a reload was asked for; the configuration is the one in force, and nothing changed", zap.String("config", config.Path))
		}
		return 0
	}
	if err == nil {
		err = d.takeOver(ctx, config, old)
	}
	known := err != nil && !changed && before.Err != nil && err.Error() == before.Err.Error()
	if !known {
		d.reloads.done(time.Now(), config.Hash, err)
		if errors.As(err, new(kubeDNSError)) {
			d.setup[setupConfigMap].Add(1)
		}
	}
	if err == nil {
		return 0
	}
	if asked || !known {
		d.log.Error("the new configuration was not taken over; the old one goes on", zap.Error(err))
	}
	return d.reloads.refused(time.Now())
}

// takeOver makes c the configuration in force, or changes nothing.
func (d *daemon) takeOver(ctx context.Context, c Config, old *generation) error {
	d.missesAddresses(ctx, &c, changePatience) // a guard may read the file a moment later
	next, err := d.prepare(c, old)
	if err != nil {
		return err
	}
	d.commit(next)
	d.level.SetLevel(logLevel(c.Log.Level))
	applyMemoryPolicy(next.config.Cache.Size, d.bound, d.getenv)
	applyCPUPolicy(c.Limits.CPUs, d.getenv)
	d.log.Info("the new configuration is in force", zap.String("config", c.Path),
		zap.Bool("cacheKept", next.cache == old.cache), zap.Stringers("listen", d.addresses()))
	d.logNotes(&c)
	if later := needsRestart(&c, &d.began); len(later) > 0 {
		d.log.Warn("these changes wait for a restart; the rest is in force", zap.Strings("settings", later))
	}
	return nil
}

// logNotes says what a Corefile says that is done in another way.
func (d *daemon) logNotes(c *Config) {
	for _, note := range c.Notes {
		d.log.Warn("of the Corefile", zap.String("note", note))
	}
}

// needsRestart names the settings in which c differs from those of the start
// and which are only read then.
func needsRestart(c, start *Config) []string {
	return changedSettings([]setting{
		{"log.format", c.Log.Format, start.Log.Format},
		{"admin.socket", c.Admin.Socket, start.Admin.Socket},
		{"host.socket", c.Host.Socket, start.Host.Socket},
		{"host.mode", c.Host.guarded(), start.Host.guarded()}, // with a guard, or without
	})
}

// setting is a value of two configurations.
type setting struct {
	name     string
	now, was any
}

// changedSettings names those that differ.
func changedSettings(settings []setting) (names []string) {
	for _, s := range settings {
		if s.now != s.was {
			names = append(names, s.name)
		}
	}
	return names
}
