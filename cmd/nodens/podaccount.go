package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// podAccount is where a pod finds what it is at the API server.
const podAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// podNamespace is the namespace that the kubelet writes beside a token.
func podNamespace() string {
	data, err := os.ReadFile(filepath.Join(podAccount, "namespace"))
	if name := strings.TrimSpace(string(data)); err == nil && name != "" {
		return name
	}
	return "kube-system"
}

// podNode is the node that a token in this folder was made for, so that a manifest which
// does not name the node, as node-cache's does not, has its nearest endpoints too. It is
// "" where there is no token, or one that does not say: those of Kubernetes 1.30 and
// later do. Nobody has signed it for us: who can write the file can write our
// configuration.
func podNode(folder string) string {
	token, err := readFile(filepath.Join(folder, "token"))
	parts := strings.Split(string(token), ".")
	if err != nil || len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Kubernetes struct {
			Node struct{ Name string }
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.Node.Name
}
