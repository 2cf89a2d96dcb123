package dnstap

import (
	"net/netip"
	"time"

	format "github.com/dnstap/golang-dnstap"
	"google.golang.org/protobuf/proto"
)

// frames are the messages of an exchange: the client's query and, if there was
// one, its reply.
func (s *Sender) frames(e *Exchange) [][]byte {
	query := s.message(e, format.Message_CLIENT_QUERY)
	query.QueryMessage = e.Query
	frames := [][]byte{s.frame(query)}
	if len(e.Reply) == 0 {
		return frames
	}
	reply := s.message(e, format.Message_CLIENT_RESPONSE)
	reply.ResponseMessage = e.Reply
	reply.ResponseTimeSec, reply.ResponseTimeNsec = s.clock(e.Told)
	return append(frames, s.frame(reply))
}

// frame is a message with who sends it, in bytes.
func (s *Sender) frame(m *format.Message) []byte {
	whole := &format.Dnstap{Type: format.Dnstap_MESSAGE.Enum(), Message: m}
	if s.cfg.Identity != "" {
		whole.Identity = []byte(s.cfg.Identity)
	}
	if s.cfg.Version != "" {
		whole.Version = []byte(s.cfg.Version)
	}
	frame, _ := proto.Marshal(whole) // it fails for missing fields only
	return frame
}

// message is what query and reply have in common.
func (s *Sender) message(e *Exchange, kind format.Message_Type) *format.Message {
	m := &format.Message{
		Type:           kind.Enum(),
		SocketFamily:   format.SocketFamily_INET.Enum(),
		SocketProtocol: format.SocketProtocol_UDP.Enum(),
	}
	if e.Client.Addr().Is6() {
		m.SocketFamily = format.SocketFamily_INET6.Enum()
	}
	if e.TCP {
		m.SocketProtocol = format.SocketProtocol_TCP.Enum()
	}
	m.QueryAddress, m.QueryPort = place(e.Client)
	m.ResponseAddress, m.ResponsePort = place(e.Server)
	m.QueryTimeSec, m.QueryTimeNsec = s.clock(e.Asked)
	return m
}

func place(a netip.AddrPort) (address []byte, port *uint32) {
	if !a.IsValid() {
		return nil, nil
	}
	return a.Addr().AsSlice(), proto.Uint32(uint32(a.Port()))
}

// clock is a time of Exchange by the calendar.
func (s *Sender) clock(d time.Duration) (sec *uint64, nsec *uint32) {
	at := s.cfg.Epoch.Add(d)
	return proto.Uint64(uint64(at.Unix())), proto.Uint32(uint32(at.Nanosecond()))
}
