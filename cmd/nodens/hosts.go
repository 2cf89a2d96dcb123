package main

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/forwarder/rules"
)

// hostsFile keeps the hosts of a route like its file.
type hostsFile struct {
	config HostsConfig
	hosts  *rules.Hosts
	log    *zap.Logger
	last   []byte // what the file held
	missed bool   // it could not be read
	at     *atomic.Int64
}

// followHosts adds hosts to the route. A file that is not there is no reason to
// answer nobody: it may come.
func (r *route) followHosts(b base) {
	c := r.spec.config.Rules.Hosts
	if !c.given() {
		return
	}
	r.hosts = rules.NewHosts(rules.HostsConfig{TTL: c.TTL, Reverse: c.Reverse, Only: c.Only})
	f := &hostsFile{config: c, hosts: r.hosts, log: b.log, at: &r.hostsAt}
	if c.File == "" {
		_ = f.update(nil) // the entries were checked when they were read
		return
	}
	f.look()
	r.tasks = append([]task{{"hosts", func(ctx context.Context) error { return followFile(ctx, c.File, 0, f.look) }}}, r.tasks...)
}

// look takes over what the file holds now, if that is something else.
func (f *hostsFile) look() {
	data, err := readFile(f.config.File)
	switch {
	case err != nil && f.missed, err == nil && !f.missed && f.last != nil && bytes.Equal(data, f.last):
		return
	case err != nil:
		f.missed = true
		f.log.Warn("the hosts file cannot be read; what it held before goes on", zap.Error(err))
		if f.last == nil {
			_ = f.update(nil)
		}
		return
	}
	f.last, f.missed = append([]byte{}, data...), false
	if err := f.update(data); err != nil {
		f.log.Warn("the hosts file has lines that cannot be read; the others are taken", zap.String("file", f.config.File), zap.Error(err))
	}
	f.log.Info("the hosts file was read", zap.String("file", f.config.File), zap.Int("names", f.hosts.Len()))
}

func (f *hostsFile) update(file []byte) error {
	f.at.Store(time.Now().Unix())
	return f.hosts.Update(file, []byte(strings.Join(f.config.Entries, "\n")))
}
