package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
)

// defaultProbeSocket is in a volume of the pod: over an address of the node, another
// pod that shares it during an update could answer.
const defaultProbeSocket = "/run/nodens-pod/probe.sock"

// probeTime is less than the second that the kubelet grants by default.
const probeTime = 900 * time.Millisecond

// probeCommand is nodens probe.
func probeCommand(ctx context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens probe", flag.ContinueOnError)
	socket := flags.String("socket", defaultProbeSocket, "the `PATH` of the daemon's admin.socket")
	what := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		what, args = args[0], args[1:]
	}
	if err := parse(flags, s, args); err != nil {
		return err
	}
	path := map[string]string{"live": "/livez", "ready": "/readyz"}[what]
	if path == "" {
		fmt.Fprintf(s.stderr, "nodens probe: write live or ready, not %q\n", what)
		return errUsage
	}
	text, err := askSocket(ctx, *socket, path)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.stdout, text)
	return nil
}

// askSocket asks over HTTP at a path of the file system.
func askSocket(ctx context.Context, socket, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://nodens"+path, nil)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return "", fmt.Errorf("no daemon answers at %s: %w; start it, or name its admin.socket with -socket", socket, errors.Unwrap(err))
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxFile))
	text := strings.TrimSpace(string(data))
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(text)
	}
	return text, err
}

// startProbeSocket answers probes from the very start on: a daemon that waits for
// something is alive. Where the folder of the socket is missing, nobody probes.
func (d *daemon) startProbeSocket(path string) (stop func()) {
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return func() {}
	}
	l, err := listenProbes(path)
	if err != nil {
		d.log.Warn("'nodens probe' has nobody to ask; DNS is served all the same. Correct admin.socket or its folder", zap.String("socket", path), zap.Error(err))
		return func() {}
	}
	answers := start(task{"probes", func(ctx context.Context) error {
		serveHTTP(ctx, l, d.healthRoutes(), d.log)
		return nil
	}}, nil)
	return func() { _ = answers.end(context.Background()) } // it returns nil
}

// listenProbes takes the place of a socket that a former run left.
func listenProbes(path string) (net.Listener, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is no socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}
