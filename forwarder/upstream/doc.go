// Package upstream asks servers. A Group holds the servers of one route in
// tiers, nearest first, and turns a parsed query into the bytes of a reply.
//
// The words: a target is one server address (one pod, in both its address
// families) with its sockets and health; an exchange is the work for one query;
// an attempt is one question put to one target; a tier is a set of targets that
// are equally near; a snapshot is the immutable list of tiers that an exchange
// reads.
//
// The way of an exchange: choose a target (pick.go), put the question (target.go,
// udp.go, tcp.go), wait (exchange.go) for the first of a reply, a failure signal,
// the time of the next attempt (next.go) or the end of the budget, and take the
// step it asks for (steps.go): return the reply, put the question again without
// EDNS or over TCP, or put it to another target. What a reply asks for is decided
// in verdict.go; what replies, silences and errors say of the target, in
// health.go, rtt.go and peak.go. pick.go, health.go, rtt.go, peak.go, hedge.go,
// spill.go, limit.go and verdict.go are functions over small values and know
// neither sockets nor clocks.
//
// Names are of two classes. Fast ones are in the servers' own memory; slow ones
// have to be asked of others, so that nothing follows for the server from the
// time they take: they feed neither health nor load. External servers have only
// slow names, and there these speak for the server, as long as nothing else is
// answered meanwhile.
//
// A target that is silent three times in a row, or is said not to be there, is
// ejected: it gets no new queries while another may answer. Probes in the
// background (probe.go) bring it back, and it takes its share step by step. One
// that the table calls ready after it was not, or that is new, must answer one
// probe first. There are limits: when fewer than half of the zone and the
// cluster are left, ejections there are ignored, and when every target is out,
// queries go to whoever failed longest ago, so many in a second and no more.
//
// An attempt after the first is either a retry, when the first one's time is
// over or the network says that nobody is there, or a hedge: a copy before that
// time. Retries are free, because they replace what was lost; hedges add load,
// and have a budget.
//
// A node whose own server has too much to do hands queries on: from Config.Spill
// in flight on, if the chosen server of the next tier has less than half as many,
// and a part of all when the server loses some and the next does not (pick.go,
// spill.go). In-flight queries show overload before the server's buffer is full,
// and before its latency does, which shows what is asked as much as who answers.
// The parameters come from a simulation with these exchanges (see the tests):
// three servers of 2 workers and 2 ms, the clients of one node offering 160 % of
// what its server bears. All limits from 8 to 64 lose nothing, keep 61 % local
// there, and all at 60 % load; the 99th percentile is limit x 1 ms, the service
// time over the workers. The default of 32 bears a pause of 30 ms at 1000 misses
// a second without moving load, and costs 3 ms when a query takes 0.1 ms. Without
// a limit 4 % are lost, and half wait for 0.25 s.
//
// Servers outside the cluster are asked over UDP in letters of mixed case
// (mixcase.go) or over TLS (tls.go), and no more often than they bear. Any server
// may lead back to us: loop.go finds out.
//
// A datagram is taken only when it came on the connected socket that asked,
// carries an ID in flight there, is a response and repeats the question (RFC
// 5452 section 9.1). Everything else is counted and the wait goes on, because it
// may be forged. Failure signals of the network are soft for the same reason:
// they start the next attempt at once, but the one they speak of stays open
// until its time.
//
// Goroutines: one reader per open UDP socket (at most Config.Sockets per
// address, and those being replaced), one per open TCP connection (dials, then
// reads), one timer callback per address being retired, one watch per target of
// the node tier (watch.go), the prober, which starts with the first table, and
// one per probe and per look for a loop on its way (at most one of each per
// target). All end with Close,
// which waits for them. Exchanges run on their callers' goroutines.
package upstream
