package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
)

func TestSocketBound(t *testing.T) {
	for name, tc := range map[string]struct {
		limit  uint64
		routes int
		want   int
	}{
		"a container's usual limit": {1 << 20, 3, 0},
		"without any":               {1<<64 - 1, 1, 0},
		"a shell's":                 {1024, 2, 128},
		"a tiny one":                {64, 2, 8},
		"more routes than sockets":  {64, 40, 1},
		"no route":                  {64, 0, 16},
	} {
		if got := socketBound(tc.limit, tc.routes); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestFewDescriptors has the program answer from twenty servers with 64 descriptors, of
// which each server could have 32: no query is lost, and clients over TCP have some.
func TestFewDescriptors(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var servers []string
	for own := range 20 {
		servers = append(servers, fmt.Sprintf("%q", newScripted(t, byte(own+1), 0).address))
	}
	at, config := space.Free(t), filepath.Join(t.TempDir(), "nodens.yaml")
	write(t, config, fmt.Sprintf("version: v1\nlisten: [%q]\nadmin: {address: 127.0.0.1:0}\nroutes: [{zones: [.], choose: random, timeout: 10s, servers: [%s]}]\n",
		at, strings.Join(servers, ", ")))
	program := startProcess(t, &bytes.Buffer{}, []string{"NODENS_TEST_MAIN=1"}, "/bin/sh", "-c", `ulimit -n 64 && exec "$0" "$@"`, self, "serve", "-config", config)
	answered := func(client *dns.Client, name string) error {
		reply, _, err := client.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), at.String())
		if err == nil && (reply.Rcode != dns.RcodeSuccess || len(reply.Answer) != 1) {
			err = fmt.Errorf("answered %s", answerOf(reply))
		}
		return err
	}
	await(t, "the start", func() bool { return answered(&dns.Client{Timeout: patience / 60}, "first.test.") == nil })
	var asking sync.WaitGroup
	for i := range 8 {
		asking.Go(func() {
			for n := range 50 {
				name := fmt.Sprintf("n%d.c%d.test.", n, i)
				if err := answered(&dns.Client{Timeout: patience}, name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	asking.Wait()
	// A quarter is for sockets to servers, and one for each; a dozen is for all else.
	if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", program.Process.Pid)); err != nil || len(open) > 16+19+20 {
		t.Errorf("%d of 64 descriptors are in use, %v", len(open), err)
	} else {
		t.Logf("%d of 64 descriptors are in use", len(open))
	}
	for i := range 4 {
		client := dns.Client{Net: "tcp", Timeout: patience}
		conn, err := client.Dial(at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, _, err := client.ExchangeWithConn(new(dns.Msg).SetQuestion(fmt.Sprintf("t%d.test.", i), dns.TypeA), conn); err != nil {
			t.Errorf("client %d over TCP: %v", i, err)
		}
	}
}
