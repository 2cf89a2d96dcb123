package forwarder

import (
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// rebuild writes a reply anew without OPT and signatures, for the rare server
// that puts records behind them: taking bytes out of the middle would leave
// compression pointers that lead astray.
func rebuild(r *wire.Reply) (wire.Reply, error) {
	var m dns.Msg
	if err := m.Unpack(r.Msg); err != nil {
		return wire.Reply{}, err
	}
	extra := m.Extra[:0]
	for _, rr := range m.Extra {
		switch rr.Header().Rrtype {
		case dns.TypeOPT, dns.TypeTSIG, dns.TypeSIG:
		default:
			extra = append(extra, rr)
		}
	}
	m.Extra, m.Compress = extra, true
	m.Rcode &= 15 // the rest stood in the OPT; such a reply is a failure anyway
	msg, err := m.Pack()
	if err != nil {
		return wire.Reply{}, err
	}
	return wire.ParseReply(msg)
}
