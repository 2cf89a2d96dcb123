package load

import "github.com/nodens-dns/nodens/bench/names"

// openLanes opens this worker's part of the sockets.
func (w *worker) openLanes() error {
	cfg := &w.run.cfg
	switch {
	case cfg.Transport.byTCP():
	case cfg.FreshPorts:
		w.addUDP(newFreshLane(0, cfg.Target, powerOfTwo(cfg.Sockets/cfg.Workers)))
	default:
		for i := w.number; i < cfg.Sockets; i += cfg.Workers {
			l, err := newUDPLane(w.poll, int32(len(w.lanes)), cfg.Target, cfg.slots(cfg.Sockets))
			if err != nil {
				return err
			}
			w.addUDP(l)
		}
	}
	switch cfg.Transport {
	case Mixed, TCP:
		w.addPipelined()
	case UDP:
		if cfg.FollowTC {
			w.addPipelined()
		}
	case TCPEach:
		w.addTCP(newEachLane(int32(len(w.lanes)), cfg.Target, powerOfTwo(cfg.Conns/cfg.Workers)))
	case TLS:
		return w.addTLS()
	}
	return nil
}

// ownConns is the number of this worker's connections.
func (w *worker) ownConns() int { return w.part(w.run.cfg.Conns) }

func (w *worker) addUDP(l lane) {
	w.udp = append(w.udp, len(w.lanes))
	w.add(l)
}

func (w *worker) addTCP(l lane) {
	w.tcp = append(w.tcp, len(w.lanes))
	w.add(l)
}

func (w *worker) add(l lane) {
	if w.run.cfg.Retry != NoRetry {
		l.flights().keepTexts()
	}
	w.lanes = append(w.lanes, l)
}

// addPipelined adds this worker's connections.
func (w *worker) addPipelined() {
	cfg := &w.run.cfg
	for range w.ownConns() {
		w.addTCP(newTCPLane(int32(len(w.lanes)), cfg.Target, cfg.slots(cfg.Conns)))
	}
}

// addTLS adds this worker's connections and waits until all are made, so that
// the first queries do not find them missing.
func (w *worker) addTLS() error {
	cfg := &w.run.cfg
	for range w.ownConns() {
		w.addTCP(newTLSLane(int32(len(w.lanes)), cfg.Target, cfg.TLS, cfg.slots(cfg.Conns)))
	}
	for _, l := range w.lanes {
		if err := l.(*tlsLane).made(w); err != nil {
			return err
		}
	}
	return nil
}

// pick takes a slot on the next lane of the query's transport that has one.
func (w *worker) pick(q *names.Query) (lane, int32) {
	if len(w.udp) == 0 || q.TCP && w.run.cfg.Transport == Mixed {
		return w.pickOf(w.tcp)
	}
	return w.pickOf(w.udp)
}

func (w *worker) pickOf(group []int) (lane, int32) {
	for range group {
		w.turn++
		l := w.lanes[group[w.turn%len(group)]]
		if slot := l.flights().open(); slot >= 0 {
			return l, slot
		}
	}
	return nil, -1
}

// follow asks a truncated reply's question again over TCP. It is false if that
// is not possible, or if it came over TCP.
func (w *worker) follow(l lane, i int32, msg []byte) bool {
	if _, stream := l.(*tcpLane); stream || len(w.udp) == 0 {
		return false
	}
	to, j := w.pickOf(w.tcp)
	if j < 0 {
		return false
	}
	was, s := &l.flights().slots[i], &to.flights().slots[j]
	s.want, s.intended, s.sent, s.phase, s.edns = was.want, was.intended, w.now(), was.phase, was.edns
	q := names.Query{Question: msg[headerSize:questionEnd(msg)], EDNS: s.edns}
	w.out = appendQuery(w.out[:0], s.id, &q)
	if !to.send(w, j, w.out) {
		to.flights().done(j)
		return false
	}
	to.flights().keep(j, w.out)
	w.score(s, func(c *Counts) { c.Followed++ })
	l.flights().done(i)
	l.ended(i)
	return true
}

func powerOfTwo(n int) int {
	size := 1
	for size*2 <= min(n, 65536) {
		size *= 2
	}
	return size
}
