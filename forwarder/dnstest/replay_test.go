package dnstest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// difference is where we want something else than a replay file does.
type difference struct {
	reason string // the policy
	// adapt changes the file to what we want; without it the file is skipped.
	adapt func(*dnstest.Scenario)
}

// differences are those of files of other projects, by name.
func differences() map[string]difference {
	const (
		doInKey = "DO is part of an answer's identity: clients with and without it share nothing. Asked with EDNS and without DO instead"
		adAsked = "AD is set in every query to a server and is not part of an answer's identity"
	)
	return map[string]difference{
		"cache_aa.rpl":                     {"AA is never shown for relayed data: a forwarder is no authority, on a miss no more than on a hit", expectWithoutAA},
		"cache_refused.rpl":                {"errors of servers reach clients as SERVFAIL: some stub resolvers ignore all others and wait", expectServFail},
		"fwd_jostle.rpl":                   {"a full route answers SERVFAIL at once, where the file has no answer", expectShed},
		"serve_expired.rpl":                {doInKey, askWithoutDO},
		"serve_expired_0ttl_nodata.rpl":    {doInKey, askWithoutDO},
		"serve_expired_client_timeout.rpl": {doInKey, askWithoutDO},

		"cache_ad_rev.rpl":            {adAsked, nil},
		"cache_chaos.rpl":             {"classes other than IN are never forwarded", nil},
		"cache_do_q_nsec.rpl":         {adAsked, nil},
		"cache_notify.rpl":            {"opcodes other than QUERY are never forwarded", nil},
		"fwd_lrudrop.rpl":             {"the cache has no size of one byte: its least is 64 KiB (TestBudgetHolds of forwarder/cache has the eviction)", nil},
		"serve_expired_reply_ttl.rpl": {"replies are kept whole: what one refreshes is not seen in another (testdata/stale_ttl.rpl has the rest)", nil},
	}
}

// entries are all of a scenario's.
func entries(s *dnstest.Scenario, action string) (all []*dnstest.Entry) {
	for _, step := range s.Steps {
		if step.Action == action {
			all = append(all, step.Entry)
		}
	}
	return all
}

func expectWithoutAA(s *dnstest.Scenario) {
	for _, e := range entries(s, "CHECK_ANSWER") {
		e.Msg.Authoritative = false
	}
}

func expectServFail(s *dnstest.Scenario) {
	for _, e := range entries(s, "CHECK_ANSWER") {
		if e.Msg.Rcode == dns.RcodeRefused || e.Msg.Rcode == dns.RcodeFormatError {
			e.Msg.Rcode = dns.RcodeServerFailure
		}
	}
}

func askWithoutDO(s *dnstest.Scenario) {
	for _, e := range slices.Concat(entries(s, "QUERY"), entries(s, "CHECK_ANSWER")) {
		e.DO = false // OPT stays
	}
}

// expectShed adds a check for the last query, which the file drops.
func expectShed(s *dnstest.Scenario) {
	queries := entries(s, "QUERY")
	e := *queries[len(queries)-1]
	e.Match = []string{"all"}
	e.Msg = e.Msg.Copy()
	e.Msg.Response, e.Msg.Rcode = true, dns.RcodeServerFailure
	s.Steps = append(s.Steps, dnstest.Step{Number: 1000, Action: "CHECK_ANSWER", Entry: &e})
}

// TestReplay plays the files of testdata and, when NODENS_REPLAY names a
// folder, those below it.
func TestReplay(t *testing.T) {
	own := new(summary)
	own.play(t, "testdata", nil)
	t.Log("own files:", own)
	if dir := os.Getenv("NODENS_REPLAY"); dir != "" {
		others := new(summary)
		others.play(t, dir, differences())
		t.Log("others' files:", others)
	}
}

type summary struct {
	passed, failed   int
	adapted, skipped []string
}

func (s *summary) String() string {
	slices.Sort(s.adapted)
	slices.Sort(s.skipped)
	out := fmt.Sprintf("%d pass, %d of them adapted; %d fail; %d skipped", s.passed, len(s.adapted), s.failed, len(s.skipped))
	for _, line := range s.adapted {
		out += "\nadapted: " + line
	}
	for _, line := range s.skipped {
		out += "\nskipped: " + line
	}
	return out
}

func (s *summary) play(t *testing.T, dir string, differences map[string]difference) {
	files := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".rpl" {
			return err
		}
		files++
		name, _ := filepath.Rel(dir, path)
		d, differs := differences[filepath.Base(path)]
		ok := t.Run(name, func(t *testing.T) {
			if differs && d.adapt == nil {
				t.Skip(d.reason)
			}
			playFile(t, path, d)
		})
		s.count(name, d, differs, ok)
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%s: %d replay files, %v", dir, files, err)
	}
}

func playFile(t *testing.T, path string, d difference) {
	scenario, err := dnstest.ReadScenario(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.adapt != nil {
		d.adapt(scenario)
	}
	scenario.Play(t)
}

func (s *summary) count(name string, d difference, differs, ok bool) {
	line := name + ": " + d.reason
	switch {
	case !ok:
		s.failed++
	case differs && d.adapt == nil:
		s.skipped = append(s.skipped, line)
	case differs:
		s.adapted = append(s.adapted, line)
		fallthrough
	default:
		s.passed++
	}
}
