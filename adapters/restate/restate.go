package restate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/restatedev/sdk-go"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
)

const (
	// attemptTime bounds one attempt. Restate asks a handler without progress to suspend after a
	// minute, by default.
	attemptTime = 30 * time.Second
	// retryFirst and retryMost bound the pause between attempts of which nothing is known.
	retryFirst = time.Second
	retryMost  = time.Minute
	// wakeTime bounds one call of the ingress.
	wakeTime = 30 * time.Second
)

// Writes makes the writes of the handlers of one service, object or workflow.
type Writes struct {
	// Service is its name in Restate. Required.
	Service string
	// Engine makes the writes, and Ledger is its ledger. Required.
	Engine *engine.Engine
	Ledger ledger.Ledger
}

// Do makes a write as a step of a handler and returns its outcome. No write of the service may have
// the same step and tool under one key. A write that waits for a reviewer suspends the handler until
// [Wake] notifies it, or a durable timer ends.
//
// The name of the run is the key of the object or workflow, else the idempotency key of the request,
// or the intent's Workflow where it is set: for an object that makes the same step several times.
//
// The error is terminal. It has the outcome's text where the write ended without the effect. After a
// cancellation the write may have been sent, and is not withdrawn.
func (ws *Writes) Do(ctx sdk.Context, step string, w intent.WriteIntent) (engine.Outcome, error) {
	run := []string{ctx.Request().IdempotencyKey}
	if o, keyed := ctx.(sdk.ObjectSharedContext); keyed && sdk.Key(o) != "" { // it is empty in a handler of a service
		run = []string{sdk.Key(o)}
	}
	if w.Workflow != "" { // two parts: it is no key, also where it has the text of one
		run = []string{"Workflow", w.Workflow}
	}
	if w.Workflow, w.Step = engine.WorkflowName("restate", append([]string{ws.Service}, run...)...), step; w.Workflow == "" {
		return engine.Outcome{}, sdk.ToTerminalError(errors.New(
			"the write has no name that a retry keeps: call the handler with an idempotency key, or set Workflow and Writes.Service"), sdk.WithErrorCode(http.StatusBadRequest))
	}
	id := ledger.IDOf(w.StructuralKey())
	var out engine.Outcome
	var decided sdk.AwakeableFuture[string]
	for pass := 1; ; pass++ {
		waiter := ""
		if decided != nil {
			waiter = decided.Id()
		}
		s, err := sdk.Run(ctx, func(rc sdk.RunContext) (engine.Step, error) { return ws.attempt(rc, w, pass, waiter) },
			sdk.WithName(step), sdk.WithInitialRetryInterval(retryFirst), sdk.WithMaxRetryInterval(retryMost))
		if err != nil {
			return out, interrupted(id, err)
		}
		switch out = s.Outcome; {
		case s.Next == engine.NextLater:
			err = sdk.Sleep(ctx, s.After)
		case s.Next == engine.NextDecision && decided == nil:
			decided = sdk.Awakeable[string](ctx) // the next attempt records it before it asks again
		case s.Next == engine.NextDecision:
			var first sdk.Future
			if first, err = sdk.WaitFirst(ctx, decided, sdk.After(ctx, s.After)); first == decided {
				decided = nil
			}
		case s.Next == engine.NextFail:
			return out, sdk.ToTerminalError(errors.New(out.Text), sdk.WithErrorCode(http.StatusConflict), sdk.WithMetadata("readback", string(out.Status)))
		default:
			return out, nil
		}
		if err != nil {
			return out, interrupted(id, err)
		}
	}
}

// interrupted returns the error of a handler that was cancelled, which an attempt may not have noticed,
// with what is known of its write. A refusal, which has another code, is returned as it is.
func interrupted(id ledger.ID, err sdk.TerminalError) error {
	if err.Code() != http.StatusConflict {
		return err
	}
	return sdk.ToTerminalError(fmt.Errorf("%s; write %s may have been sent, and is not withdrawn", err.Message(), id), sdk.WithErrorCode(err.Code()))
}

// attempt makes one attempt. A waiter is recorded before the outcome is asked for, so that no decision
// falls between the two, and forgotten if there is nothing to wait for.
func (ws *Writes) attempt(ctx context.Context, w intent.WriteIntent, pass int, waiter string) (engine.Step, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	note := ledger.Note{Name: notesOf(ledger.IDOf(w.StructuralKey())) + waiter, Value: []byte(ws.Service)}
	if waiter != "" {
		if _, err := ws.Ledger.SetNote(ctx, note); err != nil && !errors.Is(err, ledger.ErrStale) { // it is there already
			return engine.Step{}, err
		}
	}
	s, err := ws.Engine.Step(ctx, w, pass)
	if err != nil && s.Next == engine.NextFail {
		err = sdk.ToTerminalError(err, sdk.WithErrorCode(http.StatusBadRequest))
	}
	if waiter != "" && s.Next != engine.NextDecision && s.Next != engine.NextRetry {
		_ = forget(ctx, ws.Ledger, note.Name) // else Wake does it
	}
	return s, err
}

// notesOf begins the names of the notes of the waiters of a write.
func notesOf(id ledger.ID) string { return "restate/" + string(id) + "/" }

func forget(ctx context.Context, l ledger.Ledger, name string) error {
	notes, _, err := l.Notes(ctx, name)
	for _, n := range notes {
		n.Value = nil
		if _, lost := l.SetNote(ctx, n); lost != nil && !errors.Is(lost, ledger.ErrStale) {
			err = errors.Join(err, lost)
		}
	}
	return err
}

// Wake wakes the handlers that wait for a reviewer, until ctx ends, and then returns nil. Ingress is
// the address of Restate's ingress. It may run in several processes. A lost wake-up costs one timer.
func Wake(ctx context.Context, l ledger.Ledger, ingress string, client *http.Client) error {
	resolve := webhooks.Publisher(func(ctx context.Context, m webhooks.Message) error {
		prefix := notesOf(m.Write)
		waiters, _, err := l.Notes(ctx, prefix)
		for _, n := range waiters {
			if err = errors.Join(err, wake(ctx, client, ingress, strings.TrimPrefix(n.Name, prefix))); err == nil {
				err = forget(ctx, l, n.Name)
			}
		}
		return err
	})
	return webhooks.New(l, resolve, webhooks.Options{Hooks: []webhooks.Hook{
		{Name: "restate", Events: []string{"write.approved", "write.decided", "write.settled"}}}}).Work(ctx)
}

// wake resolves one awakeable. Restate's refusal is final: the handler has ended, or waits no more.
func wake(ctx context.Context, client *http.Client, ingress, id string) error {
	ctx, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(ingress, "/")+"/restate/awakeables/"+url.PathEscape(id)+"/resolve", strings.NewReader(`"decided"`))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("restate: %s", resp.Status)
	}
	return nil
}
