package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/access"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

const (
	// tailEvery is how often what came to pass is sent. With the bound of what
	// waits for it, no more than 2560 queries a second are shown: more would
	// cost the time that answering needs, and nobody could read them.
	tailEvery = 100 * time.Millisecond
	// tailWrite is how long a client may take to read.
	tailWrite = 10 * time.Second
)

// tailLine is one line of /tail: a query, or how many were left out since the
// line before.
type tailLine struct {
	At      time.Time `json:"at"`
	Client  string    `json:"client,omitempty"`
	Proto   string    `json:"proto,omitempty"`
	Name    string    `json:"name,omitempty"`
	Type    string    `json:"type,omitempty"`
	Class   string    `json:"class,omitempty"` // other than IN
	RCode   string    `json:"rcode,omitempty"` // "" without a reply
	From    string    `json:"from,omitempty"`  // hit, stale, miss, local, failure, denied or limited
	Tier    string    `json:"tier,omitempty"`  // of the server that the answer is of
	Took    float64   `json:"tookMicroseconds,omitempty"`
	LeftOut uint64    `json:"leftOut,omitempty"`
}

// serveTail sends queries as lines of JSON until the client or the daemon goes.
func (d *daemon) serveTail(w http.ResponseWriter, request *http.Request) {
	filter, err := tailFilter(request.URL.Query())
	if err != nil {
		answerJSON(w, nil, err)
		return
	}
	tap, err := d.taps.Open(filter)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer tap.Close()
	out := &tailOutput{control: http.NewResponseController(w), encoder: json.NewEncoder(w)}
	if err := out.control.SetReadDeadline(time.Time{}); err != nil { // it would end the request
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	ticker := time.NewTicker(tailEvery)
	defer ticker.Stop()
	for err == nil {
		err = d.sendTail(out, tap)
		select {
		case <-ticker.C:
		case <-request.Context().Done():
			return
		}
	}
}

// tailOutput is where lines go.
type tailOutput struct {
	control *http.ResponseController
	encoder *json.Encoder
	leftOut uint64 // that were told
}

// sendTail sends what waits.
func (d *daemon) sendTail(out *tailOutput, tap *forwarder.Tap) error {
	if err := out.control.SetWriteDeadline(time.Now().Add(tailWrite)); err != nil {
		return err
	}
	for range len(tap.Events()) {
		e := <-tap.Events()
		if err := out.encoder.Encode(d.tailLine(&e)); err != nil {
			return err
		}
	}
	if n := tap.Dropped(); n != out.leftOut {
		if err := out.encoder.Encode(tailLine{At: time.Now(), LeftOut: n - out.leftOut}); err != nil {
			return err
		}
		out.leftOut = n
	}
	return out.control.Flush()
}

// tailLine puts an event into words.
func (d *daemon) tailLine(e *forwarder.Event) tailLine {
	l := tailLine{
		At: d.started.Add(e.At), Client: e.Client.String(), Proto: protoName(int(e.Proto)),
		Name: textOf(e.Name()), Type: typeText(e.Type), Class: classText(e.Class), RCode: rcodeName(int(e.RCode)), From: sourceName(e.Source),
		Took: float64(e.Took) / float64(time.Microsecond),
	}
	switch {
	case len(e.Name()) == 0:
		l.Name, l.Type, l.Class = "", "", "" // it could not be read
	case e.RCode == forwarder.NoReply:
		l.RCode = ""
	}
	switch e.Ruling {
	case access.Denied:
		l.From = "denied"
	case access.Limited:
		l.From = "limited"
	}
	if e.Via > 0 && e.Route >= 0 {
		l.Tier = d.tierOf(e.Route, e.Via)
	}
	return l
}

// tierOf is the name of the tier that an answer of a route came from.
func (d *daemon) tierOf(route int, via uint8) string {
	routes := d.current.Load().routes
	if route >= len(routes) {
		return "" // another configuration by now
	}
	return tierName(int(via)-1, routes[route].watcher == nil)
}

// tailFilter reads what is wanted.
func tailFilter(query url.Values) (f forwarder.Filter, err error) {
	if text := query.Get("name"); text != "" {
		if f.Below, err = wireName(text); err != nil {
			return f, err
		}
	}
	if text := query.Get("type"); text != "" {
		if f.Type, err = typeOf(text); err != nil {
			return f, err
		}
	}
	if text := query.Get("client"); text != "" {
		if f.Clients, err = clientPrefix(text); err != nil {
			return f, err
		}
	}
	if text := query.Get("slower"); text != "" {
		if f.Slower, err = time.ParseDuration(text); err != nil || f.Slower < 0 {
			return f, fmt.Errorf("slower is %q; write a duration such as 10ms", cut(text))
		}
	}
	if f.Sources, err = listOf(query.Get("from"), allSources(), sourceName); err != nil {
		return f, fmt.Errorf("from: %w", err)
	}
	if f.RCodes, err = listOf(query.Get("rcode"), allRCodes(), func(r wire.RCode) string { return rcodeName(int(r)) }); err != nil {
		return f, fmt.Errorf("rcode: %w", err)
	}
	return f, nil
}

func allSources() (all []forwarder.Source) {
	for s := range forwarder.Sources {
		all = append(all, forwarder.Source(s))
	}
	return all
}

func allRCodes() (all []wire.RCode) {
	for r := range forwarder.RCodes {
		all = append(all, wire.RCode(r))
	}
	return all
}

// listOf reads names with commas between.
func listOf[T any](text string, all []T, name func(T) string) (found []T, err error) {
	if text == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(all, func(one T) bool { return strings.EqualFold(name(one), word) })
		if i < 0 {
			var names []string
			for _, one := range all {
				names = append(names, name(one))
			}
			return nil, fmt.Errorf("%q is unknown; write %s", cut(word), orList(names))
		}
		found = append(found, all[i])
	}
	return found, nil
}

// clientPrefix reads an address or a prefix.
func clientPrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("client is %q; write an address or a prefix such as 10.0.0.0/8", cut(text))
	}
	return p.Masked(), nil
}
