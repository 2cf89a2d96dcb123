package names

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/miekg/dns"
)

// List is queries from a file. Nothing is known of their answers. It never
// changes, and may be shared by goroutines.
type List struct{ questions [][]byte }

// ReadList reads a file of queries as dnsperf takes it: a name and a type in
// each line; lines that are empty or begin with # or ; are passed over. The
// error lists every mistake as "file:line: what is wrong".
func ReadList(file string, in io.Reader) (*List, error) {
	l := &List{}
	var errs []error
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		question, err := questionOf(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, n, err))
			continue
		}
		l.questions = append(l.questions, question)
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, fmt.Errorf("%s cannot be read to its end: %w", file, err))
	}
	if len(l.questions) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s:1: there is no query in the file; write a name and a type in each line", file))
	}
	return l, errors.Join(errs...)
}

func questionOf(line string) ([]byte, error) {
	words := strings.Fields(line)
	if len(words) != 2 {
		return nil, fmt.Errorf("%q has %d words; write a name and a type, such as example.com AAAA", line, len(words))
	}
	wire, err := Wire(words[0])
	if err != nil {
		return nil, fmt.Errorf("%w; correct the name", err)
	}
	qtype, ok := dns.StringToType[strings.ToUpper(words[1])]
	if !ok {
		return nil, fmt.Errorf("%q is no record type; write one such as A, AAAA or SRV", words[1])
	}
	return append(wire, byte(qtype>>8), byte(qtype), 0, 1), nil
}

// Len is the number of queries.
func (l *List) Len() int { return len(l.questions) }

// Every starts the list at its begin; after its end it begins anew.
func (l *List) Every() *Round { return &Round{questions: l.questions} }

// Draw starts sequence n: the list again and again, from a place drawn by n.
func (l *List) Draw(n uint64) *Round {
	return &Round{questions: l.questions, at: rand.New(rand.NewPCG(1, n)).IntN(len(l.questions))}
}

// Round is a sequence that goes round a fixed set of queries. It is not safe for
// use by several goroutines.
type Round struct {
	questions [][]byte
	at        int
	zone      *Zone // that knows the answers; nil: nobody does
	buf       []byte
}

// Next hands out the next query. It allocates nothing after the first round.
func (r *Round) Next() Query {
	r.buf = append(r.buf[:0], r.questions[r.at]...)
	r.at = (r.at + 1) % len(r.questions)
	if r.zone == nil {
		return Query{Question: r.buf, Unjudged: true}
	}
	return r.zone.query(r.buf)
}
