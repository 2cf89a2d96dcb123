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
// health.go, rtt.go, peak.go and busy.go. pick.go, health.go, rtt.go, peak.go,
// hedge.go, spill.go, limit.go and verdict.go are functions over small values and
// know neither sockets nor clocks.
//
// Names are of two classes. Fast ones are in the servers' own memory; slow ones
// have to be asked of others, so that nothing follows for the server from the
// time they take: they feed neither health nor load. External servers have only
// slow names, and there these speak for the server, as long as nothing else is
// answered meanwhile.
//
// A target that is silent three times in a row is suspected: it gets no new
// queries while another may answer, and is probed at once and every 50 ms. Any
// reply, however late, clears it, and it is as if nothing had been: a moment
// without a processor, its own or ours, leaves many queries without an answer
// that was on its way. Where all are suspected, it makes no difference.
//
// One that stays silent for 150 ms, about what was asked since the suspicion too,
// or is said not to be there, is ejected. Probes in the background (probe.go)
// bring it back, and it takes its share step by step. If they failed meanwhile,
// the next ejection takes twice as long. A target
// that the table calls ready after it was not, or that is new, must answer one
// probe first, with what only a server of this cluster knows (proof.go). There are
// limits: when fewer than half of the zone and the
// cluster are left, ejections and suspicions there are ignored, and when every
// target is out, queries go to whoever failed longest ago, so many in a second and
// no more. The others wait for one to return, outside the cluster up to 256 of them.
//
// When no target of the tiers is healthy, the last resort is asked, by steps: what
// is left of endpoints that are not ready, nearest first, then what stands for
// the whole Service. A fallback may deny names that those have: it waits until
// each of them is out, has failed the query or left it unanswered twice. Of the
// endpoints a few are used, as of the tiers (cut.go), and nobody probes them while
// a tier is healthy.
//
// An attempt after the first is either a retry, when the first one's time is
// over or the network says that nobody is there, or a hedge: a copy before that
// time. Retries are free, because they replace what was lost; hedges add load,
// and have a budget.
//
// A node whose own server has too much to do hands queries on: from so many in
// flight on as it answers in 20 ms, if the chosen server of the next tier has less
// than half as many, and a part of all when the server loses some and the next
// does not (busy.go, pick.go, spill.go). In-flight queries show overload before
// the server's buffer is full, and before its latency does, which shows what is
// asked as much as who answers. Where nobody has anything to spare, late answers
// make retries wait.
//
// The parameters come from a simulation with these exchanges (see the tests):
// three servers of 2 workers and 2 ms, so of 1000 queries a second each, with
// room for 256 that wait.
//
//   - The clients of one node ask for 160 %, those of the others for 20 %. Limits
//     of 8, 32 and 64 in flight lose nothing and keep 62 % local, with a 99th
//     percentile of limit x 1 ms: 9, 32 and 64 ms. As many as are answered in
//     20 ms come to 20 ms. At 60 % everywhere all limits keep everything local.
//     Without a limit 4 % are lost, and half wait for 0.25 s.
//   - One server takes ten times as long for a while. A limit of 32 means 0.3 s
//     of waiting there, which retries and ejections cut short: 37 % local, and
//     95 % when it is well again. With 20 ms, which are at least 8 queries: 57 %
//     and 99 %, no ejection, a quarter of the retries.
//   - All servers pause for 0.5 s at 60 % or 80 % load, and go on with full
//     queues. When retries go out after 100 ms at most, each query lies in two
//     queues: 2 % and 11 % are lost, and it never ends. When they wait for half as
//     long again as late answers took, which sinks by two thirds a second,
//     one query of 25000 is lost at 60 %, 1 % at 80 % (more than fits comes in the
//     pause), and it is over after one and three seconds.
//   - One server falls silent, at 600 queries a second: it gets 52 more, of which
//     11 are probes, and none once three silences are known. With ejection alone
//     it got 106. When it does nothing for 60 ms twice a second, it is suspected
//     each time: 56 % stay local where 58 % did, and a quarter of the retries is
//     spared. With 2 % loss each way and 5 queries a second it is suspected twice
//     in 12000 queries and never ejected, which it was once or twice before.
//
// 20 ms are less than the least retry time. At most 128 leave room in a server's
// buffer for other nodes; at least 8 are in flight in any burst of a node with
// little to do.
//
// Servers outside the cluster are asked over UDP in letters of mixed case
// (mixcase.go) or over TLS (tls.go), and no more often than they bear: what is more
// stands in line (limit.go). Any server may lead back to us: loop.go finds out.
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
