package main

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// fullGuardSnapshot has something to say for every metric.
func fullGuardSnapshot() guardSnapshot {
	s := guardSnapshot{Build: build{Version: "v9"}, Fallen: &hostnet.Counts{TCP6: hostnet.Counter{Packets: 7}}}
	s.Status = guard.Status{
		Owner: true, Following: true, Mode: hostnet.LinkLocal, Fallback: "no server is known",
		Places:   []guard.PlaceStatus{{Addr: netip.MustParseAddr("169.254.20.10"), Alive: true}},
		Sessions: []guard.SessionStatus{{Instance: "a"}, {Instance: "b"}},
		Targets:  hostnet.Fallback{UDP: addrPorts("10.1.0.1:53", "[fd00::1]:53", "10.1.0.2:53")},
		Counts:   guard.Counts{Deaths: 3},
	}
	return s
}

func TestGuardMetrics(t *testing.T) {
	recorder := httptest.NewRecorder()
	metricsHandler(newCollector(fullGuardSnapshot, guardMetrics())).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	text := recorder.Body.String()
	for _, want := range []string{
		`nodens_guard_info{version="v9"} 1`, "nodens_guard_owner 1", "nodens_guard_following 1", `nodens_interception_active{mode="link-local"} 1`,
		"nodens_fallback_ready 0", `nodens_fallback_targets{family="1",proto="udp"} 2`, `nodens_fallback_targets{family="2",proto="tcp"} 0`,
		`nodens_fallback_packets_total{family="2",proto="tcp"} 7`, `nodens_alive{address="169.254.20.10"} 1`,
		`nodens_bypass_active{address="169.254.20.10"} 0`, "nodens_guard_sessions 2", "nodens_guard_deaths_total 3",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the scrape lacks %s", want)
		}
	}
	for _, m := range guardMetrics() {
		if !strings.Contains(text, "# HELP "+m.name+" ") || !strings.HasSuffix(m.help, ".") {
			t.Errorf("%s is not scraped or has no sentence for help", m.name)
		}
	}
}
