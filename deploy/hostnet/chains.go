package hostnet

import "github.com/google/nftables"

// builder draws chains. Chains of a family end in its digit:
//
//	arrive   every packet, before tracking: UDP for a socket of ours is delivered
//	         without tracking (or in a zone of its own), the rest goes on
//	leave    packets born here, likewise, by the set alive instead of the socket:
//	         here the socket is the sender's
//	miss     UDP that nobody here takes: counted, and in a zone of the targets
//	steer    the first packet of a tracked connection, arriving: TCP stays if a socket
//	         takes it, and goes to the fallback otherwise
//	send     likewise for connections born here
//	hide     masquerades what was sent to the fallback
type builder struct {
	State
	families []family
}

func (b builder) sets(f family) []set {
	sets := []set{{name: "listen" + f.digit, family: f, addrs: f.addrs(b.listen())}}
	if b.serves(f) {
		sets = append(sets, set{name: "service" + f.digit, family: f, addrs: f.addrs(b.Service)})
	}
	return append(sets,
		set{name: Alive.name(f), family: f, timeout: true},
		set{name: Bypass.name(f), family: f, timeout: true},
	)
}

// serves tells whether a Service has an address in the family.
func (b builder) serves(f family) bool { return len(f.addrs(b.Service)) > 0 }

func (b builder) chains() []chain {
	arrive := chain{name: "arrive", hook: filterHook("prerouting", nftables.ChainHookPrerouting)}
	leave := chain{name: "leave", hook: filterHook("output", nftables.ChainHookOutput)}
	steer := chain{name: "steer", hook: natHook("prerouting", nftables.ChainHookPrerouting, beforeDstnat)}
	send := chain{name: "send", hook: natHook("output", nftables.ChainHookOutput, beforeDstnat)}
	hide := chain{name: "hide", hook: natHook("postrouting", nftables.ChainHookPostrouting, beforeSrcnat)}

	var inner []chain
	for _, f := range b.families {
		queries := func(p proto, then string) rule {
			return rule{to(f, "listen"+f.digit), dport(p, b.Port), goes(then + f.digit)}
		}
		arrive.rules = append(arrive.rules, queries(udp(), "arrive"))
		leave.rules = append(leave.rules, b.refusals(f), b.replies(f), queries(udp(), "leave"))
		leave.rules = append(leave.rules, b.probes(f)...)
		steer.rules = append(steer.rules, queries(tcp(), "steer_tcp"), queries(udp(), "steer_udp"))
		send.rules = append(send.rules, queries(tcp(), "send_tcp"), queries(udp(), "send_udp"))
		hide.rules = append(hide.rules, b.hide(f)...)
		inner = append(
			inner,
			b.arrive(f), b.leave(f), b.miss(f), b.steerTCP(f), b.sendTCP(f), b.steerUDP(f), b.sendUDP(f),
			b.fallback(tcp(), f), b.fallback(udp(), f),
		)
	}
	return append([]chain{arrive, leave, steer, send, hide}, inner...)
}

// delivered is how UDP for a socket of ours goes on: past every nat chain.
func (b builder) delivered() term {
	if b.Tracked {
		return setZone()
	}
	return untracked()
}

func (b builder) arrive(f family) chain {
	c := chain{name: "arrive" + f.digit}
	if b.ProbeMark != 0 {
		c.rules = append(c.rules, rule{marked(b.ProbeMark), b.delivered(), accept()})
	}
	c.rules = append(
		c.rules,
		rule{to(f, Bypass.name(f)), goes("miss" + f.digit)},
		rule{wildcardSocket(), goes("miss" + f.digit)},
		rule{anySocket(), b.delivered(), accept()},
		rule{goes("miss" + f.digit)},
	)
	return c
}

func (b builder) leave(f family) chain {
	c := chain{name: "leave" + f.digit, rules: b.exempt()}
	if b.ProbeMark != 0 {
		c.rules = append(c.rules, rule{marked(b.ProbeMark), b.delivered(), accept()})
	}
	c.rules = append(
		c.rules,
		rule{to(f, Bypass.name(f)), goes("miss" + f.digit)},
		rule{to(f, Alive.name(f)), b.delivered(), accept()},
		rule{goes("miss" + f.digit)},
	)
	return c
}

// miss counts what it leaves to the fallback: later chains see only the first packet of
// a connection. What goes to a Service is tracked as kube-proxy knows it.
func (b builder) miss(f family) chain {
	c := chain{name: "miss" + f.digit, rules: []rule{{count(counterName(udp(), f))}}}
	if b.serves(f) {
		c.rules = append(c.rules, rule{to(f, "service"+f.digit), accept()})
	}
	if targets := f.targets(b.Fallback.UDP); len(targets) > 0 {
		c.rules = append(c.rules, rule{setTargetsZone(targets)})
	}
	return c
}

// refusals keeps resolvers from giving up in the moment in which nobody listens.
func (b builder) refusals(f family) rule {
	return rule{from(f, "listen"+f.digit), unreachable(f), drop()}
}

func (b builder) replies(f family) rule {
	return rule{from(f, "listen"+f.digit), sport(udp(), b.Port), b.delivered(), accept()}
}

// probes lets those over TCP reach the address of a Service: what is not tracked is no new
// connection, which kube-proxy in nftables mode would reject. Replies are told by where
// they go, since connections of others come from the Service's address itself.
func (b builder) probes(f family) []rule {
	var rules []rule
	if b.serves(f) {
		if source := b.ProbeSource(f.addrs(b.Service)[0]); source.IsValid() {
			service := "service" + f.digit
			rules = []rule{
				{to(f, service), dport(tcp(), b.Port), marked(b.ProbeMark), untracked(), accept()},
				{from(f, service), toAddr(f, source), sport(tcp(), b.Port), untracked(), accept()},
			}
		}
	}
	return rules
}

// exempt lets our own upstream packets pass as if we were not there.
func (b builder) exempt() []rule {
	var rules []rule
	for _, uid := range b.Exempt.UIDs {
		rules = append(rules, rule{sentBy(uid), accept()})
	}
	for _, mark := range b.Exempt.Marks {
		rules = append(rules, rule{marked(mark), accept()})
	}
	return rules
}

// stays ends a rule for a connection that is ours: kube-proxy, whose chains follow,
// must not translate the address of a Service.
func (b builder) stays(f family, match ...term) []rule {
	var rules []rule
	if b.serves(f) {
		rules = append(rules, append(append(rule{}, match...), to(f, "service"+f.digit), staying(f)))
	}
	return append(rules, append(append(rule{}, match...), accept()))
}

// staysHere is stays for what is born here. kube-proxy in nftables mode rejects new
// connections from here to an address of a Service that it did not translate, so that
// they go to an address of our own, where the same sockets' process listens.
func (b builder) staysHere(f family, match ...term) []rule {
	own := f.addrs(b.Own)
	if !b.serves(f) || len(own) == 0 {
		return b.stays(f, match...)
	}
	redirect := append(append(rule{}, match...), to(f, "service"+f.digit), leads(f, own[0]))
	return []rule{redirect, append(append(rule{}, match...), accept())}
}

func (b builder) steerTCP(f family) chain {
	c := chain{name: "steer_tcp" + f.digit}
	c.rules = append(
		c.rules,
		rule{to(f, Bypass.name(f)), goes(counterName(tcp(), f))},
		rule{wildcardSocket(), goes(counterName(tcp(), f))},
	)
	c.rules = append(c.rules, b.stays(f, anySocket())...)
	c.rules = append(c.rules, rule{goes(counterName(tcp(), f))})
	return c
}

func (b builder) sendTCP(f family) chain {
	c := chain{name: "send_tcp" + f.digit, rules: b.exempt()}
	if b.ProbeMark != 0 {
		c.rules = append(c.rules, rule{marked(b.ProbeMark), accept()})
	}
	c.rules = append(c.rules, rule{to(f, Bypass.name(f)), goes(counterName(tcp(), f))})
	c.rules = append(c.rules, b.staysHere(f, to(f, Alive.name(f)))...)
	c.rules = append(c.rules, rule{goes(counterName(tcp(), f))})
	return c
}

// steerUDP decides nothing: arrive did, and what it delivered is not tracked or in
// our zone.
func (b builder) steerUDP(f family) chain {
	c := chain{name: "steer_udp" + f.digit}
	if b.Tracked {
		c.rules = b.stays(f, inZone())
	}
	c.rules = append(c.rules, rule{goes(counterName(udp(), f))})
	return c
}

func (b builder) sendUDP(f family) chain {
	c := chain{name: "send_udp" + f.digit, rules: b.exempt()}
	if b.Tracked {
		c.rules = append(c.rules, b.staysHere(f, inZone())...)
	}
	c.rules = append(c.rules, rule{goes(counterName(udp(), f))})
	return c
}

// fallback is where queries go that no socket of ours takes. UDP was counted by
// packet before; TCP is counted here, by connection.
func (b builder) fallback(p proto, f family) chain {
	c := chain{name: counterName(p, f)}
	if p == tcp() {
		c.rules = append(c.rules, rule{count(counterName(p, f))})
	}
	if b.serves(f) {
		c.rules = append(c.rules, rule{to(f, "service"+f.digit), accept()})
	}
	targets := b.Fallback.UDP
	if p == tcp() {
		targets = b.Fallback.TCP
	}
	targets = f.targets(targets)
	if len(targets) > 1 {
		c.rules = append(c.rules, rule{picking(f, p, targets)})
	}
	if len(targets) > 0 {
		// The only one, or for the packet that is under way in rules which are being
		// replaced: the map of the rule before is empty for it.
		c.rules = append(c.rules, rule{leadsTo(f, p, targets[0])})
	}
	return c
}

// hide goes by the destination before translation. What pods send to a Service is
// kube-proxy's to hide; what the node sends there carries an address of ours as its
// source, which no other machine can answer.
func (b builder) hide(f family) []rule {
	listen := "listen" + f.digit
	var rules []rule
	if b.serves(f) {
		rules = append(rules, rule{to(f, listen), accept()}) // it stayed here
		rules = append(rules, rule{
			wasAddressed(f, "daddr", "service"+f.digit, false), wasAddressed(f, "saddr", listen, true), accept(),
		})
	}
	return append(rules, rule{translated(), wasAddressed(f, "daddr", listen, false), masquerade()})
}
