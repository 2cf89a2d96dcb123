package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// TestSharedAdminAddressIsTold: two daemons beside each other with one address for
// HTTP are told of, with the other's process; one that takes over from another is
// not, for which its listen addresses speak.
func TestSharedAdminAddressIsTold(t *testing.T) {
	const told = "another process has this address for HTTP too"
	admin := "127.0.0.1:" + freePort(t)
	begin := func(listen string) *house {
		path := filepath.Join(t.TempDir(), "nodens.yaml")
		write(t, path, fmt.Sprintf("version: v1\nlisten: [%q]\nadmin: {address: %q}\nroutes: [{zones: [.], servers: [127.0.0.1:9]}]\n", listen, admin))
		h := serveFile(t, path)
		await(t, "the address for HTTP", func() bool { return h.adminAt.Load() != nil })
		return h
	}
	first := begin("127.0.0.1:0")
	beside := begin("127.0.0.1:0")
	lines := beside.logs.FilterMessageSnippet(told).FilterLevelExact(zap.WarnLevel).All()
	if len(lines) != 1 || first.logs.FilterMessageSnippet(told).Len() != 0 {
		t.Fatalf("the second said %d times that the address is shared, want once", len(lines))
	}
	fields := fmt.Sprint(lines[0].ContextMap())
	for _, want := range []string{"admin.address", admin, fmt.Sprintf("process %d", os.Getpid())} {
		if !strings.Contains(fields, want) {
			t.Errorf("%s does not say %q", fields, want)
		}
	}
	successor := begin(first.address(0).String())
	if n := successor.logs.FilterMessageSnippet(told).Len(); n != 0 {
		t.Errorf("a successor said %d times that the address is shared", n)
	}
}
