package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// Next is what a workflow engine does after one attempt at a step that makes a write.
type Next string

// What comes next. An outcome is a result; only where nothing is known is the attempt repeated.
const (
	// NextRetry: nothing is known. The engine repeats the attempt by its own policy, without a
	// low limit: the write may have been sent.
	NextRetry Next = "retry"
	// NextLater: the write is in progress. The engine repeats the attempt after [Step.After]. It
	// counts no attempt and occupies no worker meanwhile.
	NextLater Next = "later"
	// NextDecision: the write waits for a reviewer, or for the report of a caller that makes it.
	// The engine waits for a signal, at most for [Step.After], and repeats the attempt.
	NextDecision Next = "decision"
	// NextResult: the outcome is the step's result: verified, accepted, reported, or unverified,
	// whose read back is still due.
	NextResult Next = "result"
	// NextFail: the write has ended without the effect, or with one that stays unknown, or was
	// refused. The same step returns the same for ever: the engine fails it without a retry.
	NextFail Next = "fail"
)

// Step is one attempt at a step of a workflow engine.
type Step struct {
	Outcome Outcome
	Next    Next
	// After is how long the engine waits, for NextLater and NextDecision; 0 otherwise.
	After time.Duration
}

// ErrIdentityChanged means that the workflow engine repeats an attempt, and the ledger knows the
// write of the earlier attempt under another name. Nothing was recorded or sent by this attempt.
var ErrIdentityChanged = errors.New("the engine changed the identity of a step between two attempts")

// identityWindow is how far back Step searches for an earlier attempt under another name. A
// longer one would take a write that recurs daily for an attempt.
const identityWindow = 12 * time.Hour

// Step makes one attempt at the write of a workflow engine's step: it is Do, with what the
// engine does next. Attempt is the engine's own count, from 1, or 0 where it has none. Where
// another write began the same operation, the outcome is that write's.
//
// An attempt after the first fails with [ErrIdentityChanged] if its write is not in the ledger and
// another one is that requests the same and has not ended without its effect. The error names both:
// the engine derives its IDs from the attempt or the run, and the write would be made twice. It
// also fails if the first attempt ended before it recorded anything, and another workflow asks for
// the same write: an idempotency key distinguishes the two.
//
// ctx should end some seconds before the engine's own limit: what the engine interrupts
// continues, and the next attempt returns its outcome. With an error, Next is NextFail if
// repeating the attempt cannot change it, else NextRetry.
func (e *Engine) Step(ctx context.Context, w intent.WriteIntent, attempt int) (Step, error) {
	if attempt > 1 {
		if err := e.sameIdentity(ctx, w, attempt); err != nil {
			return Step{Next: nextAfter(err)}, err
		}
	}
	out, err := e.Do(ctx, w)
	var blocked *ledger.BlockedError
	if errors.As(err, &blocked) && blocked.Received == blocked.Prior.Digest {
		out, err = e.AwaitPrior(ctx, err)
	}
	if err != nil {
		return Step{Outcome: out, Next: nextAfter(err)}, err
	}
	s := Step{Outcome: out, Next: nextFor(out.Status)}
	switch s.Next {
	case NextLater:
		s.After = spread(out.ID, min(max(time.Until(out.AskAfter), time.Second), 5*time.Minute))
	case NextDecision: // half its age: few repeats in days, and an early decision is seen early
		s.After = spread(out.ID, min(max(time.Since(out.Created)/2, 10*time.Second), time.Hour))
	}
	return s, nil
}

// Record records the write of a message for a worker to make, without waiting for its outcome: the
// message can be acknowledged, and its outcome is reported elsewhere. Where another write began the
// same operation, the ID is that write's. With an error, next is NextFail if repeating cannot change
// it, else NextRetry.
func (e *Engine) Record(ctx context.Context, w intent.WriteIntent) (id ledger.ID, next Next, err error) {
	id, err = e.Enqueue(ctx, w)
	var blocked *ledger.BlockedError
	if errors.As(err, &blocked) && blocked.Received == blocked.Prior.Digest {
		return blocked.Prior.ID, NextResult, nil
	}
	if err != nil {
		return "", nextAfter(err), err
	}
	return id, NextResult, nil
}

// nextFor returns what comes next after an outcome.
func nextFor(s ledger.Status) Next {
	switch {
	case s == ledger.Unverified, s.Group() == ledger.Done:
		return NextResult
	case s == ledger.InProgress:
		return NextLater
	case s == ledger.StatusDelegated, s.Group() == ledger.NeedsReview:
		return NextDecision
	}
	return NextFail
}

// lasting are the errors that a repeat of the same step cannot change.
var lasting = []error{
	intent.ErrInvalid, ErrForbidden, connectors.ErrUnknownDestination, ledger.ErrDigestMismatch, ledger.ErrBlocked,
	ledger.ErrRefused, redact.ErrNoKey, ErrIdentityChanged,
}

// nextAfter returns what comes next after an error.
func nextAfter(err error) Next {
	var scope *ScopeError
	if errors.As(err, &scope) || slices.ContainsFunc(lasting, func(target error) bool { return errors.Is(err, target) }) {
		return NextFail
	}
	return NextRetry
}

// spread adds up to a quarter, by the write: steps that began to wait together do not return
// together.
func spread(id ledger.ID, d time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return d + time.Duration(h.Sum32()%256)*d/1024
}

// sameIdentity fails with [ErrIdentityChanged] if the ledger lacks the write of a repeated
// attempt, and has one that requests the same under another name.
func (e *Engine) sameIdentity(ctx context.Context, w intent.WriteIntent, attempt int) error {
	t, err := e.accept(ctx, w)
	if err != nil {
		return e.rejected(ctx, w, err)
	}
	_, err = e.ledger.Get(ctx, t.rec.Tenant, t.rec.ID)
	if err == nil {
		return nil
	}
	if !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	search := ledger.Search{Tenant: t.rec.Tenant, Destination: t.rec.Destination, KeyDigest: t.rec.KeyDigest,
		Since: time.Now().Add(-identityWindow)}
	for range 10 { // pages: an ordered write has one, and a destination without order has many writes
		found, err := e.ledger.Find(ctx, search)
		if err != nil {
			return err
		}
		for _, other := range found.Records {
			// With an idempotency key the digests are of one operation, which blocks the second
			// write by itself. One that ended without its effect makes no other a second one.
			if other.IdempotencyKey != "" || other.Settlement.Group() == ledger.NotDone || other.Tool != t.rec.Tool {
				continue
			}
			switch err := sameRequest(other, t.rec); {
			case errors.Is(err, ledger.ErrNoKey): // it may be the same
				return &Error{ID: t.rec.ID, Known: KnownNotApplied, Err: err}
			case err == nil:
				return &Error{ID: t.rec.ID, Known: KnownNotApplied, Err: fmt.Errorf(
					"%w: attempt %d is of workflow %q, step %q, which the ledger does not have, and write %s of workflow %q, step %q, requests the same; use names that retries keep, or set idempotency_key",
					ErrIdentityChanged, attempt, t.rec.Workflow, t.rec.Step, other.ID, other.Workflow, other.Step)}
			}
		}
		if search.After = found.Next; search.After == "" {
			return nil
		}
	}
	return nil
}

// WorkflowName returns the name of a workflow run for an intent, such as
// "temporal:default/order-1": the engine's, and the parts that identify the run for ever, such as
// its namespace and workflow ID, but no run ID and no attempt. Different parts have different
// names. A name longer than an intent allows ends with its SHA-256. An empty part gives the empty
// name, which every intent refuses: all runs would share it.
func WorkflowName(engine string, parts ...string) string {
	if engine == "" || len(parts) == 0 || slices.Contains(parts, "") {
		return ""
	}
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = url.PathEscape(part)
	}
	name := url.PathEscape(engine) + ":" + strings.Join(escaped, "/")
	const most = 255
	if len(name) > most { // '#' is in no other name: it is escaped
		end := fmt.Sprintf("#%x", sha256.Sum256([]byte(name)))
		name = name[:most-len(end)] + end
	}
	return name
}

// WorkflowParts returns the parts from which [WorkflowName] made a name for an engine. It returns
// nil for a name of another engine, and for one that ends with a hash: it does not have its parts.
func WorkflowParts(engine, name string) []string {
	_, escaped, _ := strings.Cut(name, ":")
	parts := strings.Split(escaped, "/")
	for i, part := range parts {
		parts[i], _ = url.PathUnescape(part) // a bad one is empty, and no name has that
	}
	if name == "" || WorkflowName(engine, parts...) != name {
		return nil
	}
	return parts
}
