package names

import "math/rand/v2"

// Stream is the sequence of queries that a node's pods send: lookup after
// lookup, each walking the search list (ndots:5) until a name exists, A and
// AAAA for every step. It is not safe for use by several goroutines.
type Stream struct {
	mix *Mix
	rng *rand.Rand
	buf []byte // the question handed out last

	// The lookup that is under way.
	prefix   []byte    // the name as the pod wrote it, without a root label
	suffixes [4][]byte // the search list's rest, ending with the root
	steps    int       // steps of the lookup
	step     int       // the step that is next
	aaaa     bool      // the step's A was handed out
	tcp      bool
	edns     bool
}

// Next hands out the next query. It allocates nothing.
func (s *Stream) Next() Query {
	if s.step == s.steps {
		s.lookup()
	}
	qtype := TypeA
	if s.aaaa {
		qtype = TypeAAAA
	}
	s.buf = append(append(s.buf[:0], s.prefix...), s.suffixes[s.step]...)
	want := s.mix.zone.Answer(s.buf, qtype)
	s.buf = append(s.buf, byte(qtype>>8), byte(qtype), 0, 1)
	if s.aaaa {
		s.step++
	}
	s.aaaa = !s.aaaa
	return Query{Question: s.buf, Want: want, Unjudged: want.Open, TCP: s.tcp, EDNS: s.edns}
}

// lookup draws what a pod looks up next.
func (s *Stream) lookup() {
	m := s.mix
	s.step = 0
	s.tcp = s.rng.Float64() < m.cfg.TCPShare
	s.edns = s.rng.Float64() < m.cfg.EDNSShare
	pod := m.zone.pods[s.rng.IntN(len(m.zone.pods))]
	if s.rng.Float64() < m.cfg.ExternalShare {
		t := m.zone.external[m.external.draw(s.rng)]
		s.search(t.name[:len(t.name)-1], pod, 4)
		return
	}
	s.service(m.zone.services[m.services.draw(s.rng)].name, pod)
}

// service draws how the pod's manifest spells the service's name: short, with
// the namespace, or in full. The first is a name of the pod's own namespace, so
// it is found at once.
func (s *Stream) service(name, pod []byte) {
	svc := 1 + int(name[0])               // the service's label
	namespace := svc + 1 + int(name[svc]) // the namespace's
	switch draw := s.rng.Float64(); {
	case draw < 0.40: // service
		s.prefix = name[:svc]
		s.suffixes[0] = name[svc:]
		s.steps = 1
	case draw < 0.75: // service.namespace
		s.search(name[:namespace], pod, 2)
	case draw < 0.80: // service.namespace.svc
		s.search(name[:namespace+4], pod, 3)
	default: // service.namespace.svc.domain: four dots at most, so still searched
		s.search(name[:len(name)-1], pod, 4)
	}
}

// search walks the given number of steps of the list: the pod's namespace,
// svc.domain, domain, and the name as it is.
func (s *Stream) search(prefix, pod []byte, steps int) {
	s.prefix = prefix
	s.suffixes = [4][]byte{pod, s.mix.suffixes[0], s.mix.suffixes[1], s.mix.suffixes[2]}
	s.steps = steps
}
