package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// timeBounds are the buckets of all durations in seconds: 0.25 ms, doubled 15
// times.
func timeBounds() []float64 {
	bounds := make([]float64, forwarder.TimeBuckets-1)
	for i := range bounds {
		bounds[i] = (250 * time.Microsecond << i).Seconds()
	}
	return bounds
}

// emitKinds sends one number of the cache as success and as denial, the two
// halves that node-cache's cache has. The server is the first listen address:
// the cache belongs to all.
func emitKinds(s *snapshot, emit func(n float64, labels ...string), of func(*cache.Stats, cache.Kind) float64) {
	if len(s.Listens) == 0 {
		return
	}
	server, zones := s.Listens[0].server(), strings.Join(s.zones(), ",")
	denial := of(&s.Cache, cache.NoData) + of(&s.Cache, cache.NXDomain) + of(&s.Cache, cache.Failure)
	emit(of(&s.Cache, cache.Positive), server, "success", zones, "")
	emit(denial, server, "denial", zones, "")
}

func protoName(proto int) string { return [...]string{"udp", "tcp"}[proto] }

// familyName is 1 for IPv4 and 2 for IPv6, the numbers of the address family
// registry.
func familyName(family int) string { return [...]string{"1", "2"}[family] }

// writerName is who wrote a reply, as node-cache would call it.
func writerName(source forwarder.Source) string {
	switch source {
	case forwarder.FromCache, forwarder.FromStale:
		return "cache"
	case forwarder.FromServers, forwarder.FromFailure:
		return "forward"
	default:
		return ""
	}
}

// sourceName is where a reply came from, in our own metrics.
func sourceName(source forwarder.Source) string {
	switch source {
	case forwarder.FromCache:
		return "hit"
	case forwarder.FromStale:
		return "stale"
	case forwarder.FromServers:
		return "miss"
	case forwarder.FromLocal:
		return "local"
	default:
		return "failure"
	}
}

func rcodeName(rcode int) string {
	names := [...]string{
		"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED",
		"YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH", "NOTZONE",
	}
	switch {
	case rcode < len(names):
		return names[rcode]
	case rcode == int(wire.BadVers):
		return "BADVERS"
	}
	return fmt.Sprint("RCODE", rcode)
}

func className(class int) string {
	switch upstream.RCodeClass(class) {
	case upstream.ClassNoError:
		return "NOERROR"
	case upstream.ClassFormErr:
		return "FORMERR"
	case upstream.ClassServFail:
		return "SERVFAIL"
	case upstream.ClassNXDomain:
		return "NXDOMAIN"
	case upstream.ClassNotImp:
		return "NOTIMP"
	case upstream.ClassRefused:
		return "REFUSED"
	default:
		return "other"
	}
}

func ignoredName(kind int) string {
	switch upstream.Ignored(kind) {
	case upstream.IgnoredShort:
		return "short"
	case upstream.IgnoredNotResponse:
		return "not_response"
	case upstream.IgnoredWrongID:
		return "wrong_id"
	case upstream.IgnoredWrongQuestion:
		return "wrong_question"
	case upstream.IgnoredUnparsable:
		return "unparsable"
	case upstream.IgnoredWrongCase:
		return "wrong_case"
	default:
		return "late"
	}
}

func sumOf(counts []uint64) uint64 {
	var sum uint64
	for _, n := range counts {
		sum += n
	}
	return sum
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
