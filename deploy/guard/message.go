package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A message goes either way; the fields that are not set say nothing. An older or newer
// peer passes over what it does not know.
type message struct {
	Hello   *hello        `json:"hello,omitempty"`   // of serve, first
	Sockets *[]Socket     `json:"sockets,omitempty"` // of serve, of UDP
	TCP     *[]Socket     `json:"tcp,omitempty"`     // of serve, that listen
	Table   *Table        `json:"table,omitempty"`   // of serve
	Kept    *kept         `json:"kept,omitempty"`    // of serve, to be kept
	Leaving bool          `json:"leaving,omitempty"` // of serve
	Welcome *welcome      `json:"welcome,omitempty"` // of guard, first
	State   *SessionState `json:"state,omitempty"`   // of guard
}

type hello struct {
	Instance string `json:"instance"`
	Version  string `json:"version"`
}

// Socket is a socket of serve that takes queries.
type Socket struct {
	Address netip.AddrPort `json:"address"`
	// Number is what a probe is answered with.
	Number int `json:"number"`
}

// Server is where a server takes queries. An address that is not valid: it does not.
type Server struct {
	UDP netip.AddrPort `json:"udp"`
	TCP netip.AddrPort `json:"tcp"`
}

// Table is who answers for serve in its absence, nearest tier first, in both families.
type Table struct {
	Tiers [][]Server `json:"tiers"`
	// Probe is a name that they know, asked to see whether they answer.
	Probe string `json:"probe"`
	// Provisional says that no source has told it, as after a start of serve without
	// the API server. It is used while nothing better is known.
	Provisional bool `json:"provisional,omitempty"`
}

// kept is bytes that serve gives to keep over a reboot.
type kept struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

type welcome struct {
	Version string `json:"version"`
	Kept    []kept `json:"kept,omitempty"`
}

// SessionState is what a guard tells serve.
type SessionState struct {
	// Owner says that this guard owns the node. Another does otherwise.
	Owner bool `json:"owner"`
	// Applied says that the host looks as it should.
	Applied bool `json:"applied"`
	// Fallback is why there is no fallback; "" = it is ready.
	Fallback string `json:"fallback,omitempty"`
	// Bypass lists the addresses whose queries go past serve. It is so since
	// BypassSince; the zero time = since this guard began.
	Bypass      []netip.Addr `json:"bypass,omitempty"`
	BypassSince time.Time    `json:"bypassSince,omitzero"`
	// Left says that nobody counts on this instance any more.
	Left bool `json:"left,omitempty"`
}

// Bounds of what a peer may send.
const (
	maxPart    = 60 << 10 // of a packet, below what any socket buffer takes
	maxMessage = 16 << 20 // the endpoints of the largest clusters are a tenth
)

// The first byte of a packet.
const (
	lastPart = '.'
	morePart = '+'
)

// pipe carries messages over a socket of packets, which tells the end of a peer and
// mixes no two writes. A message that is too long for a packet goes in parts.
type pipe struct {
	conn *net.UnixConn
	mu   sync.Mutex // one message at a time
}

// send gives up after a while: a stopped peer must not stop us.
func (p *pipe) send(m *message, patience time.Duration) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for first := true; first || len(data) > 0; first = false {
		n, mark := min(len(data), maxPart), byte(morePart)
		if n == len(data) {
			mark = lastPart
		}
		if _, err := p.conn.Write(append([]byte{mark}, data[:n]...)); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// receive waits for the next message.
func (p *pipe) receive() (*message, error) {
	packet, data := make([]byte, maxPart+1), []byte(nil)
	for {
		n, err := p.conn.Read(packet)
		switch {
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.EOF
		case len(data)+n > maxMessage:
			return nil, fmt.Errorf("a message has more than %d bytes", maxMessage)
		}
		data = append(data, packet[1:n]...)
		if packet[0] == lastPart {
			break
		}
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("a message is not understood: %w", err)
	}
	return &m, nil
}

// ended tells whether an error is the normal end of a connection.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}
