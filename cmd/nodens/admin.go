package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

const (
	adminRetry  = time.Second     // how often a busy admin address is tried again
	adminStop   = time.Second     // how long requests may take to end
	sampleEvery = 5 * time.Second // how often the rates are sampled
)

// httpSide is one address of the HTTP side.
type httpSide struct {
	name    string // of the setting
	address string
	handler http.Handler
	tls     *tls.Config          // nil: plain
	at      func(address string) // hears where it is served; may be nil
	// shared hears which sockets of others are there too; may be nil.
	shared func(side *httpSide, there []listener.Holder)
}

// httpSides are all of them.
func (d *daemon) httpSides(c *AdminConfig) []httpSide {
	metrics, health := d.metricsRoutes(), d.healthRoutes()
	list := []httpSide{{
		name: "admin.address", address: c.Address.String(), handler: d.adminRoutes(c), at: func(at string) { d.adminAt.Store(at) },
	}}
	for _, address := range c.Metrics {
		list = append(list, httpSide{name: "admin.metrics", address: address, handler: metrics})
	}
	for _, address := range c.MetricsTLS.Listen {
		list = append(list, httpSide{name: "admin.metricsTLS", address: address, handler: metrics, tls: secured(c.MetricsTLS)})
	}
	for _, address := range c.Health {
		list = append(list, httpSide{name: "admin.health", address: address, handler: health})
	}
	for i := range list {
		list[i].shared = d.warnSharedHTTP
	}
	return list
}

// runAdmin serves the HTTP side of the configuration in force until ctx ends.
func (d *daemon) runAdmin(ctx context.Context) error {
	c := d.current.Load().config.Admin
	served := d.startSides(c)
	defer func() { _ = served.end(context.Background()) }() // it returns nil
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.rates.add(totalsOf(time.Now(), d.current.Load().forwarder.Stats()))
		case <-d.committed:
			if now := d.current.Load().config.Admin; !reflect.DeepEqual(now, c) {
				_ = served.end(context.Background())
				c = now
				served = d.startSides(c)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// startSides serves them all. DNS does not depend on it: an address that cannot be had
// is logged once and tried until it is free.
func (d *daemon) startSides(c AdminConfig) *running {
	return start(task{"HTTP", func(ctx context.Context) error {
		var served sync.WaitGroup
		for _, side := range d.httpSides(&c) {
			served.Go(func() {
				if l := listenHTTP(ctx, side, d.log, &d.adminFailures); l != nil {
					serveHTTP(ctx, l, side.handler, d.log)
				}
			})
		}
		if len(c.Health) > 0 {
			served.Go(func() { d.health.run(ctx, c.Health[0]) })
		}
		served.Wait()
		return nil
	}}, nil)
}

// serveSetup serves what can be told before the daemon serves, where its metrics will be:
// that it is alive and not ready, and why the node cannot be set up. The function it
// returns ends that.
func (d *daemon) serveSetup() (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metricsHandler(newCollector(d.setup.snapshot, []metric{setupMetric()}), newGuardInside(&d.inside)))
	mux.HandleFunc("GET /livez", say("alive"))
	mux.HandleFunc("GET /readyz", d.serveReady)
	var tasks []*running
	for _, side := range d.httpSides(&d.began.Admin) {
		if side.name == "admin.health" { // it says that DNS is answered
			continue
		}
		side.at, side.shared = nil, nil
		tasks = append(tasks, start(task{side.name, func(ctx context.Context) error {
			if l := listenHTTP(ctx, side, d.log, &d.adminFailures); l != nil {
				serveHTTP(ctx, l, mux, d.log)
			}
			return nil
		}}, nil))
	}
	return func() {
		for _, t := range tasks {
			_ = t.end(context.Background()) // it returns nil
		}
	}
}

// listenHTTP binds an address, however long that takes, and counts the failures. Two
// processes of one user can have the same address, so that one can take over from
// another. It returns nil when ctx ends before.
func listenHTTP(ctx context.Context, side httpSide, log *zap.Logger, failures *atomic.Uint64) net.Listener {
	config := net.ListenConfig{Control: sharePort}
	for logged := false; ; {
		there := sharersOf(side.address)
		l, err := config.Listen(ctx, "tcp", side.address)
		if err == nil {
			if side.shared != nil {
				side.shared(&side, there)
			}
			return side.served(l, log)
		}
		if ctx.Err() != nil {
			return nil
		}
		failures.Add(1)
		if !logged {
			logged = true
			log.Warn("an address for HTTP cannot be had; the rest goes on, and it is tried again every second. Stop the other program or change the setting",
				zap.String("setting", side.name), zap.Error(err))
		}
		select {
		case <-time.After(adminRetry):
		case <-ctx.Done():
			return nil
		}
	}
}

// served tells where the side is served.
func (side *httpSide) served(l net.Listener, log *zap.Logger) net.Listener {
	if side.at != nil {
		side.at(l.Addr().String())
	}
	log.Info("an address for HTTP is served", zap.String("setting", side.name), zap.Stringer("address", l.Addr()))
	if side.tls != nil {
		return tls.NewListener(l, side.tls)
	}
	return l
}

func sharePort(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, failed)
}

// serveHTTP serves l until ctx ends. Requests that are being answered then get
// a moment to end.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, log *zap.Logger) {
	errorLog, _ := zap.NewStdLogAt(log, zap.ErrorLevel) // fails for unknown levels only
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      65 * time.Second, // a profile may take a minute
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          errorLog,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // ends what would go on
	}
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		limit, cancel := context.WithTimeout(context.Background(), adminStop)
		defer cancel()
		if server.Shutdown(limit) != nil {
			_ = server.Close()
		}
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		log.Error("the admin address is not served any longer; restart nodens to have it back", zap.Error(err))
		return
	}
	<-stopped
}

// adminRoutes is what the admin address answers.
func (d *daemon) adminRoutes(c *AdminConfig) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", d.metrics())
	d.addHealth(mux)
	mux.HandleFunc("GET /statusz", d.serveStatus)
	mux.Handle("GET /{$}", http.RedirectHandler("/statusz", http.StatusFound))
	if who := c.Pprof; who != "off" {
		for path, h := range map[string]http.HandlerFunc{
			"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
			"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
		} {
			mux.Handle(path, onlyFor(who, "admin.pprof", h))
		}
	}
	d.control(mux, c.Control)
	return mux
}

// metricsRoutes is what the further addresses of the metrics answer.
func (d *daemon) metricsRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", d.metrics())
	return mux
}

// metrics are those of the daemon, and of the guard where it is in this process.
func (d *daemon) metrics() http.Handler {
	return metricsHandler(newCollector(d.snapshot, daemonMetrics()), newGuardInside(&d.inside))
}

// healthRoutes is what the addresses for health checks answer.
func (d *daemon) healthRoutes() http.Handler {
	mux := http.NewServeMux()
	d.addHealth(mux)
	return mux
}

func (d *daemon) addHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /health", say("OK"))
	// Liveness says nothing about upstreams: a restart would not mend them,
	// it would only empty the cache that still answers.
	mux.HandleFunc("GET /livez", say("alive"))
	mux.HandleFunc("GET /readyz", d.serveReady)
	mux.HandleFunc("GET /ready", d.serveReady)
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// serveReady does not look at upstreams either: without them the daemon still
// answers from its cache, and taking it out of service would lose that too.
func (d *daemon) serveReady(w http.ResponseWriter, _ *http.Request) {
	if why := d.ready.Load().(string); why != "" {
		http.Error(w, "not ready: "+why, http.StatusServiceUnavailable)
		return
	}
	text := "ready"
	if list := d.current.Load().waitingFor(); len(list) > 0 {
		text += ": " + waitingForPort + " " + strings.Join(list, ", ")
	}
	_, _ = io.WriteString(w, text)
}

// onlyFor lets everybody in ("all"), or clients of this machine ("loopback"), as
// the setting says.
func onlyFor(who, setting string, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if who != "all" && (err != nil || !from.Addr().Unmap().IsLoopback()) {
			http.Error(w, "this is for clients on this machine's loopback only; see "+setting+" in the configuration", http.StatusForbidden)
			return
		}
		h(w, r)
	})
}
