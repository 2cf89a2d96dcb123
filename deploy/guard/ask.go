package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// ProbeName is asked with class CH and type TXT. Only serve answers it, with
// ProbeText.
const ProbeName = "socket.nodens."

// probeWord begins the answer: somebody else may answer anything.
const probeWord = "nodens"

// ProbeText is the answer of a socket of an instance. The name of an instance has no
// blank.
func ProbeText(instance string, number int) string {
	return fmt.Sprintf("%s %s %d", probeWord, instance, number)
}

func parseProbe(text string) (Witness, bool) {
	words := strings.Fields(text)
	if len(words) != 3 || words[0] != probeWord {
		return Witness{}, false
	}
	number, err := strconv.Atoi(words[2])
	return Witness{Instance: words[1], Number: number}, err == nil
}

var errStranger = errors.New("somebody else answers")

// network asks over UDP and TCP. Probes carry the mark, unless it is 0, by which they
// reach the socket whatever the sets say.
type network struct{ mark uint32 }

// Witness implements [Asker].
func (n network) Witness(ctx context.Context, over string, from netip.Addr, at netip.AddrPort) (Witness, error) {
	query := new(dns.Msg).SetQuestion(ProbeName, dns.TypeTXT)
	query.Question[0].Qclass = dns.ClassCHAOS
	reply, err := n.exchange(ctx, over, from, at, query)
	if err != nil {
		return Witness{}, err
	}
	if len(reply.Answer) == 1 {
		if txt, ok := reply.Answer[0].(*dns.TXT); ok && len(txt.Txt) == 1 {
			if w, ok := parseProbe(txt.Txt[0]); ok {
				return w, nil
			}
		}
	}
	return Witness{}, errStranger
}

// Answers implements [Asker]. One datagram may be lost: it asks again every 100 ms.
func (n network) Answers(ctx context.Context, server netip.AddrPort, name string) bool {
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		reply, err := network{}.exchange(try, overUDP, netip.Addr{}, server, new(dns.Msg).SetQuestion(name, dns.TypeA))
		if err == nil {
			cancel()
			return reply.Rcode == dns.RcodeSuccess || reply.Rcode == dns.RcodeNameError
		}
		<-try.Done() // a refusal comes at once
		cancel()
	}
	return false
}

// exchange ends a connection with a reset: the kernel keeps a closed one for a minute.
func (n network) exchange(ctx context.Context, over string, from netip.Addr, to netip.AddrPort, query *dns.Msg) (*dns.Msg, error) {
	dialer := net.Dialer{Control: n.control}
	if from.IsValid() {
		dialer.LocalAddr = localOf(over, netip.AddrPortFrom(from, 0))
	}
	dialed, err := dialer.DialContext(ctx, over, to.String())
	if err != nil {
		return nil, err
	}
	defer dialed.Close()
	if c, ok := dialed.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	stop := context.AfterFunc(ctx, func() { _ = dialed.SetDeadline(time.Unix(1, 0)) }) // fails only when closed
	defer stop()
	conn := &dns.Conn{Conn: dialed}
	if err := conn.WriteMsg(query); err != nil {
		return nil, err
	}
	for {
		reply, err := conn.ReadMsg()
		var broken *net.OpError
		switch {
		case err != nil && over == overTCP, errors.As(err, &broken):
			return nil, err
		case err == nil && reply.Response && reply.Id == query.Id:
			return reply, nil
		}
	}
}

func localOf(over string, a netip.AddrPort) net.Addr {
	if over == overTCP {
		return net.TCPAddrFromAddrPort(a)
	}
	return net.UDPAddrFromAddrPort(a)
}

func (n network) control(_, _ string, raw syscall.RawConn) error {
	if n.mark == 0 {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(n.mark))
	})
	return errors.Join(err, failed)
}
