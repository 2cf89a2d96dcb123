package main

import (
	"encoding/base64"
	"path/filepath"
	"testing"
)

func TestPodNode(t *testing.T) {
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for name, c := range map[string]struct{ token, want string }{
		"a token of today":       {token(`{"aud":["https://kubernetes.default.svc"],"kubernetes.io":{"namespace":"kube-system","node":{"name":"node-1","uid":"1"},"pod":{"name":"p"}}}`), "node-1"},
		"without a node":         {token(`{"kubernetes.io":{"namespace":"kube-system","pod":{"name":"p"}}}`), ""},
		"no claims of ours":      {token(`{}`), ""},
		"a node of another kind": {token(`{"kubernetes.io":{"node":"node-1"}}`), ""},
		"no JSON":                {token(`node-1`), ""},
		"no base64":              {"a.!.c", ""},
		"no token":               {"node-1", ""},
		"empty":                  {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, "token"), c.token)
			if got := podNode(folder); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if got := podNode(t.TempDir()); got != "" {
		t.Errorf("without a file: %q", got)
	}
}
