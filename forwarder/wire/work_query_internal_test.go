package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// heavyQueries are queries of 64 KiB, as TCP brings them, that are as much work
// as can be.
func heavyQueries() map[string][]byte {
	head := []byte("\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\xff\xff\x01a\x00\x00\x01\x00\x01")
	opt := func(options []byte) []byte {
		return append(append16([]byte{0, 0, byte(TypeOPT), 4, 208, 0, 0, 0, 0}, uint16(len(options))), options...)
	}
	cookie := []byte("\x00\x0a\x00\x08cookies!")
	long := append(bytes.Repeat([]byte("\x01b"), 126), 0)
	record := func(name []byte) []byte {
		return append(bytes.Clone(name), 0, 1, 0, 1, 0, 0, 0, 0, 0, 0)
	}
	filled := func(head, with []byte) []byte {
		return append(bytes.Clone(head), bytes.Repeat(with, (MaxMessage-len(head))/len(with))...)
	}
	first := append(bytes.Clone(head), record(long)...)
	return map[string][]byte{
		"one OPT full of options":   append(bytes.Clone(head), opt(bytes.Repeat(cookie, 5400))...),
		"options without data":      append(bytes.Clone(head), opt(make([]byte, 65000))...),
		"nothing but OPTs":          filled(head, opt(nil)),
		"OPTs full of options":      filled(head, opt(bytes.Repeat(cookie, 32))),
		"the smallest records":      filled(head, record([]byte{0})),
		"long names":                filled(head, record(long)),
		"pointers to a long name":   filled(first, record([]byte{0xC0, byte(len(head))})),
		"pointers that lead onward": filled(head, record([]byte{0xC0, 0xFF})),
	}
}

// TestWorkOfQueries holds that no query is more work than allowed, and that all
// of these are refused.
func TestWorkOfQueries(t *testing.T) {
	for what, msg := range heavyQueries() {
		n, _ := steps(msg)
		q, fault := ParseQuery(msg)
		t.Logf("%s: %d bytes, %d steps", what, len(msg), n)
		if n > mostSteps || fault != Malformed || !q.HasQuestion() {
			t.Errorf("%s: %d steps, at most %d; fault %d", what, n, mostSteps, fault)
		}
	}
}

// TestManyOptions holds the number of options that are looked at.
func TestManyOptions(t *testing.T) {
	for n, want := range map[int]Fault{0: Sound, 1: Sound, maxOptions: Sound, maxOptions + 1: Malformed, 1000: Malformed} {
		msg := []byte("\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01a\x00\x00\x01\x00\x01\x00\x00\x29\x04\xd0\x00\x00\x00\x00")
		msg = append(binary.BigEndian.AppendUint16(msg, uint16(6*n)), bytes.Repeat([]byte("\x00\x0c\x00\x02\x00\x00"), n)...)
		if _, fault := ParseQuery(msg); fault != want {
			t.Errorf("%d options: fault %d, want %d", n, fault, want)
		}
	}
}

func BenchmarkWorstQuery(b *testing.B) {
	for what, msg := range heavyQueries() {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				_, _ = ParseQuery(msg)
			}
		})
	}
}
