package dnstest

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Entry is a message of a replay file, and what of it counts.
type Entry struct {
	Line   int
	Match  []string // lower case, but for flags
	Adjust []string
	Sleep  time.Duration // before a reply
	Msg    *dns.Msg
	DO     bool
	OPT    bool
	Raw    []byte // of a reply given in hexadecimal
}

// entry reads up to ENTRY_END.
func (p *parser) entry() (*Entry, error) {
	e := &Entry{Line: p.at, Msg: new(dns.Msg)}
	section := ""
	for words := p.next(); words != nil; words = p.next() {
		var err error
		switch words[0] {
		case "ENTRY_END":
			return e, nil
		case "MATCH":
			e.Match = append(e.Match, words[1:]...)
		case "ADJUST":
			err = e.adjust(words[1:])
		case "REPLY":
			err = e.flags(words[1:])
		case "SECTION":
			section = strings.Join(words[1:], " ")
		case "HEX_ANSWER_BEGIN":
			err = p.hexAnswer(e)
		default:
			err = e.record(section, words)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the file ends inside an entry")
}

func (p *parser) hexAnswer(e *Entry) error {
	var digits strings.Builder
	for words := p.next(); words != nil && words[0] != "HEX_ANSWER_END"; words = p.next() {
		digits.WriteString(strings.Join(words, ""))
	}
	raw, err := hex.DecodeString(digits.String())
	e.Raw = raw
	return err
}

func (e *Entry) adjust(words []string) error {
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "copy_id", "copy_query":
			e.Adjust = append(e.Adjust, name)
		case "sleep":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			e.Sleep = time.Duration(n) * time.Second
		default:
			return fmt.Errorf("ADJUST %s is not understood", w)
		}
	}
	return nil
}

// flags reads the words of REPLY: header bits, an opcode, a response code.
func (e *Entry) flags(words []string) error {
	h := &e.Msg.MsgHdr
	bits := map[string]*bool{
		"QR": &h.Response, "AA": &h.Authoritative, "TC": &h.Truncated, "RD": &h.RecursionDesired,
		"RA": &h.RecursionAvailable, "AD": &h.AuthenticatedData, "CD": &h.CheckingDisabled, "DO": &e.DO,
	}
	for _, w := range words {
		rcode, isRCode := dns.StringToRcode[w]
		opcode, isOpcode := dns.StringToOpcode[w]
		switch {
		case bits[w] != nil:
			*bits[w] = true
		case isRCode:
			h.Rcode = rcode
		case isOpcode:
			h.Opcode = opcode
		default:
			return fmt.Errorf("REPLY %s is not understood", w)
		}
	}
	e.OPT = e.OPT || e.DO
	return nil
}

func (e *Entry) record(section string, words []string) error {
	if section == "QUESTION" {
		q, err := question(words)
		e.Msg.Question = append(e.Msg.Question, q)
		return err
	}
	rr, err := dns.NewRR(strings.Join(words, " "))
	if err != nil {
		return err
	}
	switch section {
	case "ANSWER":
		e.Msg.Answer = append(e.Msg.Answer, rr)
	case "AUTHORITY":
		e.Msg.Ns = append(e.Msg.Ns, rr)
	case "ADDITIONAL":
		e.Msg.Extra = append(e.Msg.Extra, rr)
	default:
		return fmt.Errorf("%q stands in no section", words)
	}
	return nil
}

// question reads a name, class and type, of which the class may be left out.
func question(words []string) (q dns.Question, err error) {
	q = dns.Question{Name: dns.Fqdn(words[0]), Qclass: dns.ClassINET}
	for _, w := range words[1:] {
		class, isClass := dns.StringToClass[w]
		qtype, isType := dns.StringToType[w]
		switch {
		case isClass && w != "ANY":
			q.Qclass = class
		case isType:
			q.Qtype = qtype
		case strings.HasPrefix(w, "TYPE"):
			n, err := strconv.ParseUint(w[len("TYPE"):], 10, 16)
			if err != nil {
				return q, err
			}
			q.Qtype = uint16(n)
		default:
			return q, fmt.Errorf("%q is no type or class", w)
		}
	}
	return q, nil
}

// query is the entry as a client's query with an ID.
func (e *Entry) query(id uint16) *dns.Msg {
	m := e.Msg.Copy()
	m.Id = id
	if e.OPT {
		m.SetEdns0(4096, e.DO)
	}
	return m
}

// reply is the entry as the bytes of a server's reply to a query.
func (e *Entry) reply(q *dns.Msg) ([]byte, error) {
	copyID := slices.Contains(e.Adjust, "copy_id")
	if e.Raw != nil {
		raw := slices.Clone(e.Raw)
		if copyID && len(raw) >= 2 {
			wire.SetID(raw, q.Id)
		}
		return raw, nil
	}
	m := e.Msg.Copy()
	m.Response, m.Compress = true, true
	if copyID {
		m.Id = q.Id
	}
	if slices.Contains(e.Adjust, "copy_query") {
		m.Question = q.Question
	}
	if e.OPT {
		m.SetEdns0(4096, e.DO)
	}
	return m.Pack()
}
