//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/pgtest"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Temporal's test server keeps everything in memory. To have the durability of the others, the
// same server runs on PostgreSQL: see the folder temporalserver.
var temporalOnPostgres = contender{
	name: "Temporal, PostgreSQL", store: postgresStore, module: "go.temporal.io/sdk", needs: temporalProgram,
	open: openTemporal,
}

const temporalProgram = "temporalserver"

const temporalNamespace = "bench"

// atOnce is how many workflows a process begins at once: less than the server's 20 connections.
const atOnce = 16

func openTemporal(ctx context.Context, m *machine, d *destination) (session, error) {
	address, stop, err := startTemporal(m)
	if err != nil {
		return session{}, err
	}
	charge := func(_ context.Context, o order) (string, error) {
		d.send(o.Reference, connectors.Record{})
		return o.Reference, nil
	}
	flow := func(ctx workflow.Context, o order) (string, error) {
		var made string
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute}), charge, o).Get(ctx, &made)
		return made, err
	}
	s, err := temporalSession(ctx, m.log, address, "bench", flow, func(w worker.Worker) { w.RegisterActivity(charge) })
	if err != nil {
		return session{}, errors.Join(err, stop())
	}
	closeClient := s.close
	s.close = func() error { return errors.Join(closeClient(), stop()) }
	return s, nil
}

// startTemporal starts the server on two empty databases. It may not be ready yet.
func startTemporal(m *machine) (address string, stop func() error, err error) {
	var databases [2]string
	var drops []func() error
	dropAll := func() error {
		var errs []error
		for _, drop := range drops {
			errs = append(errs, drop())
		}
		return errors.Join(errs...)
	}
	for i := range databases {
		dsn, drop, err := m.database()
		if err != nil {
			return "", nil, errors.Join(err, dropAll())
		}
		drops = append(drops, drop)
		c, err := pgx.ParseConfig(dsn)
		if err != nil {
			return "", nil, errors.Join(err, dropAll())
		}
		databases[i] = c.Database
	}
	ports, err := freePorts(8) // two for each of its services
	var list []byte
	if err == nil {
		list, err = json.Marshal(ports)
	}
	if err != nil {
		return "", nil, errors.Join(err, dropAll())
	}
	stopServer, err := m.start(temporalProgram, nil, "-postgres", m.pg.Addr(), "-user", pgtest.Superuser,
		"-database", databases[0], "-visibility", databases[1], "-ports", string(list))
	if err != nil {
		return "", nil, errors.Join(err, dropAll())
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0]), func() error { return errors.Join(stopServer(), dropAll()) }, nil
}

// temporalSession runs a workflow for each write, on a task queue of its own. What the worker has besides the workflow
// is registered by register.
func temporalSession(ctx context.Context, log *slog.Logger, address, queue string, flow any, register func(worker.Worker)) (session, error) {
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var c client.Client
	err := until(ready, startPause, func() (err error) {
		c, err = client.DialContext(ready, client.Options{HostPort: address, Namespace: temporalNamespace, Logger: sdklog.NewStructuredLogger(log)})
		return err
	})
	if err != nil {
		return session{}, fmt.Errorf("dial: %w", err)
	}
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: "charge"})
	register(w)
	_, err = c.WorkflowService().RegisterNamespace(ready, &workflowservice.RegisterNamespaceRequest{
		Namespace: temporalNamespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if exists := new(serviceerror.NamespaceAlreadyExists); err == nil || errors.As(err, &exists) {
		// The services learn of a new namespace after some seconds.
		err = until(ready, startPause, func() error {
			_, err := c.DescribeTaskQueue(ready, queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
			return err
		})
	}
	if err == nil {
		err = w.Start()
	}
	if err != nil {
		c.Close()
		return session{}, err
	}
	// Each call has ten seconds. Where hundreds begin a workflow at once, all of them run out of it, and the server
	// opens its shards again, whose state it does not know any more.
	beginning := make(chan struct{}, atOnce)
	return session{
		write: func(ctx context.Context, o order) (failed error) {
			id := queue + "-" + o.Reference
			err := until(ctx, busyPause, func() error {
				beginning <- struct{}{}
				run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
					ID: id, TaskQueue: queue, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
				}, flow, o)
				<-beginning
				if begun := new(serviceerror.WorkflowExecutionAlreadyStarted); errors.As(err, &begun) {
					run, err = c.GetWorkflow(ctx, id, ""), nil
				}
				if err == nil {
					err = run.Get(ctx, nil)
				}
				// Another error is the call's, such as a timeout of a busy server.
				if ended := new(temporal.WorkflowExecutionError); errors.As(err, &ended) {
					failed, err = ended, nil
				}
				return err
			})
			return errors.Join(failed, err)
		},
		close: func() error { w.Stop(); c.Close(); return nil },
	}, nil
}
