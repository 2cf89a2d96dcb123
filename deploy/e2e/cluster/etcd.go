package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Compact forgets all history of etcd but the present state, as the API server
// does every five minutes. A watch from an older resource version then fails
// once the API server has no memory of it either, which is after its restart.
func (c *Cluster) Compact(ctx context.Context) error {
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	err := c.askEtcd(ctx, "range", map[string]any{"key": "AA==", "limit": "1"}, &now)
	if err != nil {
		return err
	}
	return c.askEtcd(ctx, "compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil)
}

// askEtcd makes a call through etcd's JSON gateway.
func (c *Cluster) askEtcd(ctx context.Context, call string, arguments, result any) error {
	body, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	url := "http://127.0.0.1:" + c.etcdPort + "/v3/kv/" + call
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s: %s", call, response.Status, text)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}
