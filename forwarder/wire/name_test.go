package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

func TestAppendName(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 63)+".", 3) // 192 bytes
	tests := []struct {
		text string
		want string
		ok   bool
	}{
		{".", "\x00", true},
		{"a", "\x01a\x00", true},
		{"svc.local", "\x03svc\x05local\x00", true},
		{"svc.local.", "\x03svc\x05local\x00", true},
		{"Svc.Local", "\x03Svc\x05Local\x00", true},
		{"", "", false},
		{"..", "", false},
		{"a..", "", false},
		{".a", "", false},
		{"a..b", "", false},
		{strings.Repeat("a", 63), "\x3f" + strings.Repeat("a", 63) + "\x00", true},
		{strings.Repeat("a", 64), "", false},
		{long + strings.Repeat("b", 61), string(name(long + strings.Repeat("b", 61))), true},
		{long + strings.Repeat("b", 62), "", false},
	}
	for _, tt := range tests {
		got, ok := wire.AppendName([]byte("xy"), tt.text)
		if ok != tt.ok || string(got) != "xy"+tt.want {
			t.Errorf("%q: got %q, %t; want %q, %t", tt.text, got[2:], ok, tt.want, tt.ok)
		}
	}
}

func TestAppendText(t *testing.T) {
	tests := []struct{ wire, want string }{
		{"", "."},
		{"\x00", "."},
		{"\x01a\x00", "a."},
		{"\x03WwW\x04test\x00", "WwW.test."},
		{"\x03a.b\x00", `a\.b.`},
		{"\x03a\\b\x00", `a\\b.`},
		{"\x03a b\x00", `a\032b.`},
		{"\x03\x00\x7f\xff\x00", `\000\127\255.`},
		{"\x08\"();@$~!\x00", `\"\(\)\;\@\$~!.`},
	}
	for _, tt := range tests {
		if got := string(wire.AppendText(nil, []byte(tt.wire))); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.wire, got, tt.want)
		}
	}
	// Whatever the bytes, others read the text back as the same name.
	for c := range 256 {
		in := []byte{1, byte(c), 0}
		back := make([]byte, 8)
		end, err := dns.PackDomainName(string(wire.AppendText(nil, in)), back, 0, nil, false)
		if err != nil || !bytes.Equal(back[:end], in) {
			t.Errorf("byte %#x: %v, % x", c, err, back[:end])
		}
	}
}

func TestFolding(t *testing.T) {
	for c := range 256 {
		want := byte(c)
		if 'A' <= c && c <= 'Z' {
			want += 'a' - 'A'
		}
		for n := 1; n <= 40; n++ { // every place in and behind a word
			in := bytes.Repeat([]byte{'Q'}, n)
			in[n-1] = byte(c)
			got := wire.AppendFolded([]byte("XY"), in)
			out := append([]byte("XY"), bytes.Repeat([]byte{'q'}, n)...)
			out[n+1] = want
			if !bytes.Equal(got, out) {
				t.Fatalf("byte %#x at %d: got % x", c, n-1, got)
			}
		}
	}
}

func TestEqualNames(t *testing.T) {
	msg := join(make([]byte, 12),
		name("a.test"),                 // 12
		name("A.TEST"),                 // 20
		[]byte("\x01a\xc0\x0e"),        // 28
		[]byte(ask),                    // 32
		name("b.test"),                 // 34
		name("test"),                   // 42
		[]byte("\x03a.t\x03est\x00"),   // 48
		name("x.a.test"),               // 57
		[]byte("\x00\x01\xe1\x00"),     // 67: root; 68: a high byte
		[]byte("\x01\xc1\x00\xc0\x43"), // 71: another; 74: root by pointer
		[]byte("\x01@\x00\x01`\x00"))   // 76, 79: neighbours of the letters
	tests := []struct {
		a, b int
		want bool
	}{
		{12, 12, true},
		{12, 20, true},
		{12, 28, true},
		{12, 32, true},
		{28, 32, true},
		{12, 34, false},
		{12, 42, false},
		{42, 12, false},
		{14, 42, true},
		{12, 48, false},
		{57, 12, false},
		{59, 12, true},
		{67, 12, false},
		{67, 74, true},
		{67, 67, true},
		{68, 71, false},
		{76, 79, false},
	}
	for _, tt := range tests {
		if got := wire.EqualNames(msg, tt.a, tt.b); got != tt.want {
			t.Errorf("%d and %d: got %t", tt.a, tt.b, got)
		}
	}
}
