package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// tailCommand prints queries of a running daemon until it is interrupted.
func tailCommand(ctx context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens tail", flag.ContinueOnError)
	query, given := url.Values{}, map[string]*string{
		"client": flags.String("client", "", "only of this client: an `ADDRESS` or a prefix"),
		"type":   flags.String("type", "", "only questions of this `TYPE`"),
		"from":   flags.String("from", "", "only replies from these `SOURCES`, with commas between: hit, stale, miss, local, failure"),
		"rcode":  flags.String("rcode", "", "only replies with these `CODES`, with commas between, as SERVFAIL,REFUSED"),
		"slower": flags.String("slower", "", "only queries that took at least this `TIME`, as 10ms"),
	}
	count := flags.Int("n", 0, "end after this `NUMBER` of queries; 0: never")
	to := adminFlags(flags)
	words, err := parseWith(flags, s, args, 1)
	if err != nil {
		return err
	}
	if to.format != "text" && to.format != "json" || *count < 0 {
		return misused(flags, "-o is text or json, -n is 0 or more")
	}
	for key, value := range given {
		if *value != "" {
			query.Set(key, *value)
		}
	}
	if len(words) > 0 {
		query.Set("name", strings.TrimPrefix(words[0], "."))
	}
	body, err := askAdmin(ctx, to.address, http.MethodGet, "/tail", query)
	if err != nil {
		return err
	}
	defer body.Close()
	err = printTail(s.stdout, body, to.format == "json", *count)
	if ctx.Err() != nil {
		return nil // interrupted, as it is meant to end
	}
	return err
}

// printTail prints the lines of body, up to so many queries if count is not 0.
func printTail(w io.Writer, body io.Reader, asJSON bool, count int) error {
	if !asJSON {
		fmt.Fprintf(w, tailFormat, "TIME", "FROM", "RCODE", "TOOK", "CLIENT", "TYPE", "NAME", "")
	}
	lines := bufio.NewScanner(body)
	for shown := 0; lines.Scan(); {
		isQuery, err := printTailLine(w, lines.Bytes(), asJSON)
		if isQuery {
			shown++
		}
		if err != nil || count > 0 && shown == count {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the daemon stopped sending: %w", err)
	}
	return errors.New("the daemon stopped")
}

// printTailLine prints one line; isQuery is false for one that tells of others.
func printTailLine(w io.Writer, line []byte, asJSON bool) (isQuery bool, err error) {
	var l tailLine
	if err := json.Unmarshal(line, &l); err != nil {
		return false, fmt.Errorf("the daemon sent no line of a tail: %w; correct -address", err)
	}
	if asJSON {
		_, err = fmt.Fprintf(w, "%s\n", line)
	} else {
		err = l.print(w)
	}
	return l.LeftOut == 0, err
}

// tailFormat puts the name last: it is as long as it likes.
const tailFormat = "%-12s  %-14s  %-8s  %9s  %-25s  %-5s  %s %s\n"

func (l *tailLine) print(w io.Writer) error {
	at := l.At.UTC().Format("15:04:05.000")
	if l.LeftOut > 0 {
		_, err := fmt.Fprintf(w, "%s  ... %s queries left out: more than can be shown; narrow the filter\n", at, humanCount(l.LeftOut))
		return err
	}
	from, rcode, proto := l.From, l.RCode, ""
	if l.Tier != "" {
		from += " " + l.Tier
	}
	if rcode == "" {
		rcode = "no reply"
	}
	if l.Proto == "tcp" {
		proto = "(TCP)"
	}
	kind := strings.TrimSpace(l.Class + " " + l.Type)
	took := time.Duration(l.Took * float64(time.Microsecond))
	_, err := fmt.Fprintf(w, tailFormat, at, from, rcode, roundTook(took), l.Client, kind, l.Name, proto)
	return err
}

// roundTook is a time in three digits or so.
func roundTook(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d/time.Microsecond)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
