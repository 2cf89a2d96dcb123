package neverdark

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// question asks for a name that every server here knows.
const question = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01"

// asks asks a server once. Any right answer will do.
func asks(from space.Space, proto, server string) error {
	return asksWithin(time.Second, from, proto, server)
}

// asksWithin waits for the answer so long. Who measures a time by asking again and again
// measures it in steps of that.
func asksWithin(patience time.Duration, from space.Space, proto, server string) error {
	var conn net.Conn
	err := from.Try(func() (err error) {
		conn, err = net.DialTimeout(proto, server, patience)
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if proto == "tcp" {
		return askOn(conn)
	}
	if _, err := io.WriteString(conn, question); err != nil {
		return err
	}
	reply := make([]byte, 512)
	size, err := conn.Read(reply)
	if err != nil {
		return err
	}
	return rightly(reply[:size])
}

// askOn asks over a TCP connection.
func askOn(conn net.Conn) error {
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(question))), question...)); err != nil {
		return err
	}
	return readOn(conn)
}

// readOn reads one answer.
func readOn(conn net.Conn) error {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	reply := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return err
	}
	return rightly(reply)
}

// rightly tells whether a reply is an answer to the question.
func rightly(reply []byte) error {
	if len(reply) < 12 || reply[0] != question[0] || reply[1] != question[1] || reply[3]&0xf != 0 || reply[7] == 0 {
		return fmt.Errorf("not an answer: %x", reply)
	}
	return nil
}
