package dnstest

import (
	"net"
	"time"
)

// Script is what a server does with one query.
type Script func(*Request)

// Drop does nothing.
func Drop(*Request) {}

// Say answers.
func Say(a Answer) Script {
	return SayBytes(nil, a)
}

// SayBytes sends what change makes of the bytes of the answer; nil leaves them.
func SayBytes(change func(reply []byte) []byte, a Answer) Script {
	return func(r *Request) {
		m := a(r.Query())
		if m == nil {
			return
		}
		msg := Pack(r.server.t, m)
		if change != nil {
			msg = change(msg)
		}
		r.Send(msg)
	}
}

// After waits before the script.
func After(d time.Duration, s Script) Script {
	return func(r *Request) {
		if r.Wait(d) {
			s(r)
		}
	}
}

// InTurn takes one script for each query of a transport, in order, and the last
// for all further.
func InTurn(scripts ...Script) Script {
	return func(r *Request) { scripts[min(r.Number, len(scripts)-1)](r) }
}

// Both plays scripts one after the other for one query.
func Both(scripts ...Script) Script {
	return func(r *Request) {
		for _, s := range scripts {
			s(r)
		}
	}
}

// ByTransport has a script for UDP and one for TCP.
func ByTransport(udp, tcp Script) Script {
	return func(r *Request) {
		if r.TCP {
			tcp(r)
			return
		}
		udp(r)
	}
}

// FromElsewhere answers a UDP query from another port.
func FromElsewhere(a Answer) Script {
	return func(r *Request) {
		m := a(r.Query())
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.From))
		if m == nil || err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = c.Write(Pack(r.server.t, m))
	}
}

// Half sends the first half of the answer: over UDP a datagram cut short, over
// TCP a message that never ends.
func Half(a Answer) Script {
	return func(r *Request) {
		msg := Pack(r.server.t, a(r.Query()))
		if !r.TCP {
			r.Send(msg[:len(msg)/2])
			return
		}
		r.writing.Lock()
		defer r.writing.Unlock()
		_, _ = r.stream.Write(frame(msg)[:2+len(msg)/2])
	}
}

// Hangup closes the connection of a TCP query in order.
func Hangup(r *Request) {
	if r.TCP {
		_ = r.stream.CloseWrite()
	}
}

// Reset breaks the connection of a TCP query off.
func Reset(r *Request) {
	if r.TCP {
		_ = r.stream.SetLinger(0)
		_ = r.stream.Close()
	}
}
