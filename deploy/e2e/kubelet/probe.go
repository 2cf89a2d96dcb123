package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// isReady asks a container's readiness probe when it is due. One without a probe is
// ready when it runs.
func (p *pod) isReady(c *contained) bool {
	probe := c.spec.ReadinessProbe
	switch {
	case c.process == nil:
		return true
	case !c.process.Running():
		return false
	case probe == nil:
		c.ready = c.ready || c.process.FirstPID() > 0
	case time.Now().After(c.next):
		c.next = time.Now().Add(time.Duration(probe.PeriodSeconds) * time.Second)
		if !c.ready {
			c.next = time.Now() // a kubelet also asks sooner at the start
		}
		c.ready = p.probe(c, probe) == nil
	}
	return c.ready
}

// probe asks once. A container without a probe is in order.
func (p *pod) probe(c *contained, probe *corev1.Probe) error {
	if probe == nil {
		return nil
	}
	// A loaded machine takes longer to start a process than a probe may.
	ctx, cancel := context.WithTimeout(p.k.t.Context(), max(30*time.Second, time.Duration(probe.TimeoutSeconds)*time.Second))
	defer cancel()
	switch {
	case probe.Exec != nil:
		_, err := c.process.Exec(ctx, probe.Exec.Command...)
		return err
	case probe.HTTPGet != nil:
		host := probe.HTTPGet.Host
		if host == "" {
			host = p.k.cfg.Address
		}
		_, err := p.k.Get(ctx, net.JoinHostPort(host, probe.HTTPGet.Port.String()), probe.HTTPGet.Path)
		return err
	}
	return fmt.Errorf("a probe of %s is of a kind that is not played", c.spec.Name)
}

// Get reads a page from the node.
func (k *Kubelet) Get(ctx context.Context, address, path string) (string, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = k.cfg.Space.Try(func() error { conn, err = new(net.Dialer).DialContext(ctx, network, address); return err })
			return conn, err
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/"+strings.TrimPrefix(path, "/"), nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s%s: %s: %s", address, path, response.Status, text)
	}
	return string(text), err
}
