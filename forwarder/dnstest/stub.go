package dnstest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/miekg/dns"
)

// Cut is what a stub resolver makes of a truncated reply.
type Cut uint8

// Ways to go on.
const (
	TakeCut     Cut = iota // takes what is there
	EachOverTCP            // asks the same again on a connection of its own
	BothOverTCP            // asks both questions again on one connection
)

// Stub is how a program's resolver asks for the addresses of a name: its
// packets as a script, for programs that are not at hand.
type Stub struct {
	Name string
	// EDNS is the size that queries advertise, 0 for queries without EDNS.
	EDNS uint16
	// Every is after how long what was not answered is asked again, Tries how
	// often it is asked in all.
	Every time.Duration
	Tries int
	// Failures is how often a question that is answered with an error is asked.
	// 0 takes an error for no answer.
	Failures int
	// AtOnce is how many SERVFAIL between two tries have the question asked
	// again at once, before they count as errors.
	AtOnce int
	Cut    Cut
	// Anew is how often a look-up with long replies is begun in all, because the
	// room for them is doubled until they fit. 0 is once.
	Anew int
	// Plain takes no other code than NOERROR, NXDOMAIN and SERVFAIL for an
	// answer, and has one NXDOMAIN deny the name whatever its type.
	Plain bool
	// Most is how many addresses there is room for, 0 for any number.
	Most int
}

// Found is what came of a look-up.
type Found struct {
	// Answer is how many addresses of which type, "none" for no such name or no
	// address, "again" for a failure that may pass.
	Answer string
	// UDP and TCP count the queries of a client.
	UDP, TCP int
}

func (f Found) String() string {
	return fmt.Sprintf("%s, %d by UDP, %d by TCP", f.Answer, f.UDP, f.TCP)
}

// Tally is an Answer of so many addresses.
func Tally(v4, v6 int) string {
	switch {
	case v4+v6 == 0:
		return "none"
	case v6 == 0:
		return fmt.Sprintf("%d A", v4)
	case v4 == 0:
		return fmt.Sprintf("%d AAAA", v6)
	}
	return fmt.Sprintf("%d A, %d AAAA", v4, v6)
}

// half is one of the two questions of a look-up.
type half struct {
	query  *dns.Msg
	reply  *dns.Msg // the last that counts
	done   bool
	failed int // errors so far
}

// lookup is a Stub at work.
type lookup struct {
	Stub
	server netip.AddrPort
	socket net.Conn
	halves [2]half
	atOnce int // left in this try
	found  Found
}

// Lookup asks a server for the addresses of a name.
func (s Stub) Lookup(server netip.AddrPort, name string) (Found, error) {
	socket, err := net.Dial("udp", server.String())
	if err != nil {
		return Found{}, err
	}
	defer func() { _ = socket.Close() }()
	l := &lookup{Stub: s, server: server, socket: socket}
	for begun := 1; ; begun++ {
		l.ask(name)
		for range s.Tries {
			if err := l.try(); err != nil {
				return l.found, err
			}
		}
		if l.found.TCP == 0 || begun >= s.Anew {
			l.found.Answer = l.verdict()
			return l.found, nil
		}
	}
}

// ask makes the two questions.
func (l *lookup) ask(name string) {
	for i, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
		q := new(dns.Msg).SetQuestion(name, qtype)
		if l.EDNS > 0 {
			q.SetEdns0(l.EDNS, false)
		}
		l.halves[i] = half{query: q}
	}
}

// try asks what is open and takes replies until nothing is, or for Every.
func (l *lookup) try() error {
	open := 0
	l.atOnce = l.AtOnce
	for i := range l.halves {
		if !l.halves[i].done {
			open++
			if err := l.send(&l.halves[i]); err != nil {
				return err
			}
		}
	}
	_ = l.socket.SetReadDeadline(time.Now().Add(l.Every))
	buf := make([]byte, 4096)
	for open > 0 {
		n, err := l.socket.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		m := new(dns.Msg)
		if err != nil || m.Unpack(buf[:n]) != nil {
			return fmt.Errorf("a reply that no resolver reads: %w", err)
		}
		settled, err := l.take(m)
		if err != nil {
			return err
		}
		open -= settled
	}
	return nil
}

func (l *lookup) send(h *half) error {
	b, err := h.query.Pack()
	if err == nil {
		_, err = l.socket.Write(b)
	}
	l.found.UDP++
	return err
}

// take takes a reply; settled counts the questions that this try is over for.
func (l *lookup) take(m *dns.Msg) (settled int, err error) {
	for i := range l.halves {
		h := &l.halves[i]
		switch {
		case h.query.Id != m.Id || h.done:
			continue
		case m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError:
			return l.takeError(h, m.Rcode)
		case m.Truncated && l.Cut != TakeCut:
			return l.takeCut(h)
		}
		h.reply, h.done = m, true
		return 1, nil
	}
	return 0, nil
}

func (l *lookup) takeError(h *half, rcode int) (settled int, err error) {
	switch {
	case rcode == dns.RcodeServerFailure && l.atOnce > 0:
		l.atOnce--
		return 0, l.send(h)
	case l.Plain:
		return 0, nil
	}
	h.failed++
	h.done = h.failed >= l.Failures
	return 1, nil
}

// takeCut asks over TCP what was cut, or both questions.
func (l *lookup) takeCut(h *half) (settled int, err error) {
	if l.Cut == EachOverTCP {
		err = l.again(h)
		h.done = true
		return 1, err
	}
	for i := range l.halves {
		if !l.halves[i].done {
			settled++
		}
	}
	return settled, l.again(&l.halves[0], &l.halves[1])
}

// again asks questions on one connection.
func (l *lookup) again(halves ...*half) error {
	c, err := dns.DialTimeout("tcp", l.server.String(), l.Every)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(l.Every))
	for _, h := range halves {
		l.found.TCP++
		if err := c.WriteMsg(h.query); err != nil {
			return err
		}
	}
	for range halves {
		m, err := c.ReadMsg()
		if err != nil {
			return err
		}
		for _, h := range halves {
			if h.query.Id == m.Id {
				h.reply, h.done = m, true
			}
		}
	}
	return nil
}

// verdict is the Answer.
func (l *lookup) verdict() string {
	var count [2]int
	room, failed := l.Most, false
	for i, h := range l.halves {
		switch {
		case h.reply == nil:
			failed = true
		case h.reply.Rcode == dns.RcodeNameError && l.Plain:
			return "none"
		default:
			count[i] = len(h.reply.Answer)
		}
		if l.Most > 0 {
			count[i] = min(count[i], room)
			room -= count[i]
		}
	}
	if failed && (l.Plain || count[0]+count[1] == 0) {
		return "again"
	}
	return Tally(count[0], count[1])
}
