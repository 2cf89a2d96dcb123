package main

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// word is one word of a Corefile after its placeholder was replaced.
type word struct {
	text string
	// placeholder is what stood in its place; empty when it was written as it is.
	placeholder string
}

// statement is one directive, or one option of a directive: its name with
// arguments, and what stands in the braces behind them.
type statement struct {
	file  string
	line  int
	words []word // the name is the first
	block []statement
}

func (s *statement) name() string { return s.words[0].text }

func (s *statement) args() []word { return s.words[1:] }

// texts are the arguments as they are written.
func (s *statement) texts() []string {
	var list []string
	for _, w := range s.args() {
		list = append(list, w.text)
	}
	return list
}

// option is the last statement of the block with this name, or nil.
func (s *statement) option(name string) *statement {
	var found *statement
	for i := range s.block {
		if s.block[i].name() == name {
			found = &s.block[i]
		}
	}
	return found
}

// statementReader turns the words of one directive, which may be there several
// times, into statements.
type statementReader struct {
	tokens []caddyfile.Token
	at     int
	expand func(text string) []word
	// shown is the name of a file as people gave it.
	shown func(file string) string
}

// list reads statements up to the brace that closes the block, or to the end.
func (r *statementReader) list() []statement {
	var list []statement
	for r.at < len(r.tokens) {
		if r.tokens[r.at].Text == "}" {
			r.at++
			break
		}
		if s := r.statement(); len(s.words) > 0 {
			list = append(list, s)
		}
	}
	return list
}

func (r *statementReader) statement() statement {
	first := r.tokens[r.at]
	s := statement{file: r.shown(first.File), line: first.Line}
	for start := r.at; r.at < len(r.tokens); r.at++ {
		t := r.tokens[r.at]
		switch {
		case t.Text == "{":
			r.at++
			s.block = r.list()
			return s
		case r.at > start && (t.Text == "}" || r.newLine()):
			return s
		}
		s.words = append(s.words, r.expand(t.Text)...)
	}
	return s
}

// newLine says that the word begins a line. A quoted word may have several.
func (r *statementReader) newLine() bool {
	before, t := r.tokens[r.at-1], r.tokens[r.at]
	return before.File != t.File || before.Line+strings.Count(before.Text, "\n") < t.Line
}

// placeholders are the words that node-cache replaces in its template, with what
// they stand for.
func (c *corefile) placeholders() map[string]string {
	var ips []string
	for _, ip := range c.options.LocalIPs {
		ips = append(ips, ip.String())
	}
	return map[string]string{
		"__PILLAR__LOCAL__DNS__":   strings.Join(ips, " "),
		"__PILLAR__DNS__SERVER__":  "",
		clusterPlaceholder:         clusterPlaceholder,
		upstreamPlaceholder:        strings.Join(c.kube.upstreams(), " "),
		"__PROMETHEUS__ENDPOINT__": c.options.MetricsAt,
	}
}

const (
	// clusterPlaceholder stands for the servers of the cluster: whoever reads it
	// has to know that they are endpoints, not an address.
	clusterPlaceholder = "__PILLAR__CLUSTER__DNS__"
	// upstreamPlaceholder stands for the servers of all other names.
	upstreamPlaceholder = "__PILLAR__UPSTREAM__SERVERS__"
)

// expand replaces the placeholders in a word. As node-cache does it before it
// looks for words, one may become several or none.
func (c *corefile) expand(text string) []word {
	if !strings.Contains(text, "__") {
		return []word{{text: text}}
	}
	var found string
	for name, value := range c.placeholders() {
		if strings.Contains(text, name) {
			found, text = name, strings.ReplaceAll(text, name, value)
		}
	}
	if found == "" {
		return []word{{text: text}}
	}
	var words []word
	for _, one := range strings.Fields(text) {
		words = append(words, word{text: one, placeholder: found})
	}
	return words
}

// shown is the name of an imported file beside that of the Corefile: the parser
// makes it absolute.
func (c *corefile) shown(file string) string {
	if whole, err := filepath.Abs(c.options.Path); err == nil && file == whole {
		return c.options.Path
	}
	folder := filepath.Dir(c.options.Path)
	whole, err := filepath.Abs(folder)
	if rest, ok := strings.CutPrefix(file, whole+"/"); ok && err == nil {
		return filepath.Join(folder, rest)
	}
	return file
}

// syntax turns an error of the parser, whose text holds file and line, into a
// mistake.
func (c *corefile) syntax(err error) {
	found := regexp.MustCompile(`^(.*):(\d+) - (?:Error during parsing|Syntax error): (.*)$`).FindStringSubmatch(err.Error())
	if found == nil {
		c.add(1, "this is no Corefile: "+cut(err.Error()), "correct it")
		return
	}
	line, _ := strconv.Atoi(found[2])
	c.addIn(c.shown(found[1]), line, "this is no Corefile: "+cut(found[3]), "look at this line and those before it for braces and missing words")
}

// address reads an IP address with or without a port. As in CoreDNS, IPv6 with a
// port needs brackets and may have them without.
func address(text string, port uint16) (netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
	}
	ip, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no IP address", text)
	}
	return netip.AddrPortFrom(ip.Unmap(), port), nil
}
