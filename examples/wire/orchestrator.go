package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger/sqlite"
)

// setting is what an orchestrator is started with.
type setting struct {
	ledger, bank, notifier, workflow string
	gated                            bool
}

const (
	roleVar = "READBACK_WIRE_ROLE"
	role    = "orchestrator"
	// patience is how long it waits for an answer.
	patience = time.Second
	// lease is how long it may need for one step, in seconds.
	lease = 2
)

func isOrchestrator() bool { return os.Getenv(roleVar) == role }

func (s setting) environ() []string {
	env := []string{roleVar + "=" + role, "WIRE_LEDGER=" + s.ledger, "WIRE_BANK=" + s.bank, "WIRE_NOTIFIER=" + s.notifier, "WIRE_WORKFLOW=" + s.workflow}
	if s.gated {
		env = append(env, "WIRE_GATED=yes")
	}
	return env
}

func settingOf() setting {
	return setting{ledger: os.Getenv("WIRE_LEDGER"), bank: os.Getenv("WIRE_BANK"), notifier: os.Getenv("WIRE_NOTIFIER"),
		workflow: os.Getenv("WIRE_WORKFLOW"), gated: os.Getenv("WIRE_GATED") != ""}
}

// orchestrate runs an orchestrator from start to end.
func orchestrate(ctx context.Context, out io.Writer) error {
	s := settingOf()
	if !s.gated {
		return blindly(ctx, s, out)
	}
	g, err := s.open(ctx)
	if err != nil {
		return err
	}
	g.out = out
	return errors.Join(g.carry(ctx, s.workflow), g.close())
}

// step is one call of the orchestrator's.
type step struct {
	id, tool, destination, url string
}

func (s setting) steps() []step {
	return []step{{"transfer", "wire_transfer", "bank", s.bank}, {"notify", "notify_payee", "notifier", s.notifier}}
}

// client gives up in time, and sends nothing a second time to where it is
// redirected.
var client = &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// fire makes the call. An error does not show whether it had its effect.
func (s step) fire(ctx context.Context) error {
	body, err := json.Marshal(map[string]any{"order": map[string]any{"order_id": invoice, "amount_cents": 250000}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/orders", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s answers %s", s.destination, answer.Status)
	}
	return nil
}

// blindly is an orchestrator that begins where it always begins.
func blindly(ctx context.Context, s setting, out io.Writer) error {
	for _, st := range s.steps() {
		_, _ = fmt.Fprintf(out, "%s: fired\n", st.id)
		if err := st.fire(ctx); err != nil {
			return err
		}
	}
	return nil
}

// gated is an orchestrator that calls the gate before each step.
type gated struct {
	setting
	gate *gate.Gate
	out  io.Writer
	end  func() error
}

var me = gate.Caller{Tenant: "acme", Name: "orchestrator", Role: engine.RoleAgent}

// open opens the gate on the ledger. The engine never writes here: it only reads the bank and the
// notifier.
func (s setting) open(ctx context.Context) (*gated, error) {
	book, err := sqlite.Open(ctx, s.ledger, nil)
	if err != nil {
		return nil, err
	}
	var reg connectors.Registry
	for _, st := range s.steps() {
		c, err := orders.NewConnector(st.url, declared(), nil)
		if err == nil {
			err = reg.Register(st.destination, connectors.Destination{Connector: c, Profiles: c.Profiles()})
		}
		if err != nil {
			return nil, errors.Join(err, book.Close())
		}
	}
	eng := engine.New(book, &reg, nil)
	end := func() error { eng.Close(); return book.Close() }
	return &gated{setting: s, gate: gate.New(book, &gate.Options{Reader: eng}), end: end}, nil
}

func (g *gated) close() error { return g.end() }

func (g *gated) begin(ctx context.Context) (string, error) {
	w, err := g.gate.Create(ctx, me, gate.CreateRequest{WorkflowName: "pay " + invoice})
	return w.WorkflowID, err
}

// carry takes a workflow to its end. Where another workflow has begun the same
// operation, that one is carried on instead.
func (g *gated) carry(ctx context.Context, id string) error {
	for _, st := range g.steps() {
		prior, err := g.take(ctx, id, st)
		if err != nil {
			return fmt.Errorf("%s: %w", st.id, err)
		}
		if prior != "" {
			_, _ = fmt.Fprintf(g.out, "%s: blocked, a prior workflow has begun it; carrying that on instead\n", st.id)
			if _, err := g.gate.Abort(ctx, me, id, "workflow "+prior+" has begun the same operation"); err != nil {
				return err
			}
			return g.carry(ctx, prior)
		}
	}
	_, err := g.gate.Complete(ctx, me, id, "")
	return err
}

// take takes one step to its end, or returns the prior workflow that has begun
// it.
func (g *gated) take(ctx context.Context, id string, st step) (prior string, err error) {
	ask, err := g.request(id, st)
	if err != nil {
		return "", err
	}
	for {
		answer, err := g.gate.Gate(ctx, me, id, st.id, ask)
		if err != nil {
			return "", err
		}
		known, seen := answer.RetryContext, answer.RetryContext.Verification
		switch {
		case answer.Prior != nil:
			return answer.PriorWorkflowID, nil
		case answer.Decision != gate.Allow:
			return "", fmt.Errorf("the gate says %s: %s", answer.Decision, answer.Reason)
		case known.PriorCompletionStatus == gate.PriorCompleted:
			_, _ = fmt.Fprintf(g.out, "%s: completed before, not fired\n", st.id)
			return "", nil
		case seen != nil && seen.Effect == string(engine.EffectPresent):
			_, _ = fmt.Fprintf(g.out, "%s: %s, and the %s has it: completed, not fired\n", st.id, known.PriorCompletionStatus, st.destination)
			return "", g.complete(ctx, id, st, ask, 0)
		case answer.Lease == nil || !answer.LeaseGranted:
			if err := wait(ctx, answer); err != nil {
				return "", err
			}
			continue
		}
		_, _ = fmt.Fprintf(g.out, "%s: fired\n", st.id)
		if err := st.fire(ctx); err != nil {
			_, _ = fmt.Fprintf(g.out, "%s: no answer; asking the gate again\n", st.id)
			continue
		}
		return "", g.complete(ctx, id, st, ask, answer.Fence)
	}
}

func (g *gated) complete(ctx context.Context, id string, st step, ask gate.GateRequest, fence int64) error {
	_, err := g.gate.CompleteStep(ctx, me, id, st.id, gate.CompleteRequest{IdempotencyKey: ask.IdempotencyKey, Fence: fence})
	return err
}

// request describes the step, independent of the caller: the name of the operation, and what the
// destination must show when it is done.
func (g *gated) request(id string, st step) (gate.GateRequest, error) {
	w := intent.WriteIntent{
		Tenant: me.Tenant, Workflow: id, Step: st.id, Tool: st.tool, IdempotencyKey: st.destination + ":" + invoice,
		Destination: st.destination, Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": invoice}, Expect: intent.Fields{"amount_cents": json.Number("250000")},
	}
	text, err := w.Encode()
	return gate.GateRequest{
		StepType: "tool_call", ToolContext: &gate.ToolContext{ToolName: st.tool},
		IdempotencyKey: w.IdempotencyKey, Intent: text, LeaseSeconds: lease,
	}, err
}

// wait waits as long as the gate requires, while another worker has the step.
func wait(ctx context.Context, answer gate.GateResponse) error {
	pause := time.Second
	if answer.Lease != nil {
		pause = max(pause, time.Duration(answer.RetryAfterSeconds)*time.Second)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
