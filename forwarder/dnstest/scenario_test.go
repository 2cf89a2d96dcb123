package dnstest_test

import (
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// TestParseErrors names the line.
func TestParseErrors(t *testing.T) {
	const head = "CONFIG_END\nSCENARIO_BEGIN x\n"
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":            {"", "want SCENARIO_BEGIN"},
		"no end":             {head, "without SCENARIO_END"},
		"a word":             {head + "WHAT\n", "line 3"},
		"a step":             {head + "STEP 1 JUMP\n", "JUMP is not understood"},
		"a step's number":    {head + "STEP x NOTHING\n", "line 3"},
		"time":               {head + "STEP 1 TIME_PASSES EVAL ${1+1}\n", "only TIME_PASSES ELAPSE"},
		"no entry":           {head + "STEP 1 QUERY\nSTEP 2 NOTHING\n", "want ENTRY_BEGIN"},
		"an open range":      {head + "RANGE_BEGIN 0 1\n", "inside a range"},
		"an open entry":      {head + "STEP 1 QUERY\nENTRY_BEGIN\n", "inside an entry"},
		"a flag":             {head + "STEP 1 QUERY\nENTRY_BEGIN\nREPLY XX\n", "REPLY XX"},
		"an adjustment":      {head + "STEP 1 QUERY\nENTRY_BEGIN\nADJUST all\n", "ADJUST all"},
		"a record":           {head + "STEP 1 QUERY\nENTRY_BEGIN\nSECTION ANSWER\na.test. IN A x\n", "line 6"},
		"a record elsewhere": {head + "STEP 1 QUERY\nENTRY_BEGIN\na.test. IN A 10.0.0.1\n", "no section"},
		"a question":         {head + "STEP 1 QUERY\nENTRY_BEGIN\nSECTION QUESTION\na.test. IN XX\n", "no type or class"},
	} {
		if _, err := dnstest.ParseScenario(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
	if _, err := dnstest.ReadScenario("testdata/none.rpl"); err == nil {
		t.Error("a file that is not there: no error")
	}
}

func TestParse(t *testing.T) {
	s, err := dnstest.ParseScenario(`; comment
	# target: "3 2"
forward-zone: name: "." forward-addr: 10.0.0.1 # comment
	cache-max-ttl: 60 ; comment
CONFIG_END
SCENARIO_BEGIN two words
STEP 1 QUERY
ENTRY_BEGIN
REPLY RD DO NOTIFY
SECTION QUESTION
a.test TYPE65 CH
SECTION ADDITIONAL
a.test. TXT "a;b" ; comment
ENTRY_END
STEP 2 TIME_PASSES ELAPSE 1.5
SCENARIO_END`)
	if err != nil {
		t.Fatal(err)
	}
	e := s.Steps[0].Entry
	if s.Title != "two words" || !e.DO || !e.OPT || e.Msg.Opcode != 4 || e.Msg.Question[0].String() != ";a.test.\tCH\t HTTPS" || !strings.Contains(e.Msg.Extra[0].String(), `a\;b`) && !strings.Contains(e.Msg.Extra[0].String(), `"a;b"`) {
		t.Errorf("entry %+v, %v", e, e.Msg)
	}
	if s.Steps[1].Elapse.String() != "1.5s" {
		t.Errorf("step %+v", s.Steps[1])
	}
	want := []dnstest.Knob{{"forward-zone", ""}, {"name", "."}, {"forward-addr", "10.0.0.1"}, {"cache-max-ttl", "60"}}
	for i, k := range s.Knobs {
		if i >= len(want) || k != want[i] {
			t.Errorf("knobs %v", s.Knobs)
			break
		}
	}
}
