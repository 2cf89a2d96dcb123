package play

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
)

// profile saves the CPU profile of the server under test, taken while the load
// runs.
func (p *player) profile(ctx context.Context) error {
	if p.cfg.Profile == "" {
		return nil
	}
	url := p.cfg.Server.Profile(p.target.setup, max(1, int(p.cfg.Scenario.Length().Seconds())))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("play: profile: %w", err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("play: profile: %w", err)
	}
	defer func() { _ = reply.Body.Close() }()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		return fmt.Errorf("play: profile: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("play: profile: %s: %.200s", reply.Status, data)
	}
	return os.WriteFile(p.cfg.Profile, data, 0o644)
}
