package guard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
)

// followAgain is how long nobody follows the servers after that ended by itself.
const followAgain = 10 * time.Second

// following is what is known of Config.Follow.
type following struct {
	stop  context.CancelFunc // of the call that is under way, nil without one
	after time.Duration      // when the next one may begin
	why   string             // the last one ended by itself
	// told says that a source has told the table in force, and not a file or a
	// snapshot of serve.
	told bool
}

// seeToServers has the servers of the fallback followed from here while no serve tells
// them. It is looked at with every tick, and not when a serve goes: after a restart of
// the guard they are connected again before.
func (l *loop) seeToServers(ctx context.Context) {
	wanted := l.cfg.Follow != nil && l.owner && !l.served()
	switch {
	case l.following.stop != nil && !wanted:
		l.following.stop()
	case l.following.stop == nil && wanted && l.now() >= l.following.after:
		l.beginToFollow(ctx)
	}
}

// served tells whether a serve tells the servers as its source has them. One that is
// stuck may be stopped.
func (l *loop) served() bool {
	tells := func(s *session) bool { return s.tells && !s.leaving }
	return slices.ContainsFunc(l.sessions, tells) && !slices.ContainsFunc(l.places, func(p *place) bool { return p.stuck })
}

// beginToFollow calls Config.Follow.
func (l *loop) beginToFollow(ctx context.Context) {
	l.log.Info("no serve tells the servers of the fallback: the guard follows them itself")
	following, stop := context.WithCancel(ctx)
	l.following.stop = stop
	publish := func(t Table) {
		l.ask(following, func() {
			if following.Err() == nil {
				l.follow(t)
			}
		})
	}
	l.rounds.Go(func() {
		defer stop()
		err := l.cfg.Follow(following, publish)
		l.ask(ctx, func() { l.followed(err, following.Err() == nil) })
	})
}

// followed takes in that a call of Config.Follow has returned, by itself or because it
// was told to.
func (l *loop) followed(err error, itself bool) {
	l.following.stop = nil
	if !itself {
		l.log.Info("serve tells the servers of the fallback again")
		return
	}
	l.following.after = l.now() + followAgain
	why := fmt.Sprint(err)
	if why == l.following.why {
		return
	}
	l.following.why = why
	l.log.Warn("the guard cannot follow the servers of the fallback itself: while serve is away those it told last stay; it is tried again", zap.Error(err))
}
