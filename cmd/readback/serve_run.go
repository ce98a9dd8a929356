package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/report"
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

// serving is one run of a server.
type serving struct {
	app      *app
	config   config.Config
	reg      *connectors.Registry
	settings serveSettings
	listener net.Listener
	log      *slog.Logger
	where    string // the address as it listens
	mux      *mux
	server   *http.Server

	certificate certificate
	announced   bool
	asked       chan os.Signal // requests to read the configuration again
}

// listening is the listener: with TLS if there is a certificate.
func (sv *serving) listening() net.Listener {
	if sv.certificate.pair.Load() == nil {
		return sv.listener
	}
	return sv.certificate.wrap(sv.listener)
}

// run serves until ctx ends or a part of it fails.
func (sv *serving) run(ctx context.Context) error {
	sv.asked = make(chan os.Signal, 1)
	signal.Notify(sv.asked, syscall.SIGHUP) // before there is anything to reload: the signal would end the process
	defer signal.Stop(sv.asked)
	reloads := newReloader(sv) // detects changes while it waits for the ledger
	sv.mux = newFront(sv.log)
	all := access.Protect(sv.mux, access.ProtectOptions{Proxies: sv.config.Server.Proxies, Logger: sv.log})
	if sv.settings.dev {
		all = httpapi.Local(all)
	}
	sv.server = httpapi.Server(all, sv.log)
	sv.server.WriteTimeout = sv.config.Server.MaxWait + answerSlack
	served := make(chan error, 1)
	go func() { served <- sv.server.Serve(sv.listening()) }()
	h, err := sv.build(ctx)
	if err != nil || h == nil {
		sv.shut(0)
		return err
	}
	endMeter, err := h.app.serveMeter(sv.config.Metrics.Listen, h.meter)
	if err != nil {
		sv.shut(0)
		h.close()
		return err
	}
	defer endMeter()
	doors, err := sv.routes(ctx, h)
	if err != nil {
		sv.shut(0)
		h.close()
		return err
	}
	sv.mux.open(doors, h.app.reached)
	if err := sv.announce(nil); err != nil {
		sv.shut(0)
		h.close()
		return err
	}
	reloads.services = h
	h.beside["the reload"] = reloads.work
	w := h.work(ctx, sv.config.Server.Parallel, sv.config.Server.Grace)
	select {
	case <-ctx.Done():
	case err = <-w.failed:
	case err = <-served:
		err = fmt.Errorf("the server: %w", err)
	}
	began := time.Now()
	sv.shut(sv.config.Server.Grace)
	w.grace = max(sv.config.Server.Grace-time.Since(began), minRest)
	return errors.Join(err, h.rest(w))
}

// build opens the ledger and makes the services; nil if ctx ended before that. A database
// that is unreachable is tried again.
func (sv *serving) build(ctx context.Context) (*services, error) {
	pace := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstTry), backoff.WithMaxInterval(longestTry), backoff.WithMaxElapsedTime(0))
	for {
		h, err := sv.furnished(ctx)
		switch {
		case err == nil:
			return h, nil
		case ctx.Err() != nil:
			return nil, nil //nolint:nilerr // it was told to stop, which is no failure
		case !errors.Is(err, ledger.ErrUnavailable) || !sv.config.Ledger.Database():
			return nil, err
		}
		if err := sv.announce(err); err != nil {
			return nil, err
		}
		rest := pace.NextBackOff()
		sv.log.Error("the ledger cannot be reached; nothing can be served until it is, and it is tried again", "ledger", sv.config.Ledger.String(), "error", err, "again in", rest.Round(time.Millisecond))
		if !pause.For(ctx, rest) {
			return nil, nil
		}
	}
}

func (sv *serving) furnished(ctx context.Context) (*services, error) {
	d, err := sv.app.open(ctx, sv.config, config.OpenOptions{Create: true})
	if err != nil {
		return nil, err
	}
	h, err := sv.app.furnish(ctx, d, sv.reg, d.address(sv.where))
	if err != nil {
		d.close()
		return nil, err
	}
	if err := sv.app.recordSettings(ctx, d, settingsEvent{Event: settingsStarted, Command: "serve"}, sv.config); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// shut stops the server within a time: new requests are refused, waiting callers are
// released, and all other requests get their response.
func (sv *serving) shut(within time.Duration) {
	sv.mux.close()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := sv.server.Shutdown(ctx); err != nil {
		if within > 0 {
			sv.log.Warn("requests under way were cut off", "error", err)
		}
		_ = sv.server.Close() // the result is in the ledger
	}
}

// announce prints the address it listens on, on a line of its own, and the ledger. It
// does so once.
func (sv *serving) announce(away error) error {
	a, c := sv.app, sv.config
	if sv.announced {
		return nil
	}
	sv.announced = true
	if a.json {
		said := map[string]string{"listening": sv.where, "ledger": c.Ledger.String(),
			"configuration": c.Path, "tenant": c.Tenant, "credentials": sv.credentials()}
		if away != nil {
			said["unavailable"] = away.Error()
		}
		text, err := json.Marshal(said)
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, "%s\n", text)
		}
		return err
	}
	lines := []string{sv.where,
		"Ledger: " + report.Safe(c.Ledger.String()),
		"Configuration: " + report.Safe(c.Path)}
	switch {
	case sv.settings.sample:
		lines[2] = sv.sampleText()
	case c.Path == "":
		lines[2] = "Configuration: none; there are no destinations to look at, and no rules. --sample has one to try out."
	}
	if away != nil {
		lines = append(lines, "The ledger cannot be reached yet, and is tried again: "+report.Safe(flat(away.Error())))
	}
	if sv.settings.dev {
		lines = append(lines, "Credentials are not checked (--dev): everybody who can reach this address may do everything, and approvals are by whatever name a caller gives.")
	} else {
		lines = append(lines, "Callers come with an API token: readback token create --role agent --name NAME")
	}
	_, err := fmt.Fprintln(a.stdout, strings.Join(lines, "\n"))
	return err
}
