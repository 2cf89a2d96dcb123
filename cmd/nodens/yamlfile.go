package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// yamlFile reads typed values from the nodes of one YAML file. A value that
// cannot be read adds a mistake with its line and leaves the target alone, so
// reading goes on and everything wrong is known at the end.
type yamlFile struct {
	mistakes
}

// fields is what a mapping may hold: a reader for each key.
type fields map[string]func(path string, n *yaml.Node)

// document is the only document of data, or nil after a mistake.
func (y *yamlFile) document(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		y.add(1, "the file is empty", "start from the output of 'nodens check -sample'")
		return nil
	} else if err != nil {
		y.syntax(err)
		return nil
	}
	if err := decoder.Decode(&next); err == nil {
		y.add(next.Line, "a second document starts here", "keep one document in the file")
	} else if !errors.Is(err, io.EOF) {
		y.syntax(err)
	}
	return doc.Content[0]
}

// syntax turns an error of the YAML parser, whose text holds the line, into a
// mistake.
func (y *yamlFile) syntax(err error) {
	line, text := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if found := regexp.MustCompile(`^(?:unmarshal errors:\s*)?line (\d+): `).FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = strings.TrimPrefix(text, found[0])
	}
	y.add(line, "this is not YAML: "+cut(text), "look at this line and its neighbours for indentation, quotes (an IPv6 address needs them) and brackets")
}

// object reads a mapping key by key; required keys that are missing, keys
// given twice and keys nobody knows are mistakes.
func (y *yamlFile) object(path string, n *yaml.Node, known fields, required ...string) {
	if n.Kind != yaml.MappingNode {
		y.wrongKind(path, n, "a mapping of "+strings.Join(sortedKeys(known), ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		read, ok := known[name]
		switch {
		case !ok:
			y.unknown(path, key, known)
		case seen[name] != 0:
			y.add(key.Line, join(path, name)+" is given twice", fmt.Sprintf("remove one (the first is on line %d)", seen[name]))
		case value.Tag == "!!null":
			y.add(key.Line, join(path, name)+" has no value", "write one or remove the line")
		case value.Kind == yaml.AliasNode:
			y.add(key.Line, join(path, name)+" is an alias", "write the value itself")
		default:
			read(join(path, name), value)
		}
		seen[name] = key.Line
	}
	for _, name := range required {
		if seen[name] == 0 {
			y.add(n.Line, join(path, name)+" is missing", "add it")
		}
	}
}

func (y *yamlFile) unknown(path string, key *yaml.Node, known fields) {
	names := sortedKeys(known)
	do := "remove it; known here: " + strings.Join(names, ", ")
	if near := nearest(key.Value, names); near != "" {
		do = fmt.Sprintf("did you mean %q?", near)
	}
	y.add(key.Line, fmt.Sprintf("unknown key %q", join(path, cut(key.Value))), do)
}

// list reads each element of a sequence.
func (y *yamlFile) list(path string, n *yaml.Node, what string, read func(path string, n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		y.wrongKind(path, n, "a list of "+what)
		return
	}
	if len(n.Content) == 0 {
		y.add(n.Line, path+" is an empty list", "add "+what+", or remove it")
	}
	for i, element := range n.Content {
		read(fmt.Sprintf("%s[%d]", path, i), element)
	}
}

// text reads any plain scalar as it is written.
func (y *yamlFile) text(path string, n *yaml.Node, to *string) bool {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		y.wrongKind(path, n, "text")
		return false
	}
	*to = n.Value
	return true
}

// oneOf reads a word out of a fixed set.
func (y *yamlFile) oneOf(path string, n *yaml.Node, to *string, allowed ...string) {
	var word string
	if !y.text(path, n, &word) {
		return
	}
	for _, a := range allowed {
		if word == a {
			*to = word
			return
		}
	}
	y.add(n.Line, fmt.Sprintf("%s is %q", path, cut(word)), "write "+orList(allowed))
}

func (y *yamlFile) boolean(path string, n *yaml.Node, to *bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		y.wrongKind(path, n, "true or false")
		return
	}
	*to = strings.EqualFold(n.Value, "true")
}

func (y *yamlFile) integer(path string, n *yaml.Node, to *int, low, high int) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
		y.wrongKind(path, n, fmt.Sprintf("a whole number from %d to %d", low, high))
		return
	}
	value, err := strconv.Atoi(n.Value)
	if err != nil || value < low || value > high {
		y.outOfRange(path, n, strconv.Itoa(low), strconv.Itoa(high))
		return
	}
	*to = value
}

func (y *yamlFile) duration(path string, n *yaml.Node, to *time.Duration, low, high time.Duration) {
	if n.Kind != yaml.ScalarNode {
		y.wrongKind(path, n, "a duration such as 30s")
		return
	}
	value, err := time.ParseDuration(n.Value)
	switch {
	case err != nil && n.Tag == "!!int":
		y.add(n.Line, fmt.Sprintf("%s is %s without a unit", path, cut(n.Value)), fmt.Sprintf("write %ss for seconds, or another unit (ms, m, h)", cut(n.Value)))
	case err != nil:
		y.wrongKind(path, n, "a duration such as 30s")
	case value < low || value > high:
		y.outOfRange(path, n, shortDuration(low), shortDuration(high))
	default:
		*to = value
	}
}

// bytes reads a size: a plain number of bytes, or one with Ki, Mi or Gi.
func (y *yamlFile) bytes(path string, n *yaml.Node, to *int64, low, high int64) {
	digits, unit := n.Value, int64(1)
	for i, suffix := range []string{"Ki", "Mi", "Gi"} {
		if cut, ok := strings.CutSuffix(n.Value, suffix); ok {
			digits, unit = cut, 1<<(10*(i+1))
		}
	}
	value, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil || value > math.MaxInt64/unit:
		y.wrongKind(path, n, "a size such as 32Mi (bytes, Ki, Mi or Gi)")
	case value*unit < low || value*unit > high:
		y.outOfRange(path, n, shortBytes(low), shortBytes(high))
	default:
		*to = value * unit
	}
}

// addrPort reads ADDRESS:PORT. Without a port the default counts; 0 as
// default means that the port must be written.
func (y *yamlFile) addrPort(path string, n *yaml.Node, defaultPort uint16) (netip.AddrPort, bool) {
	want := `an IP address with a port, such as 127.0.0.1:53 or "[::1]:53"`
	if defaultPort != 0 {
		want = `an IP address with or without a port, such as 192.0.2.1, "192.0.2.1:5300" or "2001:db8::1"`
	}
	if n.Kind != yaml.ScalarNode {
		y.wrongKind(path, n, want+" (IPv6 in quotes)")
		return netip.AddrPort{}, false
	}
	if ip, err := netip.ParseAddr(n.Value); err == nil && defaultPort != 0 {
		return netip.AddrPortFrom(ip.Unmap(), defaultPort), true
	}
	value, err := netip.ParseAddrPort(n.Value)
	if err != nil {
		y.wrongKind(path, n, want)
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(value.Addr().Unmap(), value.Port()), true
}

func (y *yamlFile) wrongKind(path string, n *yaml.Node, want string) {
	if path == "" {
		path = "the file"
	}
	got := map[yaml.Kind]string{
		yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.AliasNode: "an alias",
	}[n.Kind]
	if got == "" {
		got = strconv.Quote(cut(n.Value))
	}
	y.add(n.Line, path+" is "+got, "write "+want)
}

func (y *yamlFile) outOfRange(path string, n *yaml.Node, low, high string) {
	y.add(n.Line, path+" is "+cut(n.Value), "choose from "+low+" to "+high)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
