package hostnet

import (
	"bytes"

	"github.com/google/nftables/userdata"
)

// userString finds a text in the user data of a rule, which may be anybody's and so
// of any shape.
func userString(data []byte, typ userdata.Type) string {
	for len(data) >= 2 {
		n := 2 + int(data[1])
		if n > len(data) {
			return ""
		}
		if userdata.Type(data[0]) == typ {
			text, _ := bytes.CutSuffix(data[2:n], []byte{0})
			return string(text)
		}
		data = data[n:]
	}
	return ""
}
