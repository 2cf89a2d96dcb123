package check

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// series are the labels of one series by name.
type series map[string]string

// TestPublishedQueries puts every question of testdata/published.txt to what a
// running nodens shows on both addresses of the metrics.
func TestPublishedQueries(t *testing.T) {
	first, second := scraped(t)
	lines := strings.Split(read(t, "testdata/published.txt"), "\n")
	asked := 0
	for i, line := range lines {
		from, text, ok := strings.Cut(line, "\t")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		asked++
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Errorf("published.txt:%d: %s: %v", i+1, from, err)
			continue
		}
		for address, found := range map[string][]series{"first": first, "second": second} {
			if !yields(expr, found) {
				t.Errorf("published.txt:%d: %s finds nothing at the %s address: %s", i+1, from, address, text)
			}
		}
	}
	if asked < 50 {
		t.Errorf("%d questions", asked)
	}
	if expr, _ := parser.NewParser(parser.Options{}).ParseExpr(`coredns_dns_requests_total{type="none"}`); yields(expr, first) {
		t.Error("a label that no series has finds one: this test cannot fail")
	}
}

// yields tells whether every selector of an expression finds a series; of two sides
// with "or" between one.
func yields(node parser.Node, found []series) bool {
	switch n := node.(type) {
	case *parser.VectorSelector:
		return matched(n.LabelMatchers, found)
	case *parser.BinaryExpr:
		if n.Op == parser.LOR {
			return yields(n.LHS, found) || yields(n.RHS, found)
		}
	}
	for child := range parser.ChildrenIter(node) {
		if !yields(child, found) {
			return false
		}
	}
	return true
}

func matched(matchers []*labels.Matcher, found []series) bool {
	for _, s := range found {
		fits := true
		for _, m := range matchers {
			fits = fits && m.Matches(s[m.Name])
		}
		if fits {
			return true
		}
	}
	return false
}

// scraped starts nodens under node-cache's flags on loopback, asks it questions of all
// kinds, and reads its metrics as Prometheus would, with the labels that it adds.
func scraped(t *testing.T) (first, second []series) {
	t.Helper()
	up := answerEverything(t)
	dns, metrics, other, health := freePort(t), freePort(t), freePort(t), freePort(t)
	corefile := filepath.Join(t.TempDir(), "Corefile")
	text := fmt.Sprintf(".:%d {\n bind 127.0.0.1\n forward . %s\n cache 30\n errors\n loop\n reload\n prometheus 127.0.0.1:%d\n health 127.0.0.1:%d\n}\n", dns, up, metrics, health)
	if err := os.WriteFile(corefile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program(t), "-localip", "127.0.0.1", "-conf", corefile, "-basecorefile", corefile+".base", "-setupinterface=false", "-setupiptables=false",
		"-upstreamsvc", "kube-dns-upstream", "-metrics-listen-address", fmt.Sprintf("127.0.0.1:%d", other))
	var log strings.Builder
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = c.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for _, network := range []string{"udp", "tcp"} {
		for _, name := range []string{"ok.example.", "ok.example.", "nx.example.", "servfail.example."} {
			question(network, dns, name)
		}
	}
	time.Sleep(1500 * time.Millisecond) // a health check of its own comes every second
	return scrape(t, metrics), scrape(t, other)
}

// question asks until there is an answer, whatever it is.
func question(network string, port int, name string) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port))
	}}
	for range 50 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := resolver.LookupHost(ctx, name)
		cancel()
		if err == nil || strings.HasPrefix(name, "nx") || strings.HasPrefix(name, "servfail") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// scrape reads the series of one address.
func scrape(t *testing.T, port int) []series {
	t.Helper()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	target := map[string]string{
		"job": "node-local-dns", "instance": "10.0.0.1:9253", "pod": "node-local-dns-abcde", "namespace": "kube-system",
		"k8s_app": "node-local-dns", "name": "node-local-dns-metrics",
	}
	found := []series{{"__name__": "up"}}
	pair := regexp.MustCompile(`([a-z0-9_]+)="([^"]*)"`)
	for _, line := range strings.Split(string(body), "\n") {
		name, _, _ := strings.Cut(line, " ")
		name, inside, _ := strings.Cut(name, "{")
		if name == "" || name == "#" {
			continue
		}
		if _, rest, ok := strings.Cut(line, "{"); ok {
			inside = rest
		}
		s := series{"__name__": name}
		for _, p := range pair.FindAllStringSubmatch(inside, -1) {
			s[p[1]] = p[2]
		}
		found = append(found, s)
	}
	for _, s := range found {
		for label, value := range target {
			if _, own := s[label]; !own {
				s[label] = value
			}
		}
	}
	return found
}

// answerEverything is a server on loopback that answers over UDP.
func answerEverything(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		packet := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			if reply := replyTo(packet[:n]); reply != nil {
				_, _ = conn.WriteTo(reply, from) // the asker is gone
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return conn.LocalAddr().String()
}

// replyTo answers with an address, or with the error that the name begins with.
func replyTo(query []byte) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += 1 + int(query[end])
	}
	if end += 5; end > len(query) {
		return nil
	}
	reply := append([]byte(nil), query[:end]...)
	reply[2], reply[3] = reply[2]|0x80, 0x80
	clear(reply[6:12])
	label := strings.ToLower(string(query[13 : 13+query[12]]))
	kind := binary.BigEndian.Uint16(query[end-4:])
	switch {
	case label == "nx":
		reply[3] |= 3
	case label == "servfail":
		reply[3] |= 2
	case kind == 1:
		reply[7] = 1
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
	}
	return reply
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
