package main

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// The functions of this file bind a value of the file to a place in the
// Config, so that the tables in configfile.go read like the file itself.

type reader = func(path string, n *yaml.Node)

func (y *yamlFile) section(known fields) reader {
	return func(path string, n *yaml.Node) { y.object(path, n, known) }
}

// noted keeps the line of what is read.
func (y *yamlFile) noted(line *int, read reader) reader {
	return func(path string, n *yaml.Node) {
		*line = n.Line
		read(path, n)
	}
}

func (y *yamlFile) to(p *string) reader {
	return func(path string, n *yaml.Node) { y.text(path, n, p) }
}

func (y *yamlFile) word(p *string, allowed ...string) reader {
	return func(path string, n *yaml.Node) { y.oneOf(path, n, p, allowed...) }
}

func (y *yamlFile) flag(p *bool) reader {
	return func(path string, n *yaml.Node) { y.boolean(path, n, p) }
}

func (y *yamlFile) number(p *int, low, high int) reader {
	return func(path string, n *yaml.Node) { y.integer(path, n, p, low, high) }
}

func (y *yamlFile) size(p *int64, low, high int64) reader {
	return func(path string, n *yaml.Node) { y.bytes(path, n, p, low, high) }
}

func (y *yamlFile) time(p *time.Duration, low, high time.Duration) reader {
	return func(path string, n *yaml.Node) { y.duration(path, n, p, low, high) }
}
