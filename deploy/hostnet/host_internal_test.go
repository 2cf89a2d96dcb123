package hostnet

import (
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
)

// TestNobodyTakesIt asks a part of netfilter that no kernel has, as nf_tables is where
// it is missing.
func TestNobodyTakesIt(t *testing.T) {
	s := space.New(t)
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: s.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const part = 100
	_, err = conn.Execute(netlink.Message{
		Header: netlink.Header{Type: part<<8 | unix.NFT_MSG_GETTABLE, Flags: netlink.Request | netlink.Dump},
		Data:   nfHeader(unix.NFPROTO_INET, 0),
	})
	if list, none := orNone([]int{1}, err); none != nil || list != nil {
		t.Errorf("%v is not taken for the answer of a kernel without nf_tables", err)
	}
	if list, err := orNone([]int{1}, nil); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := orNone[int](nil, unix.EPERM); err == nil {
		t.Error("that it may not be asked is passed over")
	}
}
