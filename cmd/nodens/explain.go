package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// explainReport is what becomes of a question, and why.
type explainReport struct {
	PID    int       `json:"pid"`
	At     time.Time `json:"at"`
	Node   string    `json:"node,omitempty"`
	Name   string    `json:"name"`
	Type   string    `json:"type"`
	Answer string    `json:"answer"` // in a sentence, for a client without DO and CD
	// Client says whether the client that was named may ask.
	Client string `json:"client,omitempty"`
	Zone   string `json:"zone,omitempty"`
	// Asking reports whether the question is at the servers now.
	Asking bool `json:"asking"`
	// Ruled are the records that a rule of the route gives.
	Ruled []string `json:"ruled,omitempty"`
	// AskedFor is the name that servers are asked for, if it is another one.
	AskedFor string        `json:"askedFor,omitempty"`
	Kept     []keptReport  `json:"kept"`
	Route    *orderedRoute `json:"route,omitempty"`
}

// keptReport is an answer in memory.
type keptReport struct {
	For     string   `json:"for"` // which clients
	Kind    string   `json:"kind"`
	RCode   string   `json:"rcode"`
	Tier    string   `json:"tier,omitempty"` // of the server that it is of
	Age     float64  `json:"ageSeconds"`
	Left    float64  `json:"leftSeconds"` // negative once it has ended
	StandBy float64  `json:"standBySeconds"`
	State   string   `json:"state"`
	Hits    uint32   `json:"hits"`
	Error   string   `json:"extendedError,omitempty"`
	Records []string `json:"records,omitempty"`
}

// orderedRoute is a route with its servers in the order they are asked.
type orderedRoute struct {
	Zones    []string        `json:"zones"`
	From     string          `json:"from"`
	Notes    []string        `json:"notes,omitempty"`
	InFlight int64           `json:"inFlight"`
	Limit    int             `json:"limit"`
	Servers  []orderedServer `json:"servers"`
}

type orderedServer struct {
	serverReport
	// Attempts are the attempts of one query that may go to the server, from 1.
	Attempts []int `json:"attempts"`
}

// serveExplain tells what becomes of the question of name and type.
func (d *daemon) serveExplain(w http.ResponseWriter, request *http.Request) {
	r, err := d.explain(request.URL.Query())
	answerJSON(w, r, err)
}

func (d *daemon) explain(query url.Values) (*explainReport, error) {
	if query.Get("name") == "" {
		return nil, errors.New("which name? Give name, and type unless it is A")
	}
	name, err := wireName(query.Get("name"))
	if err != nil {
		return nil, err
	}
	t, err := typeOf(query.Get("type"))
	if err != nil {
		return nil, err
	}
	s := d.snapshot()
	f := d.current.Load().forwarder
	e := f.Explain(name, t)
	r := &explainReport{
		PID: os.Getpid(), At: s.At, Node: s.Config.Node.Name, Name: textOf(name), Type: typeText(t),
		Answer: answerInWords(&e), Zone: e.Zone, Asking: e.Asking,
	}
	if text := query.Get("client"); text != "" {
		if r.Client, err = mayAsk(f, text); err != nil {
			return nil, err
		}
	}
	r.Ruled = shownRecords(e.Ruled)
	if e.Renamed != nil {
		r.AskedFor = textOf(e.Renamed)
	}
	for i := range e.Kept {
		r.Kept = append(r.Kept, s.keptReport(&e.Kept[i], e.Route))
	}
	if e.Route >= 0 && e.Route < len(s.Routes) && e.RCode == wire.NoError {
		r.Route = d.orderedRoute(&s, e.Route)
	}
	return r, nil
}

func mayAsk(f *forwarder.Forwarder, text string) (string, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return "", fmt.Errorf("client is %q; write an address", cut(text))
	}
	if f.Denies(addr.Unmap()) {
		return addr.String() + " may not ask: see clients in the configuration", nil
	}
	return addr.String() + " may ask", nil
}

// answerInWords is what a client without DO and CD gets.
func answerInWords(e *forwarder.Explanation) string {
	if e.RCode != wire.NoError {
		return rcodeName(int(e.RCode)) + ": questions of this type are not answered, whatever the name"
	}
	if e.Local != "" {
		return "made here: " + e.Local
	}
	if e.Ruled != nil {
		return rcodeName(int(wire.HeaderRCode(e.Ruled))) + " by a rule of the route, before anything else"
	}
	if e.Route < 0 {
		return "SERVFAIL: no route has a zone for the name"
	}
	i := slices.IndexFunc(e.Kept, func(k forwarder.Kept) bool { return !k.DO && !k.CD && k.Left > 0 })
	if i >= 0 && e.Kept[i].Kind == cache.Failure {
		return "SERVFAIL from memory: asking the servers failed a moment ago"
	}
	if i >= 0 {
		return rcodeName(int(e.Kept[i].RCode)) + " from memory"
	}
	i = slices.IndexFunc(e.Kept, func(k forwarder.Kept) bool { return !k.DO && !k.CD && !k.AnyType && k.StandBy > 0 })
	switch {
	case i >= 0 && e.Kept[i].Resting:
		return "the ended answer from memory: asking the servers failed a moment ago"
	case i >= 0:
		return "the servers are asked; the ended answer in memory may stand in if they do not answer"
	}
	return "the servers are asked"
}

// keptReport puts an answer in memory into words.
func (s *snapshot) keptReport(k *forwarder.Kept, route int) keptReport {
	r := keptReport{
		For: keptFor(k), Kind: kindName(k.Kind), RCode: rcodeName(int(k.RCode)),
		Age: k.Age.Seconds(), Left: k.Left.Seconds(), StandBy: max(0, k.StandBy.Seconds()),
		State: keptState(k), Hits: k.Hits,
	}
	if k.Via > 0 && route >= 0 && route < len(s.Routes) {
		r.Tier = s.Routes[route].tierName(int(k.Via) - 1)
	}
	if k.Why != wire.NoEDE {
		r.Error = dns.ExtendedErrorCodeToString[uint16(k.Why)-1]
	}
	r.Records = shownRecords(k.Reply)
	return r
}

// shownRecords are the records of a reply, but for the additional ones.
func shownRecords(reply []byte) (records []string) {
	var m dns.Msg
	if len(reply) == 0 || m.Unpack(reply) != nil {
		return nil
	}
	for _, rr := range slices.Concat(m.Answer, m.Ns) {
		records = append(records, rr.String())
	}
	return records
}

// keptFor are the clients that get an answer.
func keptFor(k *forwarder.Kept) string {
	who := "clients"
	switch {
	case k.DO && k.CD:
		who += " with DO and CD"
	case k.DO:
		who += " with DO (DNSSEC)"
	case k.CD:
		who += " with CD (unchecked)"
	}
	if k.AnyType {
		who += ", whatever type they ask for"
	}
	return who
}

// keptState says what the answer is good for now.
func keptState(k *forwarder.Kept) string {
	switch {
	case k.Left > 0:
		return "holds for " + seconds(k.Left)
	case k.StandBy > 0 && k.Resting:
		return fmt.Sprintf("ended %s ago, stands in until the servers are asked again, for %s at most", seconds(-k.Left), seconds(k.StandBy))
	case k.StandBy > 0:
		return fmt.Sprintf("ended %s ago, may stand in for %s more", seconds(-k.Left), seconds(k.StandBy))
	}
	return fmt.Sprintf("ended %s ago, of no use", seconds(-k.Left))
}

func seconds(d time.Duration) string { return roundTime(d).String() }

func kindName(k cache.Kind) string {
	switch k {
	case cache.Positive:
		return "records"
	case cache.NoData:
		return "no records of the type"
	case cache.NXDomain:
		return "no such name"
	}
	return "failure"
}

// orderedRoute is route i with its servers in the order they are asked.
func (d *daemon) orderedRoute(s *snapshot, i int) *orderedRoute {
	of := s.routeReport(i)
	r := &orderedRoute{Zones: of.Zones, From: of.From, Notes: of.Notes, InFlight: of.InFlight, Limit: of.Limit}
	attempts := map[string][]int{}
	for n, addrs := range d.current.Load().routes[i].group.Order() {
		for _, addr := range addrs {
			attempts[addr.String()] = append(attempts[addr.String()], n+1)
		}
	}
	for _, server := range of.Servers {
		r.Servers = append(r.Servers, orderedServer{server, attempts[server.Address]})
	}
	slices.SortStableFunc(r.Servers, func(a, b orderedServer) int { return cmp.Compare(a.first(), b.first()) })
	return r
}

// first is the first attempt that may go to the server; a large number for none.
func (s *orderedServer) first() int {
	if len(s.Attempts) == 0 {
		return 1 << 30
	}
	return s.Attempts[0]
}
