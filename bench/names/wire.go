package names

import (
	"fmt"
	"strings"
)

// Record types that the zone knows addresses for.
const (
	TypeA    uint16 = 1
	TypeAAAA uint16 = 28
)

const (
	maxName  = 255 // octets of a name on the wire, its root label included
	maxLabel = 63
)

// Wire turns a name in text form, with or without its last dot, into wire
// form. It knows no escapes.
func Wire(text string) ([]byte, error) {
	text = strings.TrimSuffix(text, ".")
	if text == "" {
		return []byte{0}, nil
	}
	wire := make([]byte, 0, len(text)+2)
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > maxLabel {
			return nil, fmt.Errorf("names: %q has a label of %d octets, want 1 to %d", text, len(label), maxLabel)
		}
		wire = append(wire, byte(len(label)))
		wire = append(wire, label...)
	}
	wire = append(wire, 0)
	if len(wire) > maxName {
		return nil, fmt.Errorf("names: %q takes %d octets, want at most %d", text, len(wire), maxName)
	}
	return wire, nil
}

// Text turns a name in wire form into text with a last dot. A damaged name ends
// where it is damaged.
func Text(wire []byte) string {
	var b strings.Builder
	for len(wire) > 0 && wire[0] != 0 && len(wire) > int(wire[0]) {
		n := int(wire[0])
		b.Write(wire[1 : 1+n])
		b.WriteByte('.')
		wire = wire[1+n:]
	}
	if b.Len() == 0 {
		return "."
	}
	return b.String()
}

// fold writes the name in ASCII lower case into dst. Length octets are at most
// 63, below every letter, so the whole name can be folded blindly.
func fold(dst *[maxName]byte, name []byte) []byte {
	n := copy(dst[:], name)
	for i, c := range dst[:n] {
		if c >= 'A' && c <= 'Z' {
			dst[i] = c + ('a' - 'A')
		}
	}
	return dst[:n]
}
