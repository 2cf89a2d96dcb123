package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// file reads typed values from the nodes of a YAML file. What cannot be read is
// a mistake with its line, and reading goes on.
type file struct{ mistakes }

type reader func(path string, n *yaml.Node)

// fields is what a mapping may hold.
type fields map[string]reader

// document is the only document of data, nil after a mistake.
func (f *file) document(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		f.add(1, "the file is empty", "start from one that 'nodens-bench scenarios -show warm' prints")
		return nil
	case err != nil:
		f.syntax(err)
		return nil
	}
	if err := decoder.Decode(&next); err == nil {
		f.add(next.Line, "a second document starts here", "keep one document in a file")
	} else if !errors.Is(err, io.EOF) {
		f.syntax(err)
	}
	return doc.Content[0]
}

// syntax turns an error of the YAML parser, whose text holds the line, into a
// mistake.
func (f *file) syntax(err error) {
	line, text := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if found := regexp.MustCompile(`line (\d+): `).FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = strings.Replace(text, found[0], "", 1)
	}
	f.add(line, "this is not YAML: "+text, "look at this line and its neighbours for indentation, quotes and brackets")
}

// object reads a mapping key by key.
func (f *file) object(path string, n *yaml.Node, known fields, required ...string) {
	names := slices.Sorted(maps.Keys(known))
	if n.Kind != yaml.MappingNode {
		f.wrong(path, n, "a mapping of "+strings.Join(names, ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		read, ok := known[key.Value]
		switch {
		case !ok:
			f.add(key.Line, fmt.Sprintf("unknown key %q", at), "remove it; known here: "+strings.Join(names, ", "))
		case seen[key.Value] != 0:
			f.add(key.Line, at+" is given twice", fmt.Sprintf("remove one (the first is on line %d)", seen[key.Value]))
		default:
			read(at, value)
		}
		seen[key.Value] = key.Line
	}
	for _, name := range required {
		if seen[name] == 0 {
			f.add(n.Line, join(path, name)+" is missing", "add it")
		}
	}
}

func (f *file) list(path string, n *yaml.Node, read reader) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		f.wrong(path, n, "a list with at least one element")
		return
	}
	for i, element := range n.Content {
		read(fmt.Sprintf("%s[%d]", path, i), element)
	}
}

func (f *file) section(known fields) reader {
	return func(path string, n *yaml.Node) { f.object(path, n, known) }
}

func (f *file) text(to *string) reader {
	return func(path string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Value == "" {
			f.wrong(path, n, "text")
			return
		}
		*to = n.Value
	}
}

func (f *file) word(allowed []string, take func(i int)) reader {
	return func(path string, n *yaml.Node) {
		i := slices.Index(allowed, n.Value)
		if n.Kind != yaml.ScalarNode || i < 0 {
			f.wrong(path, n, "one of "+strings.Join(allowed, ", "))
			return
		}
		take(i)
	}
}

func (f *file) flag(to *bool) reader {
	return func(path string, n *yaml.Node) {
		if n.Tag != "!!bool" {
			f.wrong(path, n, "true or false")
			return
		}
		*to = strings.EqualFold(n.Value, "true")
	}
}

func (f *file) integer(to *int, low, high int) reader {
	return func(path string, n *yaml.Node) {
		value, err := strconv.Atoi(n.Value)
		if n.Tag != "!!int" || err != nil || value < low || value > high {
			f.wrong(path, n, fmt.Sprintf("a whole number from %d to %d", low, high))
			return
		}
		*to = value
	}
}

func (f *file) number(to *float64, low, high float64) reader {
	return func(path string, n *yaml.Node) {
		value, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil || !(value >= low && value <= high) {
			f.wrong(path, n, fmt.Sprintf("a number from %v to %v", low, high))
			return
		}
		*to = value
	}
}

func (f *file) duration(to *time.Duration, low, high time.Duration) reader {
	return func(path string, n *yaml.Node) {
		value, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || value < low || value > high {
			f.wrong(path, n, fmt.Sprintf("a duration with its unit, from %v to %v", low, high))
			return
		}
		*to = value
	}
}

func (f *file) wrong(path string, n *yaml.Node, want string) {
	got := map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.AliasNode: "an alias"}[n.Kind]
	if got == "" {
		got = strconv.Quote(n.Value)
	}
	if path == "" {
		path = "the file"
	}
	f.add(n.Line, path+" is "+got, "write "+want)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
