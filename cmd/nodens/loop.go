package main

import "go.uber.org/zap"

// looped tells the routes that a name was asked of us, and reports whether it
// was one that a route asks to find out which of its servers lead back here.
// Such a server is not asked any more; the daemon goes on.
func (d *daemon) looped(name []byte) bool {
	current := d.current.Load()
	if current == nil {
		return false
	}
	for _, r := range current.routes {
		server, isNew, found := r.group.Looped(name)
		if !found {
			continue
		}
		if isNew {
			d.log.Error("a server sends what it is asked back to nodens and is not asked any more: correct where it forwards to, or name another server",
				zap.Stringer("server", server), zap.Strings("zones", r.spec.config.Zones))
		}
		return true
	}
	return false
}
