package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nodens-dns/nodens/topology"
	"sigs.k8s.io/yaml"
)

// The only apiVersions that are read.
const (
	discoveryV1 = "discovery.k8s.io/v1"
	coreV1      = "v1"
)

// Parse reads EndpointSlices from YAML or JSON: an EndpointSliceList, a v1 List
// of them, a bare list, a single one, or several YAML documents of any of these.
// It gives all of them or an error that names every mistake, each with name, the
// document and the item. An empty file is a mistake, since it is what a file
// half written looks like; no slices at all are written as [].
func Parse(name string, data []byte) ([]topology.Slice, error) {
	p := parser{name: name, seen: make(map[string]place)}
	for i, doc := range documents(data) {
		p.document(place{document: i + 1}, doc)
	}
	if p.found == 0 && len(p.mistakes) == 0 {
		p.fail(place{}, "the file is empty; write [] if there are no slices")
	}
	if len(p.mistakes) > 0 {
		return nil, errors.Join(p.mistakes...)
	}
	return p.slices, nil
}

// place is where in the file something stands, both counted from 1.
type place struct {
	document int // 0 = the whole file
	item     int // 0 = the document itself
}

func (p place) String() string {
	switch {
	case p.document == 0:
		return ""
	case p.item == 0:
		return fmt.Sprintf(" document %d:", p.document)
	default:
		return fmt.Sprintf(" document %d, item %d:", p.document, p.item)
	}
}

// parser gathers slices and mistakes.
type parser struct {
	name     string
	found    int // documents with content
	seen     map[string]place
	slices   []topology.Slice
	mistakes []error
}

func (p *parser) fail(at place, format string, args ...any) {
	p.mistakes = append(p.mistakes, fmt.Errorf("%s:%s %w", p.name, at, fmt.Errorf(format, args...)))
}

// document reads one YAML document; one without content is skipped.
func (p *parser) document(at place, doc []byte) {
	raw, err := toJSON(doc)
	if err != nil {
		p.found++
		p.fail(at, "neither JSON nor YAML: %w", err)
		return
	}
	if bytes.Equal(raw, []byte("null")) {
		return
	}
	p.found++
	switch raw[0] {
	case '[':
		p.list(at, raw)
	case '{':
		p.object(at, raw)
	default:
		p.fail(at, "want an object or a list, not %.40s", raw)
	}
}

// toJSON returns JSON without white space around it. JSON is not sent through
// the YAML parser, which is stricter about tabs.
func toJSON(doc []byte) ([]byte, error) {
	doc = bytes.TrimSpace(doc)
	if json.Valid(doc) {
		return doc, nil
	}
	raw, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, err
	}
	return bytes.TrimSpace(raw), nil
}

// header is what tells kinds apart.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// object reads a slice or a list object.
func (p *parser) object(at place, raw []byte) {
	var h header
	if err := json.Unmarshal(raw, &h); err != nil {
		p.fail(at, "%w", err)
		return
	}
	switch {
	case h == header{discoveryV1, "EndpointSlice"}:
		p.slice(at, raw)
	case at.item == 0 && (h == header{discoveryV1, "EndpointSliceList"} || h == header{coreV1, "List"}):
		p.items(at, raw, h)
	default:
		p.fail(at, "unknown kind %q of apiVersion %q; want EndpointSlice or EndpointSliceList of %s, or List of v1",
			h.Kind, h.APIVersion, discoveryV1)
	}
}

// items reads a list object. Items of a typed list may leave out their kind, as
// the API does.
func (p *parser) items(at place, raw []byte, h header) {
	var list struct {
		Items *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		p.fail(at, "%w", err)
		return
	}
	if list.Items == nil {
		p.fail(at, "a %s without items; write items: [] if there are no slices", h.Kind)
		return
	}
	p.elements(at, *list.Items, h.Kind == "EndpointSliceList")
}

// list reads a bare list.
func (p *parser) list(at place, raw []byte) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		p.fail(at, "%w", err)
		return
	}
	p.elements(at, items, true)
}

// elements reads the items of a list. Where kindless, an item without kind and
// apiVersion is an EndpointSlice.
func (p *parser) elements(at place, items []json.RawMessage, kindless bool) {
	for i, raw := range items {
		at := place{document: at.document, item: i + 1}
		var h header
		if err := json.Unmarshal(raw, &h); err != nil {
			p.fail(at, "%w", err)
			continue
		}
		if kindless && h == (header{}) {
			p.slice(at, raw)
			continue
		}
		p.object(at, raw)
	}
}

// slice reads and checks one EndpointSlice.
func (p *parser) slice(at place, raw []byte) {
	var s endpointSlice
	if err := json.Unmarshal(raw, &s); err != nil {
		p.fail(at, "%w", err)
		return
	}
	before := len(p.mistakes)
	s.check(func(format string, args ...any) { p.fail(at, format, args...) })
	name := s.Metadata.Namespace + "/" + s.Metadata.Name
	if first, again := p.seen[name]; again && s.Metadata.Name != "" {
		p.fail(at, "slice %s was there already:%s remove one", name, first)
	}
	p.seen[name] = at
	if len(p.mistakes) == before {
		p.slices = append(p.slices, s.slice())
	}
}
