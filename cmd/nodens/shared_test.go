package main

import (
	"fmt"
	"testing"

	"go.uber.org/zap"
)

// A second daemon joins the first on its address, and says so once.
func TestSharedAddressIsTold(t *testing.T) {
	up := newScripted(t, 7, 0)
	config := func(listen string) string {
		return fmt.Sprintf("listen: [%q]\nroutes: [{zones: [.], servers: [%q]}]\n", listen, up.address)
	}
	const told = "another process listens here already"
	first := serve(t, config("127.0.0.1:0"))
	address := first.address(0).String()
	second := serve(t, config(address))
	lines := second.logs.FilterMessageSnippet(told).FilterLevelExact(zap.WarnLevel)
	if lines.Len() != 1 || first.logs.FilterMessageSnippet(told).Len() != 0 {
		t.Fatalf("the second said %d times that the address is shared, want once", lines.Len())
	}
	first.expect("udp", first.address(0), "a.example.", 0, "NOERROR 192.0.2.7")
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	// A change that binds the address anew meets only oneself.
	if r := second.reconfigure(config(address) + "limits: {tcpConnections: 9}\n"); r.Err != nil {
		t.Fatal(r.Err)
	}
	if n := second.logs.FilterMessageSnippet(told).Len(); n != 1 {
		t.Errorf("the second said %d times that the address is shared, want once", n)
	}
}
