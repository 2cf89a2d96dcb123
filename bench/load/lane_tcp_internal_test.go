package load

import (
	"net"
	"testing"
)

// A connection that was made and ended is replaced at once; after one that was
// never made there is a pause.
func TestPauseAfterAFailedConnectionAlone(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	addr := server.Addr().(*net.TCPAddr).AddrPort()
	w := trainWorker(t, addr)
	defer w.close()
	for _, made := range []bool{true, false} {
		l := newTCPLane(0, addr, 64)
		l.dial(w)
		if l.fd < 0 {
			t.Fatal("it does not connect")
		}
		l.made = made
		began := w.now()
		l.broken(w)
		if paused := l.retry >= began+redial; paused == made {
			t.Errorf("made %v: the next attempt is at %v, now is %v", made, l.retry, began)
		}
	}
}

// What the kernel took in part is no longer sent when the connection breaks;
// what it did not take is.
func TestWholeQueriesWaitForTheNextConnection(t *testing.T) {
	queries := []byte{0, 3, 1, 1, 1, 0, 2, 2, 2, 0, 4, 3, 3, 3, 3}
	for name, c := range map[string]struct {
		takes []int
		want  int
	}{
		"nothing":              {nil, 15},
		"one":                  {[]int{5}, 10},
		"a part of the first":  {[]int{1}, 10},
		"a part, and the rest": {[]int{2, 3}, 10},
		"piece by piece":       {[]int{1, 1, 2}, 10},
		"into the last":        {[]int{3, 7}, 0},
		"all":                  {[]int{15}, 0},
	} {
		l := &tcpLane{fd: -1, out: append([]byte(nil), queries...)}
		for _, n := range c.takes {
			l.took(n)
		}
		l.close()
		if string(l.out) != string(queries[len(queries)-c.want:]) {
			t.Errorf("%s: %v is left, want the last %d octets", name, l.out, c.want)
		}
	}
}
