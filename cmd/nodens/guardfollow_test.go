package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nodens-dns/nodens/deploy/guard"
)

const oneSlice = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-1, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports: [{name: dns, protocol: UDP, port: 5300}, {name: dns-tcp, protocol: TCP, port: 5301}]
endpoints:
- {addresses: [%q], nodeName: n1, conditions: {ready: true}}
- {addresses: ["10.9.9.9"], nodeName: n2, conditions: {ready: true}}
`

// tables are what a guard would be told, in words: the tiers, and UDP before TCP.
type tables chan string

func (c tables) publish(t guard.Table) {
	var tiers []string
	for _, tier := range t.Tiers {
		var servers []string
		for _, s := range tier {
			servers = append(servers, fmt.Sprintf("%v %v", s.UDP, s.TCP))
		}
		tiers = append(tiers, strings.Join(servers, ", "))
	}
	c <- fmt.Sprintf("%s: %s", t.Probe, strings.Join(tiers, " | "))
}

func (c tables) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-c:
		if got != want {
			t.Errorf("told is %q, want %q", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Errorf("nothing is told, want %q", want)
	}
}

// during follows until f returns.
func during(t *testing.T, follow guard.Follow, publish func(guard.Table), f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follow(ctx, publish) }()
	f()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ends with: %v", err)
	}
}

// TestFollowServers: what a guard finds out by itself is what serve would tell it.
func TestFollowServers(t *testing.T) {
	folder := t.TempDir()
	path, slices := filepath.Join(folder, "nodens.yaml"), filepath.Join(folder, "slices")
	configure := func(more string) {
		write(t, path, fmt.Sprintf("version: v1\nlisten: [169.254.20.10:53]\nnode: {name: n1}\nroutes:\n"+
			"- {zones: [.], servers: [192.0.2.1]}\n- {zones: [cluster.local], topology: {file: %s%s}}\n", slices, more))
	}
	show := func(address string) { // whole, or not at all
		write(t, slices+".next", fmt.Sprintf(oneSlice, address))
		if err := os.Rename(slices+".next", slices); err != nil {
			t.Error(err)
		}
	}
	configure("")
	load := func() (Config, error) { return loadConfig(path, noEnv) }
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	follow, told := followServers(c, load, zap.NewNop()), make(tables, 10)
	const tiers = "kubernetes.default.svc.cluster.local.: %s:5300 %s:5301 |  | 10.9.9.9:5300 10.9.9.9:5301"
	during(t, follow, told.publish, func() {
		show("10.1.0.1") // it was not there yet
		told.expect(t, fmt.Sprintf(tiers, "10.1.0.1", "10.1.0.1"))
		show("10.1.0.2")
		told.expect(t, fmt.Sprintf(tiers, "10.1.0.2", "10.1.0.2"))
	})
	// A server without a source is none to hear of before the source has told.
	configure(", local: [10.1.0.8]")
	during(t, follow, told.publish, func() {
		told.expect(t, "kubernetes.default.svc.cluster.local.: 10.1.0.8:53 10.1.0.8:53, 10.1.0.2:5300 10.1.0.2:5301 |  | 10.9.9.9:5300 10.9.9.9:5301")
	})
	// A configuration that is broken by now is the former one.
	write(t, path, "nonsense")
	during(t, follow, told.publish, func() { told.expect(t, fmt.Sprintf(tiers, "10.1.0.2", "10.1.0.2")) })
}

// Without credentials for the API server nobody is told anything, and the log says what
// to do.
func TestFollowServersWithoutCredentials(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	c, err := readConfig("c", []byte("version: v1\nlisten: [169.254.20.10:53]\nkubernetes: {server: \"https://192.0.2.1\", tokenFile: /nowhere/token}\n"+
		"routes: [{zones: [cluster.local], topology: {clusterIP: [10.96.0.10]}}]\n"), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	load := func() (Config, error) { return Config{}, errors.New("gone") }
	told := make(tables, 10)
	during(t, followServers(c, load, zap.New(core)), told.publish, func() {
		await(t, "a line in the log", func() bool { return logs.Len() > 0 })
	})
	if len(told) > 0 {
		t.Errorf("told is %q", <-told)
	}
	line := logs.All()[0]
	fields := line.ContextMap()
	if text := fmt.Sprint(fields["error"]); logs.Len() != 1 || fields["for"] != "the fallback" || !strings.Contains(text, "mount the service account's token") {
		t.Errorf("%d lines, the first: %s %v", logs.Len(), line.Message, fields)
	}
}

// Without a topology there is nothing to follow.
func TestFollowServersWithoutTopology(t *testing.T) {
	c, err := readConfig("c", []byte("version: v1\nlisten: [169.254.20.10:53]\nroutes: [{zones: [.], servers: [192.0.2.1]}]\n"), noEnv)
	if err != nil || followServers(c, nil, zap.NewNop()) != nil {
		t.Errorf("it would follow something, error %v", err)
	}
}
