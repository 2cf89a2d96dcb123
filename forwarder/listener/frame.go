package listener

import (
	"encoding/binary"
	"errors"
)

const (
	// prefixSize is the length of the length that precedes a message on TCP.
	prefixSize = 2
	// maxMessage is the longest message that the prefix can announce.
	maxMessage = 65535
	// inputSize is the usual size of an input: many queries. A longer message
	// gets an array of its own.
	inputSize = 4096
	// coalesceSize is how many bytes of replies are gathered into one write.
	coalesceSize = 16 << 10
)

// errFrame tells of a length that no query has.
var errFrame = errors.New("message shorter than a DNS header")

// input holds the bytes that were read from a connection and not yet used.
type input struct {
	data        []byte
	first, last int // data[first:last] is unused
}

func newInput() input { return input{data: make([]byte, inputSize)} }

func (in *input) empty() bool { return in.first == in.last }

// message takes the next message out, if it is there to its end. It stays valid
// until space is called.
func (in *input) message() (msg []byte, ok bool, err error) {
	need, known := in.need()
	if !known {
		return nil, false, nil
	}
	if need < prefixSize+headerSize {
		return nil, false, errFrame
	}
	if in.last-in.first < need {
		return nil, false, nil
	}
	start := in.first + prefixSize
	in.first += need
	return in.data[start:in.first:in.first], true, nil
}

// need returns the length of the next message with its prefix, once known.
func (in *input) need() (int, bool) {
	if in.last-in.first < prefixSize {
		return 0, false
	}
	return prefixSize + int(binary.BigEndian.Uint16(in.data[in.first:])), true
}

// space returns where to read to: at least one byte, and enough for the rest
// of the message that has begun. The array of a long message is left when the
// message was used.
func (in *input) space() []byte {
	need, _ := in.need()
	if size := max(need, inputSize); size != len(in.data) {
		grown := make([]byte, size)
		in.first, in.last = 0, copy(grown, in.data[in.first:in.last])
		in.data = grown
	} else if in.first > 0 {
		in.first, in.last = 0, copy(in.data, in.data[in.first:in.last])
	}
	return in.data[in.last:]
}

// read tells how many bytes were read into space.
func (in *input) read(n int) { in.last += n }

// output gathers replies for one write. After any write that was due it has
// room for the longest message.
type output struct {
	data [coalesceSize + prefixSize + maxMessage]byte
	used int
}

// room returns where the next reply may be appended: empty, with the capacity
// of the longest message.
func (o *output) room() []byte {
	start := o.used + prefixSize
	return o.data[start:start:len(o.data)]
}

// add takes a reply, which may or may not have been appended to room.
func (o *output) add(reply []byte) {
	room := o.room()
	frame(o.data[o.used:], room[:len(reply)], reply)
	o.used += prefixSize + len(reply)
}

// frame writes the prefix of reply to dst and the reply to body, unless it is
// there already.
func frame(dst, body, reply []byte) {
	binary.BigEndian.PutUint16(dst, uint16(len(reply)))
	if &body[0] != &reply[0] {
		copy(body, reply)
	}
}

// due says whether to write before another reply is added.
func (o *output) due() bool { return o.used > coalesceSize }

// sendable says whether a reply can be framed.
func sendable(reply []byte) bool { return len(reply) > 0 && len(reply) <= maxMessage }
