package main

import (
	"slices"

	"github.com/miekg/dns"
)

// A deliberation is why nodens does otherwise than a rival.
type deliberation struct {
	rival  string // "" for all
	fields []string
	when   condition
	reason string // as FIDELITY.md has it
}

// condition says whether a deliberation is about two replies to a question.
type condition func(q same, ours, theirs shown) bool

// explain is the reason for a difference, "" if there is none.
func explain(rival, field string, q same, ours, theirs shown) string {
	for _, d := range deliberate() {
		if (d.rival == rival || d.rival == "") && slices.Contains(d.fields, field) && d.when(q, ours, theirs) {
			return d.reason
		}
	}
	return ""
}

// ofKind is about names of some kinds.
func ofKind(kinds ...string) condition {
	return func(q same, _, _ shown) bool { return slices.Contains(kinds, q.kind) }
}

// all is about what every condition is.
func all(conditions ...condition) condition {
	return func(q same, ours, theirs shown) bool {
		return !slices.ContainsFunc(conditions, func(c condition) bool { return !c(q, ours, theirs) })
	}
}

func wide(q same, _, _ shown) bool              { return q.edns > 1232 && !q.tcp }
func anyType(q same, _, _ shown) bool           { return q.qtype == dns.TypeANY }
func withoutRD(q same, _, _ shown) bool         { return q.norec }
func bothCut(_ same, ours, theirs shown) bool   { return ours.reply.Truncated && theirs.reply.Truncated }
func weAskMore(_ same, ours, theirs shown) bool { return len(ours.asked) > len(theirs.asked) }
func weAskLess(_ same, ours, theirs shown) bool { return len(ours.asked) < len(theirs.asked) }
func theyRefuse(_ same, _, theirs shown) bool   { return theirs.reply.Rcode == dns.RcodeRefused }
func weFail(_ same, ours, _ shown) bool         { return ours.reply.Rcode == dns.RcodeServerFailure }

func theyHideRecords(_ same, _, their shown) bool {
	return len(their.reply.Ns)+len(their.reply.Extra) <= 1
}

// leastForAll is when a rival shows our least TTL with every record.
func leastForAll(_ same, ours, theirs shown) bool {
	least := theirs.reply.Answer[0].Header().Ttl
	for _, rr := range ours.reply.Answer {
		least = min(least, rr.Header().Ttl)
	}
	return !slices.ContainsFunc(theirs.reply.Answer, func(rr dns.RR) bool { return rr.Header().Ttl > least+1 })
}

// older is when a rival's records have been with it for longer than ours with us.
func older(_ same, ours, theirs shown) bool {
	a, b := ours.reply.Answer, theirs.reply.Answer
	for i := range min(len(a), len(b)) {
		if b[i].Header().Ttl > a[i].Header().Ttl {
			return false
		}
	}
	return len(a) == len(b)
}

// onlyExtendedError is when the only option of all is our extended error.
func onlyExtendedError(_ same, ours, theirs shown) bool {
	o := ours.reply.IsEdns0()
	return o != nil && len(o.Option) == 1 && o.Option[0].Option() == dns.EDNS0EDE && len(theirs.reply.IsEdns0().Option) == 0
}

func deliberate() []deliberation {
	return slices.Concat(unlikeAll(), unlikeCoreDNS(), unlikeUnbound())
}

func unlikeAll() []deliberation {
	return []deliberation{
		{"", []string{"rcode", "answer", "authority", "additional", "asked"}, ofKind("referral"), "a referral is a failure"},
		{"", []string{"options"}, onlyExtendedError, "failures carry an extended error"},
		{"", []string{"asked"}, all(ofKind("nodatabare", "gonebare"), weAskMore), "a denial without a SOA record is not kept"},
		{"", []string{"tc", "answer", "ttl"}, all(ofKind("huge"), wide), "a reply over UDP has at most 1232 bytes"},
	}
}

func unlikeCoreDNS() []deliberation {
	const name = "CoreDNS"
	return []deliberation{
		{name, []string{"aa"}, func(_ same, ours, _ shown) bool { return !ours.reply.Authoritative }, "AA is never shown for relayed data"},
		{name, []string{"size"}, func(_ same, ours, _ shown) bool { return ours.reply.IsEdns0().UDPSize() == 1232 }, "the size in a reply's OPT is our own"},
		{name, []string{"rcode"}, all(ofKind("refused", "notimp"), weFail), "errors of servers reach clients as SERVFAIL"},
		{name, []string{"asked"}, all(ofKind("refused", "notimp"), weAskLess), "every error of a server is remembered"},
		{name, []string{"asked"}, all(ofKind("notimp"), weAskMore), "a server that rejects EDNS is asked without"},
		{name, []string{"asked", "ttl"}, ofKind("gonealias"), "a denial behind an alias is kept"},
		{name, []string{"asked", "ttl"}, ofKind("short", "zero"), "short TTLs are not raised"},
		{name, []string{"ttl"}, all(ofKind("alias", "chain", "beside"), leastForAll), "each record keeps its own TTL"},
		{name, []string{"asked", "ttl"}, ofKind("large", "huge"), "what a datagram does not hold is fetched over TCP and kept whole"},
		{name, []string{"answer"}, all(ofKind("large", "huge"), bothCut), "addresses rotate, also those of a cut answer"},
		{name, []string{"asked", "ttl"}, withoutRD, "a question without RD is asked without RD, and its answer kept for nobody"},
	}
}

func unlikeUnbound() []deliberation {
	const name = "unbound"
	everything := []string{"rcode", "tc", "ad", "answer", "ttl", "authority", "additional", "asked"}
	return []deliberation{
		{name, everything, all(withoutRD, theyRefuse), "a question without RD is answered"},
		{name, everything, ofKind("alias", "chain", "half", "dname", "gonealias"), "aliases are followed by the server alone"},
		{name, []string{"authority", "additional"}, all(ofKind("beside"), theyHideRecords), "records beside an answer are passed on"},
		{name, []string{"answer", "ttl"}, all(ofKind("large", "huge"), bothCut), "a cut answer holds what fits"},
		{name, []string{"asked"}, all(ofKind("refused", "notimp", "servfail"), func(_ same, _, theirs shown) bool { return len(theirs.asked) != 1 }), "one failing server is not asked five times"},
		{name, []string{"ttl"}, ofKind("long"), "an answer is kept for an hour at most"},
		{name, []string{"ttl"}, ofKind("uneven"), "one set of records has one TTL"},
		{name, []string{"answer", "ttl", "asked"}, anyType, "ANY is the server's own answer"},
		{name, []string{"ad"}, func(_ same, ours, _ shown) bool { return ours.reply.AuthenticatedData }, "AD is the server's"},
		{name, []string{"ttl"}, older, "answers are kept whole, by question, DO and CD"},
		{name, []string{"asked"}, weAskMore, "answers are kept whole, by question, DO and CD"},
	}
}
