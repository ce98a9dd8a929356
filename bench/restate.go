//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/readback-go/readback/connectors"
	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	"github.com/restatedev/sdk-go/server"
)

// Restate's server in its default configuration, a cluster of one node. It syncs its log before
// it acknowledges (bifrost.local.rocksdb-disable-wal-fsync is false).
var restateServer = contender{
	name: "Restate", store: restateStore, module: "github.com/restatedev/sdk-go", needs: restateProgram,
	open: openRestate,
}

const restateProgram = "restate-server"

// startRestate starts the server, which may not be ready yet.
func startRestate(m *machine) (ingressURL, adminURL string, stop func() error, err error) {
	ports, err := freePorts(3)
	if err != nil {
		return "", "", nil, err
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	folder, remove, err := m.folder()
	if err != nil {
		return "", "", nil, err
	}
	stopServer, err := m.start(restateProgram,
		[]string{"RESTATE_INGRESS__BIND_ADDRESS=" + at(0), "RESTATE_ADMIN__BIND_ADDRESS=" + at(1), "RESTATE_DISABLE_TELEMETRY=true"},
		"--no-logo", "--listen-mode", "tcp", "--bind-ip", "127.0.0.1", "--bind-port", fmt.Sprint(ports[2]), "--advertised-host", "127.0.0.1",
		"--base-dir", folder)
	if err != nil {
		return "", "", nil, errors.Join(err, remove())
	}
	return "http://" + at(0), "http://" + at(1), func() error { return errors.Join(stopServer(), remove()) }, nil
}

func openRestate(ctx context.Context, m *machine, d *destination) (session, error) {
	ports, err := freePorts(1)
	if err != nil {
		return session{}, err
	}
	ingressURL, adminURL, stopServer, err := startRestate(m)
	if err != nil {
		return session{}, err
	}
	s, err := restateSession(ctx, m.log, ingressURL, adminURL, fmt.Sprintf("127.0.0.1:%d", ports[0]), restate.NewService("payments").Handler("charge",
		restate.NewServiceHandler(func(ctx restate.Context, o order) (string, error) {
			return restate.Run(ctx, func(restate.RunContext) (string, error) {
				d.send(o.Reference, connectors.Record{})
				return o.Reference, nil
			})
		})))
	if err != nil {
		return session{}, errors.Join(err, stopServer())
	}
	stop := s.close
	s.close = func() error { return errors.Join(stopServer(), stop()) } // the server first: it holds connections to the service
	return s, nil
}

// restateSession serves a service at an address, and calls its handler "charge" for each write.
func restateSession(ctx context.Context, log *slog.Logger, ingressURL, adminURL, address string, service restate.ServiceDefinition) (session, error) {
	serving, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	stop := func() error { cancel(); return <-served }
	go func() {
		served <- server.NewRestate().WithLogger(log.Handler(), true).Bind(service).Start(serving, address)
	}()
	if err := registerDeployment(ctx, adminURL, "http://"+address); err != nil {
		return session{}, errors.Join(err, stop())
	}
	// A connection for each caller, as pools of the others have them. The server answers none of 1,200 that are opened
	// at once on two cores.
	transport := &http.Transport{MaxIdleConnsPerHost: 100, MaxConnsPerHost: 100}
	client := ingress.NewClient(ingressURL, ingress.WithHttpClient(&http.Client{Transport: transport}))
	charge := ingress.Service[order, string](client, service.Name(), "charge")
	return session{
		write: func(ctx context.Context, o order) (failed error) {
			err := until(ctx, busyPause, func() error {
				_, err := charge.Request(ctx, o, restate.WithIdempotencyKey(o.Reference))
				// Another error is the call's.
				if ended := ingress.Error(nil); errors.As(err, &ended) && ended.IsInvocationError() {
					failed, err = ended, nil
				}
				return err
			})
			return errors.Join(failed, err)
		},
		close: func() error { transport.CloseIdleConnections(); return stop() },
	}, nil
}

// registerDeployment makes the service known to the server, as soon as both answer.
func registerDeployment(ctx context.Context, admin, service string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return until(ctx, startPause, func() error {
		body := bytes.NewBufferString(fmt.Sprintf(`{"uri": %q}`, service))
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, admin+"/deployments", body)
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode >= 300 {
			return fmt.Errorf("restate: %s", answer.Status)
		}
		return nil
	})
}
