package hostnet

import (
	"fmt"
	"strings"
)

// String is the table in the words of nft, which can load it.
func (t *table) String() string {
	if t == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s {\n", t.name)
	for _, c := range t.counters {
		fmt.Fprintf(&b, "\tcounter %s {\n\t}\n\n", c)
	}
	for _, s := range t.sets {
		s.write(&b)
	}
	for i, c := range t.chains {
		if i > 0 {
			b.WriteByte('\n')
		}
		c.write(&b)
	}
	b.WriteString("}\n")
	return b.String()
}

func (s set) write(b *strings.Builder) {
	fmt.Fprintf(b, "\tset %s {\n\t\ttype %s\n", s.name, s.family.typ.Name)
	if s.timeout {
		b.WriteString("\t\tflags timeout\n")
	}
	if len(s.addrs) > 0 {
		list := make([]string, 0, len(s.addrs))
		for _, a := range s.addrs {
			list = append(list, a.String())
		}
		fmt.Fprintf(b, "\t\telements = { %s }\n", strings.Join(list, ", "))
	}
	b.WriteString("\t}\n\n")
}

func (c chain) write(b *strings.Builder) {
	fmt.Fprintf(b, "\tchain %s {\n", c.name)
	if c.hook != nil {
		fmt.Fprintf(b, "\t\ttype %s hook %s priority %d; policy accept;\n", c.hook.kind, c.hook.name, c.hook.priority)
	}
	for _, r := range c.rules {
		fmt.Fprintf(b, "\t\t%s\n", r)
	}
	b.WriteString("\t}\n")
}
