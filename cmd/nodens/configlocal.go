package main

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

const (
	maxDenied = 64
	maxChaos  = 16
)

func (f *configFile) local() fields {
	l := &f.config.Local
	return fields{
		"deny":           f.deny,
		"chaos":          f.chaos,
		"refuseSnooping": f.flag(&l.RefuseSnooping),
	}
}

func (f *configFile) deny(path string, n *yaml.Node) {
	f.list(path, n, "names", func(path string, n *yaml.Node) {
		var name string
		if f.name(path, n, &name); name == "" {
			return
		}
		if name == "." {
			f.add(n.Line, path+` is ".", which is every name`, "leave out the route for it instead")
			return
		}
		f.config.Local.Deny = append(f.config.Local.Deny, name)
		f.denied = append(f.denied, n.Line)
	})
	if len(f.config.Local.Deny) > maxDenied {
		f.add(n.Line, fmt.Sprintf("%s has %d names", path, len(f.config.Local.Deny)), fmt.Sprintf("keep at most %d", maxDenied))
	}
}

// compareDenied looks for names that are denied in vain.
func (f *configFile) compareDenied() {
	first := map[string]int{}
	for i, name := range f.config.Local.Deny {
		line, routed, again := f.denied[i], f.zoneLines[name], first[name]
		switch {
		case routed != 0:
			f.add(line, fmt.Sprintf("local.deny has %q, which is also a zone of a route", name), fmt.Sprintf("keep it in one place (the zone is on line %d)", routed))
		case again != 0:
			f.add(line, fmt.Sprintf("local.deny repeats %q", name), fmt.Sprintf("remove one (the first is on line %d)", again))
		default:
			first[name] = line
		}
	}
}

// chaos reads texts by name: the names are the keys.
func (f *configFile) chaos(path string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		f.wrongKind(path, n, "a mapping of names to texts, such as version.bind: nodens")
		return
	}
	texts := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		var name, text string
		f.name(path, key, &name)
		if f.text(path+"."+cut(key.Value), value, &text); name == "" || text == "" {
			continue
		}
		switch {
		case texts[name] != "":
			f.add(key.Line, fmt.Sprintf("%s has %q twice", path, name), "remove one")
		case len(text) > 255:
			f.add(value.Line, fmt.Sprintf("the text of %s.%s has %d bytes", path, cut(key.Value), len(text)), "keep at most 255")
		}
		texts[name] = text
	}
	if len(texts) > maxChaos {
		f.add(n.Line, fmt.Sprintf("%s has %d texts", path, len(texts)), fmt.Sprintf("keep at most %d", maxChaos))
	}
	f.config.Local.Chaos = texts
}
