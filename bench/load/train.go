package load

import (
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// train is the queries of one burst of a closed loop, all on one lane. Those of
// one length leave in one system call: the kernel takes them through its stack
// as one packet and splits them before the server's socket (UDP_SEGMENT, Linux
// 4.18), so the server reads them one by one as ever. An open loop has no
// trains: its queries leave when each is due.
type train struct {
	cars    []car
	bytes   []byte // of all cars, in the order they were made
	gather  []byte // of those that leave together
	control []byte // asks the kernel to split; its last two octets are the length
}

// car is one query of a train.
type car struct {
	slot   int32
	at     int // in the train's bytes
	length int
}

func newTrain() train {
	t := train{cars: make([]car, 0, burst), control: make([]byte, unix.CmsgSpace(2))}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&t.control[0])) // make aligns what is longer than a word
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	return t
}

// runsTrains tells whether a worker's bursts are trains.
func (c *Config) runsTrains() bool {
	return c.Outstanding > 0 && c.Transport == UDP && !c.FreshPorts
}

// sendTrain sends up to n queries on the next lane that has room.
func (w *worker) sendTrain(n int, now time.Duration) {
	t := &w.train
	t.cars, t.bytes = t.cars[:0], t.bytes[:0]
	l, slot := w.pickOf(w.udp)
	for range n {
		if slot < 0 {
			break
		}
		q := w.next()
		at := len(t.bytes)
		t.bytes = w.board(t.bytes, l, slot, &q, now)
		t.cars = append(t.cars, car{slot, at + 2, len(t.bytes) - at - 2})
		if len(t.cars) < n {
			slot = l.flights().open()
		}
	}
	slices.SortFunc(t.cars, func(a, b car) int { return a.length - b.length })
	for rest := t.cars; len(rest) > 0; {
		same := 1
		for same < len(rest) && rest[same].length == rest[0].length {
			same++
		}
		w.sendCars(l.(*udpLane), rest[:same], now)
		rest = rest[same:]
	}
}

// sendCars sends queries of one length. What the kernel does not take together
// it is offered one by one.
func (w *worker) sendCars(l *udpLane, cars []car, now time.Duration) {
	if len(cars) > 1 && w.sendTogether(l.fd, cars) {
		for _, c := range cars {
			w.left(l, c.slot, now)
		}
		return
	}
	for _, c := range cars {
		if w.sendPacket(l.fd, w.train.bytes[c.at:][:c.length]) {
			w.left(l, c.slot, now)
		} else {
			w.stayed(l, c.slot)
		}
	}
}

func (w *worker) sendTogether(fd int, cars []car) bool {
	t := &w.train
	t.gather = t.gather[:0]
	for _, c := range cars {
		t.gather = append(t.gather, t.bytes[c.at:][:c.length]...)
	}
	*(*uint16)(unsafe.Pointer(&t.control[unix.CmsgLen(0)])) = uint16(cars[0].length)
	_, err := unix.SendmsgN(fd, t.gather, t.control, nil, 0)
	return err == nil
}
