package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"go.uber.org/zap"
)

// flushReport is what was dropped.
type flushReport struct {
	PID     int    `json:"pid"`
	What    string `json:"what"`
	Below   bool   `json:"below"` // with all names below it
	Dropped int    `json:"dropped"`
	Left    int64  `json:"left"` // answers still in memory
}

// flushCommand drops answers of a running daemon.
func flushCommand(ctx context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens flush", flag.ContinueOnError)
	all := flags.Bool("all", false, "drop every answer")
	to := adminFlags(flags)
	words, err := parseWith(flags, s, args, 1)
	switch {
	case err != nil:
		return err
	case *all == (len(words) > 0):
		return misused(flags, "it takes a name, a suffix such as .example.com (the name and all below it), or -all")
	case *all:
		words = []string{"."}
	}
	query := url.Values{"name": {words[0]}}
	if suffix, ok := strings.CutPrefix(words[0], "."); ok {
		query = url.Values{"name": {suffix + "."}, "below": {"true"}}
	}
	return showReport(ctx, s, to, http.MethodPost, "/flush", query, printFlush)
}

func printFlush(w io.Writer, r *flushReport) error {
	what := r.What
	if r.Below {
		what += " and below"
	}
	_, err := fmt.Fprintf(w, "dropped %s of %s answers: %s (process %d)\n", humanCount(r.Dropped), humanCount(int64(r.Dropped)+r.Left), what, r.PID)
	if err == nil && r.Dropped == 0 && !r.Below {
		_, err = fmt.Fprintf(w, "To drop what is below the name too, write .%s\n", r.What)
	}
	return err
}

// serveFlush drops answers, and says so in the log: whoever looks for the reason
// of a burst of misses finds it there.
func (d *daemon) serveFlush(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	r, err := d.flush(query.Get("name"), query.Get("below") == "true")
	if err == nil {
		d.log.Info("answers were dropped on request", zap.String("name", r.What), zap.Bool("below", r.Below),
			zap.Int("dropped", r.Dropped), zap.String("client", request.RemoteAddr))
	}
	answerJSON(w, r, err)
}

func (d *daemon) flush(text string, below bool) (flushReport, error) {
	if text == "" {
		return flushReport{}, errors.New("which name? Give name, and below=true for all below it")
	}
	name, err := wireName(text)
	if err != nil {
		return flushReport{}, err
	}
	g := d.current.Load()
	r := flushReport{PID: os.Getpid(), What: textOf(name), Below: below, Dropped: g.forwarder.Flush(name, below)}
	for _, n := range g.cache.Stats().Entries {
		r.Left += n
	}
	return r, nil
}
