package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	// maxSessions is more than two generations of a pair.
	maxSessions = 8
	// briefly is how long the loop waits for a peer to take a state, patiently how
	// long a peer may take for what was kept.
	briefly   = 50 * time.Millisecond
	patiently = 5 * time.Second
)

// session is the connection of an instance. All but the pipe belongs to the loop.
type session struct {
	pipe
	hello   hello
	sockets []Socket // of UDP
	tcp     []Socket
	tells   bool // who the servers of the fallback are, as its source has them
	leaving bool
	since   time.Duration // its sockets are known
	told    SessionState
	listens bool // has said something since it last took no state
}

// listenSessions makes the socket in the place of one that a dead guard left.
func listenSessions(path string) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("the folder of the socket cannot be made: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("a former socket cannot be removed: %w", err)
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("the socket for serve cannot be made: %w", err)
	}
	// A successor may have put its own there.
	l.SetUnlinkOnClose(false)
	// Who may use it is decided by the user of the peer. Without privileges a
	// socket cannot be given to another user.
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("the socket for serve cannot be opened to it: %w", err), l.Close())
	}
	return l, nil
}

// accept takes connections until ctx ends.
func (l *loop) accept(ctx context.Context, listener *net.UnixListener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var sessions errgroup.Group
	sessions.SetLimit(maxSessions)
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			err = errors.Join(err, listener.Close())
			_ = sessions.Wait() // they return nothing
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("serve cannot connect any more: %w", err)
		}
		if !sessions.TryGo(func() error { l.converse(ctx, conn); return nil }) {
			l.log.Warn("too many processes are connected already; one more is turned away", zap.Int("most", maxSessions))
			_ = conn.Close()
		}
	}
}

// converse serves one connection until either side ends it.
func (l *loop) converse(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	peer, err := credentials(conn)
	if err != nil || !l.cfg.accepts(peer.Uid) {
		l.log.Warn("a process that may not be serve is turned away: correct the user of serve in the guard's configuration",
			zap.Uint32("uid", peer.Uid), zap.Int32("pid", peer.Pid), zap.Error(err))
		return
	}
	s := &session{pipe: pipe{conn: conn}}
	first, err := s.receive()
	if err == nil && first.Hello == nil {
		err = errors.New("it did not begin with its name")
	}
	if err == nil {
		s.hello = *first.Hello
		var w welcome
		l.ask(ctx, func() { w = l.greet(s) })
		if err = s.send(&message{Welcome: &w}, patiently); err == nil {
			err = l.hear(ctx, s)
		}
		l.ask(context.WithoutCancel(ctx), func() { l.gone(s) })
	}
	if err != nil && !ended(err) && ctx.Err() == nil {
		l.log.Warn("the connection of serve ends", zap.String("instance", s.hello.Instance), zap.Error(err))
	}
}

// hear hands messages to the loop until the connection ends.
func (l *loop) hear(ctx context.Context, s *session) error {
	for {
		m, err := s.receive()
		if err != nil {
			return err
		}
		l.ask(ctx, func() { l.take(s, m) })
	}
}

func credentials(conn *net.UnixConn) (unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return unix.Ucred{}, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, failed); err != nil {
		return unix.Ucred{}, err
	}
	return *cred, nil
}

// greet takes a session in.
func (l *loop) greet(s *session) welcome {
	l.sessions = append(l.sessions, s)
	l.log.Info("serve is connected", zap.String("instance", s.hello.Instance), zap.String("version", s.hello.Version))
	return welcome{Version: l.cfg.Version, Kept: l.store.all()}
}

// take does what a message says.
func (l *loop) take(s *session, m *message) {
	s.listens = true
	if m.Sockets != nil {
		if s.sockets == nil {
			s.since = l.now()
		}
		s.sockets = *m.Sockets
	}
	if m.TCP != nil {
		s.tcp = *m.TCP
	}
	if m.Table != nil {
		s.tells = s.tells || !m.Table.Provisional
		l.follow(*m.Table)
	}
	if m.Kept != nil {
		l.store.put(*m.Kept)
	}
	if m.Leaving && !s.leaving {
		s.leaving = true
		l.log.Info("serve leaves", zap.String("instance", s.hello.Instance))
		l.withdraw()
	}
	l.tell(s)
}

// gone takes in the end of a session: of a process, unless it said so before.
func (l *loop) gone(s *session) {
	l.sessions = slices.DeleteFunc(l.sessions, func(other *session) bool { return other == s })
	l.dead[s.hello.Instance] = true
	if !s.leaving && s.sockets != nil && l.owner {
		l.counts.Deaths++
		l.deaths.died(l.now()-s.since, l.now())
		l.log.Error("serve died", zap.String("instance", s.hello.Instance), zap.Duration("lived", l.now()-s.since),
			zap.Int("soonInARow", l.deaths.inRow))
	}
	l.withdraw()
}

// tell says how things stand, if that changed for this peer.
func (l *loop) tell(s *session) {
	state := SessionState{
		Owner: l.owner, Applied: l.problem == "" && l.owner, Fallback: l.noFallback(), BypassSince: l.turned, Left: s.leaving,
	}
	for _, p := range l.places {
		if p.bypass {
			state.Bypass = append(state.Bypass, p.addr)
		}
	}
	if !s.listens || state.same(&s.told) {
		return
	}
	// A peer that is stopped takes nothing; it is told when it says something again.
	if s.listens = s.send(&message{State: &state}, briefly) == nil; s.listens {
		s.told = state
	}
}

func (s *SessionState) same(o *SessionState) bool {
	return s.Owner == o.Owner && s.Applied == o.Applied && s.Left == o.Left && s.Fallback == o.Fallback &&
		slices.Equal(s.Bypass, o.Bypass) && s.BypassSince.Equal(o.BypassSince)
}
