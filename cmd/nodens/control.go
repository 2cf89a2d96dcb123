package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// control adds the requests that show what clients ask and change what
// they get. They are for this machine's loopback unless the configuration says
// otherwise: a pod reaches the admin address, if that is not a loopback one, but
// not from there. What changes something is a POST, and a browser that another
// site sends here is turned away.
func (d *daemon) control(mux *http.ServeMux, who string) {
	if who == "off" {
		return
	}
	mux.Handle("GET /explain", onlyFor(who, "admin.control", d.serveExplain))
	mux.Handle("GET /tail", onlyFor(who, "admin.control", d.serveTail))
	mux.Handle("POST /flush", http.NewCrossOriginProtection().Handler(onlyFor(who, "admin.control", d.serveFlush)))
}

// wireName is the folded wire form of a name as people write it, with or without
// a final dot.
func wireName(text string) ([]byte, error) {
	buf := make([]byte, wire.MaxName+1)
	n, err := dns.PackDomainName(dns.Fqdn(text), buf, 0, nil, false)
	if err != nil || text == "" || n > wire.MaxName {
		return nil, fmt.Errorf("%q is not a domain name; write labels of 1 to 63 bytes with dots between", cut(text))
	}
	return wire.AppendFolded(nil, buf[:n]), nil
}

// typeOf reads a question type: its name, TYPE65280, or nothing for A.
func typeOf(text string) (wire.Type, error) {
	text = strings.ToUpper(text)
	if text == "" {
		return wire.TypeA, nil
	}
	if t, ok := dns.StringToType[text]; ok {
		return wire.Type(t), nil
	}
	if digits, ok := strings.CutPrefix(text, "TYPE"); ok {
		if n, err := strconv.ParseUint(digits, 10, 16); err == nil {
			return wire.Type(n), nil
		}
	}
	return 0, fmt.Errorf("%q is not a type; write one such as A, AAAA or TYPE65280", cut(text))
}

func typeText(t wire.Type) string { return dns.Type(t).String() }

// classText is the name of a class; "" for IN, which goes without saying.
func classText(c wire.Class) string {
	if c == wire.ClassIN {
		return ""
	}
	return dns.Class(c).String()
}

func textOf(name []byte) string { return string(wire.AppendText(nil, name)) }

// answerJSON sends a report, or tells what is wrong with the request.
func answerJSON(w http.ResponseWriter, report any, err error) {
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(report) // the client went away
}
