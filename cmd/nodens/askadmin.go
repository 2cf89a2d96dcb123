package main

import (
	"cmp"
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

const (
	maxReport = 16 << 20
	// askPatience is how long a daemon may take to answer.
	askPatience = 5 * time.Second
)

// adminAsked are the flags of the commands that ask a running daemon.
type adminAsked struct{ address, format string }

func adminFlags(flags *flag.FlagSet) *adminAsked {
	to := new(adminAsked)
	flags.StringVar(&to.address, "address", defaultConfig().Admin.Address.String(), "the daemon's admin address, `HOST:PORT`")
	flags.StringVar(&to.format, "o", "text", "the `FORMAT` of the output, text or json")
	return to
}

// showReport asks the daemon, and prints the R it answers with, or the JSON as it
// came.
func showReport[R any](ctx context.Context, s surroundings, to *adminAsked, method, path string, query url.Values, show func(io.Writer, *R) error) error {
	if to.format != "text" && to.format != "json" {
		fmt.Fprintf(s.stderr, "-o is %q; write text or json\n", to.format)
		return errUsage
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	body, err := askAdmin(ctx, to.address, method, path, query)
	if err != nil {
		return err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxReport))
	if err != nil {
		return fmt.Errorf("%s stopped answering: %w", to.address, err)
	}
	var r R
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("%s answers, but not as nodens does: %w; correct -address", to.address, err)
	}
	if to.format == "json" {
		_, err := s.stdout.Write(data)
		return err
	}
	return show(s.stdout, &r)
}

// askAdmin sends a request to the daemon and returns what it answers, to be
// closed by the caller.
func askAdmin(ctx context.Context, address, method, path string, query url.Values) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+address+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("-address is %q: %w; write HOST:PORT", address, err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("no daemon answers at %s: %w; start it, or name its admin.address with -address", address, cmp.Or(errors.Unwrap(err), err))
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	why, _ := io.ReadAll(io.LimitReader(response.Body, 1000)) // without it the status must do
	switch text := strings.TrimSpace(string(why)); response.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusServiceUnavailable:
		return nil, fmt.Errorf("%s: %s", address, cmp.Or(text, response.Status))
	}
	return nil, fmt.Errorf("%s answers %s; correct -address", address, response.Status)
}
