package wire_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

func TestReplyEDE(t *testing.T) {
	for name, tt := range map[string]struct {
		options []byte
		want    wire.EDE
	}{
		"none":             {nil, wire.NoEDE},
		"bogus":            {[]byte{0, 15, 0, 2, 0, 6}, 1 + 6},
		"with text":        {[]byte{0, 15, 0, 5, 0, 22, 'x', 'y', 'z'}, wire.EDENoReachable},
		"behind others":    {[]byte{0, 3, 0, 1, 'n', 0, 10, 0, 0, 0, 15, 0, 2, 0, 23}, wire.EDENetworkError},
		"the first":        {[]byte{0, 15, 0, 2, 0, 3, 0, 15, 0, 2, 0, 4}, wire.EDEStale},
		"too short":        {[]byte{0, 15, 0, 1, 0}, wire.NoEDE},
		"over the end":     {[]byte{0, 15, 0, 3, 0, 6}, wire.NoEDE},
		"cut in its head":  {[]byte{0, 15, 0}, wire.NoEDE},
		"another over end": {[]byte{0, 3, 0, 9, 0, 15, 0, 2, 0, 6}, wire.NoEDE},
	} {
		opt := join([]byte{0, 0, 41, 4, 208, 0, 0, 0, 0, 0, byte(len(tt.options))}, tt.options)
		r, err := wire.ParseReply(join(header(qr, 1, 0, 0, 1), question("a.test", dns.TypeA), opt))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := r.EDE(); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	r, err := wire.ParseReply(join(header(qr, 1, 0, 0, 0), question("a.test", dns.TypeA)))
	if err != nil || r.EDE() != wire.NoEDE {
		t.Errorf("without OPT: %d, %v", r.EDE(), err)
	}
}
