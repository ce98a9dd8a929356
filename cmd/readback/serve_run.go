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
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

// serving is one run of a server.
type serving struct {
	app      *app
	config   config.Config
	reg      *connectors.Registry
	settings serveSettings
	listener net.Listener
	log      *slog.Logger
	where    string // it can be reached, as it listens
	front    *front
	server   *http.Server

	certificate certificate
	announced   bool
	asked       chan os.Signal // to read the configuration again
}

// listening is what is served on: with TLS where there is a certificate.
func (sv *serving) listening() net.Listener {
	if sv.certificate.pair.Load() == nil {
		return sv.listener
	}
	return sv.certificate.wrap(sv.listener)
}

// run serves until ctx ends or a part of it fails.
func (sv *serving) run(ctx context.Context) error {
	sv.asked = make(chan os.Signal, 1)
	signal.Notify(sv.asked, syscall.SIGHUP) // before there is anything to reload: it would end the process
	defer signal.Stop(sv.asked)
	reloads := newReloader(sv) // what changes while a ledger is waited for is seen
	sv.front = newFront(sv.log)
	all := access.Protect(sv.front, access.ProtectOptions{Logger: sv.log})
	if sv.settings.dev {
		all = httpapi.Local(all)
	}
	sv.server = httpapi.Server(all, sv.log)
	sv.server.WriteTimeout = sv.config.Server.MaxWait + answerSlack
	served := make(chan error, 1)
	go func() { served <- sv.server.Serve(sv.listening()) }()
	h, err := sv.house(ctx)
	if err != nil || h == nil {
		sv.shut(0)
		return err
	}
	endMeter, err := h.desk.serveMeter(sv.config.Metrics.Listen, h.meter)
	if err != nil {
		sv.shut(0)
		h.close()
		return err
	}
	defer endMeter()
	doors, err := sv.doors(ctx, h)
	if err != nil {
		sv.shut(0)
		h.close()
		return err
	}
	sv.front.open(doors, h.desk.reached)
	if err := sv.announce(nil); err != nil {
		sv.shut(0)
		h.close()
		return err
	}
	reloads.house = h
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

// house opens the ledger and makes what is behind the doors; nil when ctx ended
// before that. A database that cannot be reached may be there later: it is tried
// again.
func (sv *serving) house(ctx context.Context) (*house, error) {
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
		pause := pace.NextBackOff()
		sv.log.Error("the ledger cannot be reached; nothing can be served until it is, and it is tried again", "ledger", sv.config.Ledger.String(), "error", err, "again in", pause.Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(pause):
		}
	}
}

func (sv *serving) furnished(ctx context.Context) (*house, error) {
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

// shut ends the server: nobody new comes in, who waits is released, and whoever
// else is in is answered, within a time.
func (sv *serving) shut(within time.Duration) {
	sv.front.close()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := sv.server.Shutdown(ctx); err != nil {
		if within > 0 {
			sv.log.Warn("requests under way were cut off", "error", err)
		}
		_ = sv.server.Close() // what it did is in the ledger
	}
}

// announce says where it listens, on a line of its own, and on what. It says so
// once.
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
