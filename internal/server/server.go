// Package server opens the ledger that a configuration names, with what works on it, and
// serves the APIs, the review UI and the background work above it.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

const (
	// answerSlack is how long a response may take beyond the wait for an outcome.
	answerSlack = 30 * time.Second
	// minRest is the least time of sends in hand when requests have used up the grace.
	minRest = time.Second
	// firstTry and longestTry are the pauses between attempts to reach a ledger at the
	// start: a database that restarts is reachable again in seconds.
	firstTry   = 500 * time.Millisecond
	longestTry = 15 * time.Second
)

// Options configures a server.
type Options struct {
	Process
	Config config.Config
	Dev    bool // no credentials are checked
	// Sample adds destinations to try out, which live as long as its ctx; nil adds none.
	Sample func(ctx context.Context, c config.Config) (config.Config, error)
	// Announce prints the address once the server listens; away is why its ledger cannot be
	// reached yet.
	Announce func(where string, away error) error

	registry    *connectors.Registry
	listener    net.Listener
	certificate *tls.Certificate // nil serves without TLS
}

// ErrExposed reports that other machines can reach a server that is for this machine alone.
var ErrExposed = errors.New("other machines can reach the server")

// Serve serves until ctx ends or a part of it fails. What can be checked is checked before there
// is a ledger: a start with a bad configuration or a taken port leaves nothing behind.
func Serve(ctx context.Context, o Options) error {
	var err error
	if o.registry, err = Check(o.Config, o.Env.Get); err != nil {
		return err
	}
	if _, err = o.Config.Logins(o.Env.Get); err != nil {
		return err
	}
	if o.certificate, err = LoadCertificate(o.Config); err != nil {
		return err
	}
	if err = free(ctx, o.Config.Metrics.Listen); err != nil {
		return err
	}
	if o.listener, err = listen(ctx, o.Config.Server); err != nil {
		return err
	}
	if o.Sample != nil {
		trial, end := context.WithCancel(context.WithoutCancel(ctx))
		defer end()
		if o.Config, err = o.Sample(trial, o.Config); err == nil {
			o.registry, err = Check(o.Config, o.Env.Get)
		}
		if err != nil {
			return errors.Join(err, o.listener.Close())
		}
	}
	return newServer(o).run(ctx)
}

// listen opens the listener. The machine resolves "localhost", but only a loopback
// address is accepted for it.
func listen(ctx context.Context, s config.Server) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is taken: another program listens there; want another --listen, or port 0 for one that is free", s.Listen)
	case err != nil:
		return nil, fmt.Errorf("cannot listen at %s: %w", s.Listen, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); s.Loopback() && (!ok || !tcp.IP.IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("%w: --listen is %q, which is %s here; want %s", ErrExposed, s.Listen, l.Addr(), config.DefaultServer().Listen), l.Close())
	}
	return l, nil
}

// free fails if another program listens at the address of the metrics, "" for none. They
// are served once the ledger is open, but the error must come before a ledger is created.
func free(ctx context.Context, addr string) error {
	if addr == "" {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return l.Close()
}

// server is one run of a server.
type server struct {
	Options
	where string // the address as it listens
	mux   *mux
	http  *http.Server

	presented certificate
	announced bool
	asked     chan os.Signal // requests to read the configuration again
}

// newServer makes a server, which does not serve before run.
func newServer(o Options) *server {
	sv := &server{Options: o, where: "http://" + o.listener.Addr().String(), mux: newMux(o.Log), asked: make(chan os.Signal, 1)}
	if o.certificate != nil {
		sv.presented.pair.Store(o.certificate)
		sv.where = "https://" + o.listener.Addr().String()
	}
	all := access.Protect(sv.mux, access.ProtectOptions{Proxies: o.Config.Server.Proxies, Logger: o.Log})
	if o.Dev {
		all = httpapi.Local(all)
	}
	sv.http = httpapi.Server(all, o.Log)
	sv.http.WriteTimeout = o.Config.Server.MaxWait + answerSlack
	return sv
}

// listening is the listener: with TLS if there is a certificate.
func (sv *server) listening() net.Listener {
	if sv.presented.pair.Load() == nil {
		return sv.listener
	}
	return sv.presented.wrap(sv.listener)
}

// run serves until ctx ends or a part of it fails.
func (sv *server) run(ctx context.Context) error {
	signal.Notify(sv.asked, syscall.SIGHUP) // before there is anything to reload: the signal would end the process
	defer signal.Stop(sv.asked)
	reloads := newReloader(sv) // detects changes while it waits for the ledger
	served := make(chan error, 1)
	go func() { served <- fmt.Errorf("the server: %w", sv.http.Serve(sv.listening())) }()
	h, err := sv.build(ctx)
	if err != nil || h == nil {
		sv.shut(0)
		return err
	}
	endMetrics, err := h.ServeMetrics(sv.Config.Metrics.Listen)
	if err != nil {
		sv.shut(0)
		h.Close()
		return err
	}
	defer endMetrics()
	routes, err := sv.routes(ctx, h)
	if err != nil {
		sv.shut(0)
		h.Close()
		return err
	}
	sv.mux.open(routes, h.Instance.Ping)
	var paths []string
	for _, d := range routes {
		paths = append(paths, d.path)
	}
	sv.Log.Debug("serving", "paths", paths)
	if err := sv.announceOnce(nil); err != nil {
		sv.shut(0)
		h.Close()
		return err
	}
	reloads.services = h
	h.background["the reload"] = reloads.work
	grace := sv.Config.Server.Grace
	return h.Run(ctx, engine.WorkOptions{Parallel: sv.Config.Server.Parallel}, grace, served, func() { sv.shut(grace) })
}

// build opens the ledger and makes the services; nil if ctx ended before that. A database
// that is unreachable is tried again.
func (sv *server) build(ctx context.Context) (*Services, error) {
	pace := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstTry), backoff.WithMaxInterval(longestTry), backoff.WithMaxElapsedTime(0))
	for {
		h, err := sv.services(ctx)
		switch {
		case err == nil:
			return h, nil
		case ctx.Err() != nil:
			return nil, nil //nolint:nilerr // the server was stopped, which is no failure
		case !errors.Is(err, ledger.ErrUnavailable) || !sv.Config.Ledger.Database():
			return nil, err
		}
		if err := sv.announceOnce(err); err != nil {
			return nil, err
		}
		rest := pace.NextBackOff()
		sv.Log.Error("the ledger cannot be reached; nothing can be served until it is, and it is tried again", "ledger", sv.Config.Ledger.String(), "error", err, "again in", rest.Round(time.Millisecond))
		if !pause.For(ctx, rest) {
			return nil, nil
		}
	}
}

func (sv *server) services(ctx context.Context) (*Services, error) {
	d, err := Open(ctx, sv.Config, config.OpenOptions{Create: true}, sv.Process)
	if err != nil {
		return nil, err
	}
	h, err := NewServices(ctx, d, sv.registry, d.address(sv.where))
	if err != nil {
		d.Close()
		return nil, err
	}
	if err := d.RecordConfiguration(ctx, ConfigurationEvent{Event: Started, Command: "serve"}, sv.Config); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// shut stops the server within a time: new requests are refused, waiting callers are
// released, and all other requests get their response.
func (sv *server) shut(within time.Duration) {
	sv.mux.close()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := sv.http.Shutdown(ctx); err != nil {
		if within > 0 {
			sv.Log.Warn("requests under way were cut off", "error", err)
		}
		_ = sv.http.Close() // the result is in the ledger
	}
}

// announceOnce prints the address, unless it was printed before.
func (sv *server) announceOnce(away error) error {
	if sv.announced {
		return nil
	}
	sv.announced = true
	return sv.Announce(sv.where, away)
}

// certificate is the server's certificate, which may be replaced while it runs.
type certificate struct {
	pair atomic.Pointer[tls.Certificate]
}

// LoadCertificate reads a certificate and its key; nil where none is configured.
func LoadCertificate(c config.Config) (*tls.Certificate, error) {
	s := c.Server
	if s.CertFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return nil, &config.InvalidError{Path: c.Path, Problems: []config.Problem{{Line: s.Line, Field: "server.tls",
			Problem: fmt.Sprintf("%s and %s cannot be used: %v; want a certificate with its chain and the key that belongs to it, as PEM", s.CertFile, s.KeyFile, err)}}}
	}
	return &pair, nil
}

// wrap makes a listener use TLS. Versions before 1.2 are broken.
func (c *certificate) wrap(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil }})
}
