package main

import (
	"fmt"
	"strings"
	"testing"
)

// What CoreDNS refuses is a mistake with its line, even where nothing here depends on it.
func TestCorefileArguments(t *testing.T) {
	forward := func(option string) string { return "forward . 192.0.2.1 {\n " + option + "\n}" }
	var servers []string
	for i := range 16 {
		servers = append(servers, fmt.Sprintf("192.0.2.%d", i+1))
	}
	for directives, want := range map[string]string{
		forward("expire 1x"):                                `:5: expire has "1x"; write a duration`,
		forward("max_age -1s"):                              `:5: max_age has "-1s"`,
		forward("read_timeout 0s"):                          `:5: read_timeout has "0s"`,
		forward("max_fails x"):                              `:5: max_fails has "x"; write a whole number`,
		forward("max_fails"):                                `:5: max_fails says nothing`,
		forward("force_tcp yes"):                            `:5: force_tcp has "yes"; write nothing behind it`,
		forward("health_check 5"):                           `:5: health_check has "5"`,
		forward("health_check 5s domain"):                   `:5: health_check has "5s domain"`,
		forward("failover NOERROR"):                         `:5: failover has "NOERROR"`,
		forward("max_concurrent -1"):                        `:5: max_concurrent has "-1"`,
		"forward . " + strings.Join(servers, " "):           `:4: forward names 16 servers; keep at most 15`,
		"forward . service:":                                `:4: forward names the Service "", which is no name of one`,
		"forward . service:a/b/c":                           `:4: forward names the Service "a/b/c"`,
		"forward . service:Kube_DNS":                        `:4: forward names the Service "Kube_DNS"`,
		"forward . 192.0.2.1\ntimeouts {\n read 1x\n}":      `:6: read has "1x"`,
		"forward . 192.0.2.1\ntimeouts {\n write 25h\n}":    `:6: write has "25h"`,
		"forward . 192.0.2.1\ntimeouts":                     `:5: timeouts says nothing`,
		"forward . 192.0.2.1\nreload 1":                     `:5: reload has "1"`,
		"forward . 192.0.2.1\nreload 1s":                    `:5: reload has "1s"`,
		"forward . 192.0.2.1\nreload 5s 10ms":               `:5: reload has "5s 10ms"`,
		"forward . 192.0.2.1\nloop 4":                       `:5: loop has "4"`,
		"forward . 192.0.2.1\ndebug yes":                    `:5: debug has "yes"`,
		"forward . 192.0.2.1\nerrors foo":                   `:5: errors has "foo"`,
		"forward . 192.0.2.1\nerrors {\n foo\n}":            `:6: errors has no option "foo"`,
		"forward . 192.0.2.1\nlog {\n class foo\n}":         `:6: class has "foo"`,
		"forward . 192.0.2.1\nloadbalance foo":              `:5: loadbalance has "foo"`,
		"cache {\n prefetch 1 1m 150%\n}":                   `:5: prefetch has "1 1m 150%"`,
		"cache {\n prefetch 1 1x\n}":                        `:5: prefetch has "1 1x"`,
		"errors {\n consolidate 5m \"(abc\"\n}":             `:5: consolidate has "5m (abc"`,
		"errors {\n consolidate 5m abc show_first error\n}": `:5: consolidate has `,
	} {
		_, err := readCorefileText(t, ".:53 {\n bind 127.0.0.1\n minimal\n"+directives+"\n}\n", kubeDNS{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v, want %q", directives, err, want)
		}
	}
	o := nodeOptions("Corefile")
	o.Upstream = "a/b/c"
	if _, err := readCorefile(o, []byte(". {\n forward . __PILLAR__CLUSTER__DNS__\n}\n"), kubeDNS{}); err == nil || !strings.Contains(err.Error(), `Corefile:2: forward names the Service "a/b/c"`) {
		t.Errorf("a Service of the command line: %v", err)
	}
	_, err := readCorefileText(t, `. {
 bind 127.0.0.1
 errors stdout {
  consolidate 5m "^a .*" warning show_first
  stacktrace
 }
 reload 5s 0s
 loop
 debug
 cache 30 {
  prefetch 5 1m 20%
 }
 log . {
  class denial error
 }
 loadbalance round_robin
 timeouts {
  read 5
  write 5s
  idle 1m
 }
 forward . 192.0.2.1 {
  expire 10s
  max_age 1m
  max_fails 2
  max_concurrent 1000
  health_check 0.5s no_rec domain a.example
  failover SERVFAIL REFUSED
  prefer_udp
 }
}
`, kubeDNS{})
	if err != nil {
		t.Errorf("what CoreDNS takes: %v", err)
	}
}
