package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// same is one question as it is put to every peer.
type same struct {
	kind        string // what the server does, see authority
	n           int    // of several names of the kind
	qtype       uint16
	tcp, upper  bool
	norec       bool // without RD
	cd, ad, do  bool
	edns        uint16 // 0: without
	withOptions bool
}

func (q same) name() string {
	name := fmt.Sprintf("%s.n%d.test.", q.kind, q.n)
	if q.upper {
		name = strings.ToUpper(name)
	}
	return name
}

func (q same) String() string {
	text := q.name() + " " + dns.Type(q.qtype).String()
	for word, on := range map[string]bool{"tcp": q.tcp, "norec": q.norec, "cd": q.cd, "ad": q.ad, "do": q.do, "options": q.withOptions} {
		if on {
			text += " +" + word
		}
	}
	return text + fmt.Sprintf(" edns=%d", q.edns)
}

func (q same) message() *dns.Msg {
	m := new(dns.Msg).SetQuestion(q.name(), q.qtype)
	m.RecursionDesired, m.CheckingDisabled, m.AuthenticatedData = !q.norec, q.cd, q.ad
	if q.edns == 0 {
		return m
	}
	m.SetEdns0(q.edns, q.do)
	if q.withOptions {
		m.IsEdns0().Option = []dns.EDNS0{
			&dns.EDNS0_NSID{Code: dns.EDNS0NSID},
			&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0011223344556677"},
			&dns.EDNS0_LOCAL{Code: 65001, Data: []byte{7}},
		}
	}
	return m
}

// sequence is a list of questions by a seed, and which of them each round asks.
func sequence(seed uint64) (all []same, rounds [][]int) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	one := func(n int) bool { return rnd.IntN(n) == 0 }
	kinds := authorityKinds()
	all = []same{ // whatever the seed
		{kind: "plain", n: 9, qtype: dns.TypeA},
		{kind: "plain", n: 9, qtype: dns.TypeANY},
		{kind: "huge", n: 9, qtype: dns.TypeA, edns: 4096},
		{kind: "signed", n: 9, qtype: dns.TypeA, edns: 1232, do: true},
	}
	for i := range 240 {
		q := same{kind: kinds[i%len(kinds)], n: rnd.IntN(3), qtype: dns.TypeA}
		if one(3) {
			q.qtype = []uint16{dns.TypeAAAA, dns.TypeTXT, dns.TypeMX, 65280, dns.TypeANY, dns.TypeHTTPS}[rnd.IntN(6)]
		}
		q.tcp, q.upper, q.norec, q.cd, q.ad = one(8), one(6), one(12), one(8), one(6)
		if q.norec {
			q.n += 3 // what it brings is nobody else's
		}
		if one(2) {
			q.edns = []uint16{512, 1232, 4096}[rnd.IntN(3)]
			q.do, q.withOptions = one(3), one(3)
		}
		all = append(all, q)
	}
	for range roundTimes() {
		var round []int
		for i := range all {
			if !one(4) {
				round = append(round, i)
			}
		}
		rounds = append(rounds, round)
	}
	return all, rounds
}

// roundTimes are when the rounds begin. No answer that anybody keeps ends within
// half a second of one.
func roundTimes() []time.Duration {
	return []time.Duration{0, 500 * time.Millisecond, 1200 * time.Millisecond, 4500 * time.Millisecond, 8 * time.Second}
}

// rival is a server under comparison in front of an authority of its own.
type rival struct {
	name   string
	at     netip.AddrPort
	server *dnstest.Server
}

// shown is what a peer made of a question.
type shown struct {
	reply *dns.Msg
	asked []*dnstest.Request // its questions to its server
}

func (p *rival) ask(q same) shown {
	before := len(p.server.Seen())
	c := dns.Client{Net: "udp", Timeout: 10 * time.Second, UDPSize: 4096}
	if q.tcp {
		c.Net = "tcp"
	}
	reply, took, err := c.Exchange(q.message(), p.at.String())
	if err != nil {
		reply = nil
	}
	asked := about(q, p.server.Seen()[before:])
	if took > pause {
		asked = once(asked)
	}
	return shown{reply, asked}
}

// about leaves out what has to do with another question: the end of the one before, and
// on a busy machine probes of a server that seemed silent.
func about(q same, asked []*dnstest.Request) []*dnstest.Request {
	return slices.DeleteFunc(slices.Clone(asked), func(r *dnstest.Request) bool {
		question := r.Query().Question
		return len(question) != 1 || !strings.EqualFold(question[0].Name, q.name()) || question[0].Qtype != q.qtype
	})
}

// pause is a time in which a server that answers at once may seem silent, so that it is
// asked again: the machine was busy.
const pause = 25 * time.Millisecond

// once leaves out what says the same as another, but for its ID and the case of letters.
func once(asked []*dnstest.Request) []*dnstest.Request {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(asked), func(r *dnstest.Request) bool {
		key := fmt.Sprint(r.TCP, bytes.ToLower(r.Msg[2:]))
		was := seen[key]
		seen[key] = true
		return was
	})
}

func fieldNames() []string {
	return []string{
		"reply", "rcode", "aa", "tc", "rd", "ra", "ad", "cd", "z", "question", "opt", "size", "options",
		"answer", "ttl", "authority", "additional", "asked",
	}
}

// fields is a reply in the parts that are compared.
func (s shown) fields() map[string]string {
	if s.reply == nil {
		return map[string]string{"reply": "none"}
	}
	m := s.reply
	out := map[string]string{
		"reply": "yes", "rcode": dns.RcodeToString[m.Rcode], "aa": fmt.Sprint(m.Authoritative), "tc": fmt.Sprint(m.Truncated),
		"rd": fmt.Sprint(m.RecursionDesired), "ra": fmt.Sprint(m.RecursionAvailable), "ad": fmt.Sprint(m.AuthenticatedData),
		"cd": fmt.Sprint(m.CheckingDisabled), "z": fmt.Sprint(m.Zero), "question": fmt.Sprint(m.Question), "asked": strconv.Itoa(len(s.asked)),
	}
	if opt := m.IsEdns0(); opt != nil {
		out["opt"] = fmt.Sprintf("version %d do %v", opt.Version(), opt.Do())
		out["size"] = strconv.Itoa(int(opt.UDPSize()))
		out["options"] = fmt.Sprint(opt.Option)
	}
	out["answer"], out["ttl"] = recordsOf(m.Answer)
	out["authority"], _ = recordsOf(m.Ns)
	out["additional"], _ = recordsOf(m.Extra)
	return out
}

// recordsOf are records without TTL, sorted, and the TTLs in the same order.
func recordsOf(records []dns.RR) (text, ttls string) {
	var lines []string
	for _, rr := range records {
		if rr.Header().Rrtype == dns.TypeOPT {
			continue
		}
		c := dns.Copy(rr)
		c.Header().Ttl = 0
		lines = append(lines, fmt.Sprintf("%s\x00%d", strings.ToLower(c.String()), rr.Header().Ttl))
	}
	slices.Sort(lines)
	for _, line := range lines {
		record, ttl, _ := strings.Cut(line, "\x00")
		text, ttls = text+record+"\n", ttls+ttl+" "
	}
	return text, ttls
}

// TestDifferential asks nodens, CoreDNS and, where it is installed, unbound the
// same questions over the same time, each in front of the same authority. What
// they do otherwise has a reason or is a mistake. NODENS_SEED makes other
// questions.
func TestDifferential(t *testing.T) {
	seed := uint64(2)
	if text := os.Getenv("NODENS_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	rivals := []*rival{nodensRival(t), coreDNSRival(t)}
	if installed("unbound") {
		rivals = append(rivals, unboundRival(t))
	}
	all, rounds := sequence(seed)
	used, compared := map[string]int{}, 0
	start := time.Now()
	for r, at := range roundTimes() {
		time.Sleep(time.Until(start.Add(at)))
		for _, i := range rounds[r] {
			ours := rivals[0].ask(all[i])
			for _, p := range rivals[1:] {
				compared++
				compare(t, fmt.Sprintf("round %d, %v", r, all[i]), p.name, all[i], ours, p.ask(all[i]), used)
			}
		}
	}
	t.Logf("seed %d: %d pairs of replies", seed, compared)
	for _, reason := range slices.Sorted(maps.Keys(used)) {
		t.Logf("%5d %s", used[reason], reason)
	}
	checkReasons(t, rivals[1:], used)
}

// compare has every difference explained.
func compare(t *testing.T, what, name string, q same, ours, theirs shown, used map[string]int) {
	t.Helper()
	want, got := ours.fields(), theirs.fields()
	for _, field := range fieldNames() {
		if got[field] == want[field] || field == "ttl" && near(got[field], want[field]) {
			continue
		}
		if reason := explain(name, field, q, ours, theirs); reason != "" {
			used[name+": "+reason]++
			continue
		}
		t.Errorf("%s: %s\nnodens %s\n%s %s\nnodens asked %s", what, field, want[field], name, got[field], questionsOf(ours.asked))
	}
}

func questionsOf(asked []*dnstest.Request) string {
	var list []string
	for _, r := range asked {
		list = append(list, fmt.Sprintf("%v tcp %v", r.Query().Question, r.TCP))
	}
	return strings.Join(list, ", ")
}

// near says whether TTLs are the same but for the time between two questions.
func near(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		m, _ := strconv.Atoi(x[i])
		n, _ := strconv.Atoi(y[i])
		if m-n > 1 || n-m > 1 {
			return false
		}
	}
	return true
}

// checkReasons sees that every reason was needed and is told to people.
func checkReasons(t *testing.T, rivals []*rival, used map[string]int) {
	t.Helper()
	text, err := os.ReadFile("../../forwarder/FIDELITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deliberate() {
		if !strings.Contains(string(text), d.reason) {
			t.Errorf("FIDELITY.md does not say %q", d.reason)
		}
		for _, p := range rivals {
			if (d.rival == p.name || d.rival == "") && used[p.name+": "+d.reason] == 0 && os.Getenv("NODENS_SEED") == "" {
				t.Errorf("no difference from %s is due to %q", p.name, d.reason)
			}
		}
	}
}

func nodensRival(t *testing.T) *rival {
	server := dnstest.Serve(t, authority(t))
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", server.Addr()))
	return &rival{"nodens", h.address(0), server}
}

func coreDNSRival(t *testing.T) *rival {
	binary := os.Getenv("NODENS_COREDNS")
	space.Needs(t, "coredns", binary != "" && installed(binary))
	server, at, path := dnstest.Serve(t, authority(t)), space.Free(t), filepath.Join(t.TempDir(), "Corefile")
	write(t, path, fmt.Sprintf(".:%d {\n bind %s\n cache\n forward . %s\n}\n", at.Port(), at.Addr(), server.Addr()))
	startProcess(t, new(bytes.Buffer), nil, binary, "-conf", path)
	untilAnswers(t, at)
	return &rival{"CoreDNS", at, server}
}

func unboundRival(t *testing.T) *rival {
	server, at, dir := dnstest.Serve(t, authority(t)), space.Free(t), t.TempDir()
	write(t, filepath.Join(dir, "unbound.conf"), fmt.Sprintf(`server:
 interface: %s@%d
 username: ""
 chroot: ""
 directory: %q
 pidfile: ""
 use-syslog: no
 num-threads: 1
 do-not-query-localhost: no
 module-config: "iterator"
 local-zone: "test." nodefault
 qname-minimisation: no
forward-zone:
 name: "."
 forward-addr: %s@%d
remote-control:
 control-enable: no
`, at.Addr(), at.Port(), dir, server.Addr().Addr(), server.Addr().Port()))
	startProcess(t, new(bytes.Buffer), nil, "unbound", "-d", "-c", filepath.Join(dir, "unbound.conf"))
	untilAnswers(t, at)
	return &rival{"unbound", at, server}
}
