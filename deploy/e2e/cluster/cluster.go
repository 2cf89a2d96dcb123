package cluster

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// startTimeout is long enough for two busy cores; alone it takes a few seconds.
const startTimeout = 2 * time.Minute

// ServiceAddress is the ClusterIP of the API server, by which pods ask for it where
// something leads it there.
const ServiceAddress = "10.96.0.1"

// Config configures a Cluster. Both fields are required.
type Config struct {
	// Programs is a folder with etcd, kube-apiserver and
	// kube-controller-manager.
	Programs string
	// Folder takes data and logs. The caller removes it.
	Folder string
}

// Cluster is a running control plane.
type Cluster struct {
	// Admin may do everything, at any rate.
	Admin *kubernetes.Clientset

	cfg      Config
	secrets  *secrets
	etcdPort string
	apiPort  string
	stages   atomic.Int64

	etcd, api, controllers *process
}

// Start starts a control plane and returns when it serves. On an error nothing
// is left running.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	c := &Cluster{cfg: cfg}
	if err := c.start(ctx); err != nil {
		err = fmt.Errorf("%w\n%s", err, c.Logs())
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	c.etcdPort, c.apiPort = ports[0], ports[1]
	if c.secrets, err = newSecrets(c.cfg.Folder); err != nil {
		return err
	}
	if err := c.secrets.writeKubeconfig(c.URL()); err != nil {
		return err
	}
	if c.Admin, err = kubernetes.NewForConfig(c.AdminConfig()); err != nil {
		return err
	}
	if err := c.startEtcd(ports[2]); err != nil {
		return err
	}
	if err := c.StartAPI(ctx); err != nil {
		return err
	}
	return c.startControllers()
}

// Address is host and port of the API server, which stay the same when it is
// started anew.
func (c *Cluster) Address() string { return "127.0.0.1:" + c.apiPort }

// URL is the address as an URL.
func (c *Cluster) URL() string { return "https://" + c.Address() }

// CAFile is the path of the certificate of the authority.
func (c *Cluster) CAFile() string { return c.secrets.ca }

// Version is the version of Kubernetes that the programs were built from; the API server
// itself, which is not of a release, does not know.
func (c *Cluster) Version() (string, error) {
	path := filepath.Join(c.cfg.Programs, "kube-apiserver")
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", err
	}
	return info.Main.Version, nil
}

// Token is that of somebody who may do everything.
func (c *Cluster) Token() string { return c.secrets.admin }

// Kubeconfig is the path of the file by which a program may do everything.
func (c *Cluster) Kubeconfig() string { return c.secrets.kubeconfig }

// AdminConfig is the configuration of a client that may do everything.
func (c *Cluster) AdminConfig() *rest.Config {
	return &rest.Config{
		Host:            c.URL(),
		BearerToken:     c.secrets.admin,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.secrets.ca},
		QPS:             -1,
		Timeout:         30 * time.Second,
	}
}

// Stop ends everything.
func (c *Cluster) Stop() {
	c.controllers.kill()
	c.api.kill()
	c.etcd.kill()
}

// Logs returns the end of what every process wrote.
func (c *Cluster) Logs() string {
	var b strings.Builder
	for _, p := range []*process{c.etcd, c.api, c.controllers} {
		if p != nil {
			fmt.Fprintf(&b, "--- the end of %s\n%s\n", p.log, p.tail(4096))
		}
	}
	return b.String()
}

func (c *Cluster) startEtcd(peerPort string) (err error) {
	client, peer := "http://127.0.0.1:"+c.etcdPort, "http://127.0.0.1:"+peerPort
	c.etcd, err = run(c.cfg.Folder, filepath.Join(c.cfg.Programs, "etcd"),
		"--data-dir="+filepath.Join(c.cfg.Folder, "etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer,
		"--unsafe-no-fsync", "--log-level=warn")
	return err
}

// StartAPI starts the API server, also after StopAPI, and returns when it
// serves.
func (c *Cluster) StartAPI(ctx context.Context) (err error) {
	c.api, err = run(c.cfg.Folder, filepath.Join(c.cfg.Programs, "kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:"+c.etcdPort,
		"--etcd-compaction-interval=0", // Compact does it
		"--bind-address=127.0.0.1", "--secure-port="+c.apiPort,
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file="+c.secrets.cert, "--tls-private-key-file="+c.secrets.key,
		"--cert-dir="+c.cfg.Folder,
		"--token-auth-file="+c.secrets.tokens,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.secrets.accounts,
		"--service-account-signing-key-file="+c.secrets.accounts,
		"--authorization-mode=RBAC",
		// Nobody makes the default account that a Pod would have to have.
		"--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112")
	if err != nil {
		return err
	}
	return c.wait(ctx, "API server", c.api, func(ctx context.Context) error {
		return c.Admin.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// StopAPI kills the API server. Every connection to it is reset and every new
// one refused.
func (c *Cluster) StopAPI() { c.api.kill() }

// startControllers starts the controllers, without StaleControllerConsistencyDaemonSet
// (a beta of Kubernetes 1.37, on): a stale read makes it look again at once, and that
// look takes the place of the one that was due after minReadySeconds, so that once in
// about twenty a rollout with a surge rests until something else happens.
func (c *Cluster) startControllers() (err error) {
	c.controllers, err = run(c.cfg.Folder, filepath.Join(c.cfg.Programs, "kube-controller-manager"),
		"--kubeconfig="+c.secrets.kubeconfig,
		"--controllers=endpointslice-controller,endpointslice-mirroring-controller,"+
			"daemonset-controller,job-controller,root-ca-certificate-publisher-controller",
		"--root-ca-file="+c.secrets.ca,
		"--feature-gates=StaleControllerConsistencyDaemonSet=false",
		"--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=1000", "--kube-api-burst=2000")
	return err
}

// RestartControllers starts the controllers anew. After an outage they would
// otherwise take up to half a minute to find the API server again.
func (c *Cluster) RestartControllers() error {
	c.controllers.kill()
	return c.startControllers()
}

// wait asks until the answer is no error.
func (c *Cluster) wait(ctx context.Context, what string, p *process, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("it took too long"))
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve: %w: %w", what, context.Cause(ctx), err)
		case <-p.done:
			return fmt.Errorf("%s ended, see %s", what, p.log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freePorts returns ports of loopback that are free now.
func freePorts(n int) ([]string, error) {
	ports := make([]string, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // when all are known, so that they differ
		_, ports[i], err = net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// Remove deletes the folder of a cluster that has ended.
func (c *Cluster) Remove() error { return os.RemoveAll(c.cfg.Folder) }
