package main

import (
	"time"

	"github.com/miekg/dns"
	"go.yaml.in/yaml/v3"
)

// addRules puts the rules of a route among its keys.
func addRules(m yamlMap, r *RulesConfig) {
	m.sequence("rewrite", len(r.Rewrite), func(i int) yamlMap {
		one, key := newMap(), "name"
		if r.Rewrite[i].Suffix {
			key = "suffix"
		}
		one.text(key, r.Rewrite[i].From, "")
		one.text("to", r.Rewrite[i].To, "")
		return one
	})
	m.sequence("answers", len(r.Answers), func(i int) yamlMap { return answerNode(&r.Answers[i]) })
	m.flag("filterAAAA", r.FilterAAAA, false)
	if h := &r.Hosts; h.given() {
		hosts := newMap()
		hosts.list("entries", h.Entries)
		hosts.text("file", h.File, "")
		hosts.time("ttl", h.TTL, time.Hour)
		hosts.flag("reverse", h.Reverse, true)
		hosts.flag("only", h.Only, false)
		m.section("hosts", hosts)
	}
	if r.DNS64.Prefix.IsValid() {
		d := newMap()
		d.text("prefix", r.DNS64.Prefix.String(), "")
		d.flag("all", r.DNS64.All, false)
		m.section("dns64", d)
	}
}

func answerNode(a *AnswerConfig) yamlMap {
	m := newMap()
	m.list("below", a.Below)
	m.text("match", a.Match, "")
	var types []string
	for _, t := range a.Types {
		types = append(types, dns.TypeToString[t])
	}
	m.list("types", types)
	m.text("rcode", dns.RcodeToString[a.RCode], dns.RcodeToString[dns.RcodeSuccess])
	m.list("records", a.Records)
	return m
}

// sequence puts a list of mappings.
func (m yamlMap) sequence(key string, length int, element func(i int) yamlMap) {
	if length == 0 {
		return
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range length {
		n.Content = append(n.Content, element(i).Node)
	}
	m.put(key, n)
}
