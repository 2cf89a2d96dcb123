package forwarder

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// chaos are TXT data by the folded name that asks for them in class CH.
type chaos map[string][]byte

func newChaos(texts map[string]string) (chaos, error) {
	c := make(chaos, len(texts))
	var errs []error
	for name, text := range texts {
		key, ok := wire.AppendName(nil, strings.ToLower(name))
		if !ok || len(text) > 255 {
			errs = append(errs, fmt.Errorf("chaos: %q needs a domain name and a text of at most 255 bytes", name))
			continue
		}
		c[string(key)] = append([]byte{byte(len(text))}, text...)
	}
	return c, errors.Join(errs...)
}

// answerChaos answers a question in class CH that there is a text for.
func (f *Forwarder) answerChaos(dst []byte, q *question) (reply []byte, ok bool) {
	if q.Class != wire.ClassCH || q.Type != wire.TypeTXT {
		return nil, false
	}
	data, ok := f.chaos[string(q.folded())]
	if !ok {
		return nil, false
	}
	return f.appendText(dst, q, data), true
}

func (f *Forwarder) appendText(dst []byte, q *question, data []byte) []byte {
	reply := wire.AppendAnswerHead(dst[:0], &q.Query, wire.NoError)
	reply = wire.AppendAnswer(reply, 0, &q.Query, 0, data)
	return wire.AppendOPT(reply, 0, &q.Query, f.udpSize, wire.NoEDE)
}

// witness is a name, folded, and its TXT data by the loop that is asked.
type witness struct {
	name  []byte
	loops [][]byte
}

func newWitness(cfg *Config) (w witness, err error) {
	if cfg.Witness == "" {
		return w, nil
	}
	name, ok := wire.AppendName(nil, strings.ToLower(cfg.Witness))
	for stripe := range cfg.Stripes {
		text := cfg.WitnessText(stripe)
		ok = ok && len(text) <= 255
		w.loops = append(w.loops, append([]byte{byte(len(text))}, text...))
	}
	if !ok {
		return w, fmt.Errorf("witness: %q needs a domain name and texts of at most 255 bytes", cfg.Witness)
	}
	w.name = name
	return w, nil
}

// answerWitness answers for the loop that read the question.
func (f *Forwarder) answerWitness(dst []byte, q *question) (reply []byte, ok bool) {
	stripe := int(q.from.Stripe)
	if q.Class != wire.ClassCH || q.Type != wire.TypeTXT || stripe >= len(f.witness.loops) || string(q.folded()) != string(f.witness.name) {
		return nil, false
	}
	return f.appendText(dst, q, f.witness.loops[stripe]), true
}
