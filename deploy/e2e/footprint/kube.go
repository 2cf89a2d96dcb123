//go:build !bare

package main

import (
	"time"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

func newSource(url, ca, token, namespace string, now func() time.Duration) (topology.Source, error) {
	client := kube.NewClient(kube.API{Server: url, CAFile: ca, TokenFile: token})
	return kube.New(kube.Config{Client: client, Namespace: namespace, Now: now})
}
