package dnstest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Scenario is a replay file.
type Scenario struct {
	Title  string
	Knobs  []Knob
	Ranges []Range
	Steps  []Step
}

// Knob is one line of the configuration.
type Knob struct{ Name, Value string }

// Range is what the servers say while the step's number is From to To.
type Range struct {
	From, To int
	Entries  []*Entry
}

// Step is something that happens.
type Step struct {
	Number int
	Line   int
	Action string
	Elapse time.Duration // of TIME_PASSES
	Entry  *Entry        // of QUERY, REPLY and the checks
}

// ReadScenario reads a file.
func ReadScenario(path string) (*Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := ParseScenario(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// ParseScenario reads the text of a file.
func ParseScenario(text string) (*Scenario, error) {
	p := &parser{lines: strings.Split(text, "\n")}
	s := new(Scenario)
	err := p.parse(s)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", p.at, err)
	}
	return s, nil
}

// parser walks the lines of a file.
type parser struct {
	lines []string
	at    int // lines taken, so the number of the last one
}

// next is the words of the next line that has some; nil at the end.
func (p *parser) next() []string {
	for p.at < len(p.lines) {
		p.at++
		if words := strings.Fields(withoutComment(p.lines[p.at-1])); len(words) > 0 {
			return words
		}
	}
	return nil
}

// withoutComment cuts a line at the first semicolon outside quotes.
func withoutComment(line string) string {
	quoted := false
	for i := range len(line) {
		switch line[i] {
		case '"':
			quoted = !quoted
		case ';':
			if !quoted {
				return line[:i]
			}
		}
	}
	return line
}

func (p *parser) parse(s *Scenario) error {
	s.Knobs = p.knobs()
	words := p.next()
	if len(words) == 0 || words[0] != "SCENARIO_BEGIN" {
		return fmt.Errorf("want SCENARIO_BEGIN after CONFIG_END, not %q", words)
	}
	s.Title = strings.Join(words[1:], " ")
	for {
		words = p.next()
		switch {
		case words == nil:
			return fmt.Errorf("the file ends without SCENARIO_END")
		case words[0] == "SCENARIO_END":
			return nil
		case words[0] == "RANGE_BEGIN" && len(words) == 3:
			r, err := p.span(words[1], words[2])
			if err != nil {
				return err
			}
			s.Ranges = append(s.Ranges, r)
		case words[0] == "STEP" && len(words) >= 3:
			step, err := p.step(words[1:])
			if err != nil {
				return err
			}
			s.Steps = append(s.Steps, step)
		default:
			return fmt.Errorf("%q is not understood", words)
		}
	}
}

// knobs reads the configuration: a name with a colon, and its value. Several
// may stand in one line.
func (p *parser) knobs() (knobs []Knob) {
	for words := p.next(); words != nil && words[0] != "CONFIG_END"; words = p.next() {
		for i, w := range words {
			name, isName := strings.CutSuffix(w, ":")
			switch {
			case strings.HasPrefix(w, "#"):
			case isName:
				knobs = append(knobs, Knob{Name: name})
				continue
			case i > 0 && len(knobs) > 0:
				knobs[len(knobs)-1].Value = strings.Trim(w, `"`)
				continue
			}
			break
		}
	}
	return knobs
}

func (p *parser) span(from, to string) (r Range, err error) {
	if r.From, err = strconv.Atoi(from); err != nil {
		return r, err
	}
	if r.To, err = strconv.Atoi(to); err != nil {
		return r, err
	}
	for {
		words := p.next()
		switch {
		case words == nil:
			return r, fmt.Errorf("the file ends inside a range")
		case words[0] == "RANGE_END":
			return r, nil
		case words[0] == "ADDRESS":
			// A forwarder asks one group, whatever the address.
		case words[0] == "ENTRY_BEGIN":
			e, err := p.entry()
			if err != nil {
				return r, err
			}
			r.Entries = append(r.Entries, e)
		default:
			return r, fmt.Errorf("%q is not understood in a range", words)
		}
	}
}

func (p *parser) step(words []string) (s Step, err error) {
	s = Step{Line: p.at, Action: words[1]}
	if s.Number, err = strconv.Atoi(words[0]); err != nil {
		return s, err
	}
	switch s.Action {
	case "NOTHING", "TRAFFIC", "TIMEOUT", "ERROR":
	case "TIME_PASSES":
		if len(words) != 4 || words[2] != "ELAPSE" {
			return s, fmt.Errorf("only TIME_PASSES ELAPSE is understood, not %q", words)
		}
		seconds, err := strconv.ParseFloat(words[3], 64)
		s.Elapse = time.Duration(seconds * float64(time.Second))
		return s, err
	case "QUERY", "REPLY", "CHECK_ANSWER", "CHECK_OUT_QUERY":
		for next := p.next(); next != nil; next = p.next() {
			switch next[0] {
			case "ADDRESS":
			case "ENTRY_BEGIN":
				s.Entry, err = p.entry()
				return s, err
			default:
				return s, fmt.Errorf("want ENTRY_BEGIN, not %q", next)
			}
		}
	default:
		return s, fmt.Errorf("step %s is not understood", s.Action)
	}
	return s, nil
}
