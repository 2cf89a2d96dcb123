package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// kindOf is what an authority has for the names of one kind, as text in which
// "@" is the name asked for.
type kindOf struct {
	rcode     int
	alias     []string            // of the answer, whatever the type
	answer    map[uint16][]string // behind it, by type
	authority []string            // beside an answer, in place of nothing
	more      []string            // additional records beside an answer
	bare      bool                // no SOA record in place of an answer
	referral  bool                // a referral in place of an answer
	aa        bool
	signed    bool
	hidden    bool // asked for by those alone who follow aliases
}

// authorityKinds are the names of the kinds that are asked for, in order.
func authorityKinds() []string {
	var names []string
	for name, k := range kindsOfNames() {
		if !k.hidden {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func kindsOfNames() map[string]kindOf {
	a := func(texts ...string) map[uint16][]string { return map[uint16][]string{dns.TypeA: texts} }
	kinds := map[string]kindOf{
		"plain": {answer: map[uint16][]string{
			dns.TypeA: addresses(2), dns.TypeAAAA: {"@ 300 IN AAAA 2001:db8::1"}, dns.TypeTXT: {`@ 300 IN TXT "a" "b"`},
			dns.TypeMX: {"@ 300 IN MX 10 mail.test."}, 65280: {`@ 300 IN TYPE65280 \# 3 010203`}, dns.TypeHTTPS: {"@ 300 IN HTTPS 1 . alpn=h2"},
		}},
		"authoritative": {answer: a("@ 300 IN A 10.0.0.1"), aa: true},
		"short":         {answer: a("@ 2 IN A 10.0.0.2")},
		"zero":          {answer: a("@ 0 IN A 10.0.0.3")},
		"long":          {answer: a("@ 1000000 IN A 10.0.0.4")},
		"uneven":        {answer: a("@ 300 IN A 10.0.0.5", "@ 60 IN A 10.0.0.6")},
		"beside":        {answer: a("@ 300 IN A 10.0.0.7"), authority: []string{"test. 20 IN NS ns.test."}, more: []string{"ns.test. 40 IN A 10.0.0.8"}},
		"alias":         {alias: []string{"@ 60 IN CNAME target.test."}, answer: a("target.test. 300 IN A 10.0.0.9")},
		"chain":         {alias: []string{"@ 60 IN CNAME b.test.", "b.test. 30 IN CNAME target.test."}, answer: a("target.test. 300 IN A 10.0.0.9")},
		"half":          {alias: []string{"@ 60 IN CNAME target.test."}, bare: true},
		"dname":         {alias: []string{"@ 60 IN DNAME other.test."}, bare: true},
		"gone":          {rcode: dns.RcodeNameError},
		"gonebare":      {rcode: dns.RcodeNameError, bare: true},
		"gonealias":     {rcode: dns.RcodeNameError, alias: []string{"@ 60 IN CNAME nothing.test."}},
		"nodata":        {},
		"nodatabare":    {bare: true},
		"large":         {answer: a(addresses(60)...)},
		"huge":          {answer: a(addresses(200)...)},
		"servfail":      {rcode: dns.RcodeServerFailure, bare: true},
		"refused":       {rcode: dns.RcodeRefused, bare: true},
		"notimp":        {rcode: dns.RcodeNotImplemented, bare: true},
		"referral":      {referral: true},
		"signed":        {answer: a("@ 300 IN A 10.0.0.12"), signed: true},
		"target":        {hidden: true, answer: a("@ 300 IN A 10.0.0.9")},
		"b":             {hidden: true, alias: []string{"@ 30 IN CNAME target.test."}, answer: a("target.test. 300 IN A 10.0.0.9")},
		"nothing":       {hidden: true, rcode: dns.RcodeNameError},
	}
	return kinds
}

func addresses(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("@ 300 IN A 10.0.%d.%d", i/250, i%250+1))
	}
	return all
}

// authority is a server that knows the names of each kind, cuts what is too long
// for a datagram, signs where it is asked to, and sets AD where it signs.
func authority(t testing.TB) dnstest.Script {
	kinds := kindsOfNames()
	say := func(size func(q *dns.Msg) int) dnstest.Script {
		return dnstest.Say(func(q *dns.Msg) *dns.Msg {
			label, _, _ := strings.Cut(strings.ToLower(q.Question[0].Name), ".")
			k, found := kinds[label]
			if !found {
				k = kinds["plain"]
			}
			m := k.reply(t, q)
			m.Truncate(size(q))
			m.Compress = true
			return m
		})
	}
	datagram := func(q *dns.Msg) int {
		if opt := q.IsEdns0(); opt != nil {
			return max(int(opt.UDPSize()), 512)
		}
		return 512
	}
	return dnstest.ByTransport(say(datagram), say(func(*dns.Msg) int { return 65535 }))
}

func (k kindOf) reply(t testing.TB, q *dns.Msg) *dns.Msg {
	name, qtype, opt := q.Question[0].Name, q.Question[0].Qtype, q.IsEdns0()
	m := new(dns.Msg).SetRcode(q, k.rcode)
	m.Authoritative, m.RecursionAvailable = k.aa, true
	add := func(to *[]dns.RR, texts ...string) {
		for _, text := range texts {
			*to = append(*to, dnstest.Record(t, strings.Replace(text, "@", name, 1)))
		}
	}
	add(&m.Answer, k.alias...)
	before := len(m.Answer)
	for of, texts := range k.answer {
		if of == qtype || qtype == dns.TypeANY {
			add(&m.Answer, texts...)
		}
	}
	switch signs := k.signed && opt != nil && opt.Do(); {
	case len(m.Answer) > before:
		if signs {
			add(&m.Answer, "@ 300 IN RRSIG A 13 3 300 20400101000000 20200101000000 1 test. c2lnbmF0dXJl")
		}
		add(&m.Ns, k.authority...)
		add(&m.Extra, k.more...)
		m.AuthenticatedData = signs || k.signed && q.AuthenticatedData
	case k.referral:
		add(&m.Ns, "@ 60 IN NS ns.other.test.")
		add(&m.Extra, "ns.other.test. 60 IN A 10.0.0.11")
	case !k.bare:
		add(&m.Ns, "test. 60 IN SOA ns.test. host.test. 1 60 60 60 30")
	}
	if opt != nil {
		m.SetEdns0(1232, opt.Do())
	}
	return m
}
