package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/readback-go/readback/internal/httpapi"
)

const (
	// readyTimeout bounds the check whether the ledger can be reached: probes give up
	// after a few seconds themselves.
	readyTimeout = 2 * time.Second
	// scrapeTimeout bounds one scrape: Prometheus gives up after 10 s by default.
	scrapeTimeout = 9 * time.Second
	// maxScrapes bounds the scrapes under way at once.
	maxScrapes = 4
	// headerTimeout, writeTimeout and idleTimeout bound what a slow client holds.
	headerTimeout = 5 * time.Second
	writeTimeout  = 15 * time.Second
	idleTimeout   = time.Minute
	// maxHeader bounds the header of a request: no client needs cookies here.
	maxHeader = 16 << 10
)

// Server serves a meter. Create one with [Start].
type Server struct {
	listener net.Listener
	server   *http.Server
	ended    chan struct{}
}

// Start listens on an address (host:port) and serves /metrics, /healthz (the process is
// up) and /readyz (ready returns nil within two seconds). log receives failures. Close
// it.
func Start(addr string, m *Meter, ready func(context.Context) error, log *slog.Logger) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	h := m.handler(ready, log)
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		h = httpapi.Local(h) // a page whose name points here must not read the numbers
	}
	s := &Server{listener: l, ended: make(chan struct{}), server: &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
	}}
	go func() {
		defer close(s.ended)
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are no longer served", "error", err)
		}
	}()
	return s, nil
}

// Addr is the address it listens on, with the actual port for port 0.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close stops it at once. Running scrapes are cut off.
func (s *Server) Close() error {
	err := s.server.Close()
	<-s.ended
	return err
}

// Numbers serves the metrics, for a server with other routes. It authenticates no caller.
func (m *Meter) Numbers(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		Registry: m.registry, MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
	})
}

func (m *Meter) handler(ready func(context.Context) error, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Numbers(log))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		began := time.Now()
		if err := ready(ctx); err != nil { // the error is for the log: any caller may ask here
			log.Warn("not ready", "error", err, "took", time.Since(began))
			say(w, http.StatusServiceUnavailable, "the ledger cannot be reached")
			return
		}
		say(w, http.StatusOK, "ok")
	})
	return mux
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n")) // a client that disconnected needs no response
}
