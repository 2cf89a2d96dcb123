package peers

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Allocations is the number of objects a server has allocated since its start,
// as it says itself. It is false for a server that does not say.
func (p Peer) Allocations(s Setup) (uint64, bool) {
	if !p.metrics {
		return 0, false
	}
	n, err := readMetric("http://"+s.Admin.String()+"/metrics", "go_memstats_mallocs_total ")
	return n, err == nil
}

func readMetric(url, name string) (uint64, error) {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Get(url)
	if err != nil {
		return 0, fmt.Errorf("peers: read a counter: %w", err)
	}
	defer func() { _ = reply.Body.Close() }()
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name); ok {
			value, err := strconv.ParseFloat(text, 64)
			return uint64(value), err
		}
	}
	return 0, fmt.Errorf("peers: %s has no %s", url, name)
}
