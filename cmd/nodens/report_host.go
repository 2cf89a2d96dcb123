package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nodens-dns/nodens/deploy/guard"
)

// hostReport is about the node around the daemon; there is none in mode none.
type hostReport struct {
	Mode      string   `json:"mode"`
	Link      string   `json:"link"`
	Addresses []string `json:"addresses"` // on the link
	Guard     string   `json:"guard"`     // how things stand with it, in words
	// Fallback and Bypass say in words whether there is a fallback and whether queries
	// go past the daemon; "" while no guard tells.
	Fallback string   `json:"fallback,omitempty"`
	Ready    bool     `json:"fallbackReady"`
	Bypass   string   `json:"bypass,omitempty"`
	Bypassed []string `json:"bypassed,omitempty"` // addresses whose queries do
}

func (s *snapshot) hostReport() *hostReport {
	if s.Guard == nil {
		return nil
	}
	state := s.Config.hostState()
	r := &hostReport{
		Mode: s.Config.Host.Mode, Link: s.Config.Host.Link, Guard: guardWords(s.Guard),
		Addresses: addressTexts(slices.Concat(state.Own, state.Service)),
	}
	if g := &s.Guard.State; s.Guard.Connected && g.Owner {
		r.Ready, r.Bypassed = g.Fallback == "", addressTexts(g.Bypass)
		r.Fallback, r.Bypass = fallbackWords(g), bypassWords(g, s.At)
	}
	return r
}

func addressTexts(list []netip.Addr) []string {
	var texts []string
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return texts
}

// guardWords says how things stand with the guard.
func guardWords(s *guard.ClientStatus) string {
	switch {
	case !s.Connected:
		return "no connection to the guard"
	case !s.State.Owner:
		return "the guard waits for another one on this node"
	case !s.State.Applied:
		return "the guard cannot set up the node: " + cmp.Or(s.State.Fallback, "its log says why")
	case len(s.State.Bypass) > 0:
		return fmt.Sprintf("queries to %v go past this daemon", s.State.Bypass)
	case s.State.Fallback != "":
		return "guarded, but there is no fallback: " + s.State.Fallback
	}
	return "guarded, the fallback is ready"
}

func fallbackWords(g *guard.SessionState) string {
	if g.Fallback != "" {
		return "not ready: " + g.Fallback
	}
	return "ready"
}

func bypassWords(g *guard.SessionState, now time.Time) string {
	since := "since the guard began"
	if !g.BypassSince.IsZero() {
		since = fmt.Sprintf("since %s UTC (%s)", g.BypassSince.UTC().Format(time.DateTime), humanTime(now.Sub(g.BypassSince)))
	}
	if len(g.Bypass) == 0 {
		return "off " + since
	}
	return fmt.Sprintf("on %s: queries to %s go past this daemon", since, strings.Join(addressTexts(g.Bypass), ", "))
}
