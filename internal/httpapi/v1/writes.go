package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

const (
	// decisionWait is how long a decision waits for its result by default: a reviewer
	// wants to see it, and most destinations answer within it.
	decisionWait = 5 * time.Second
	// maxFound is the most writes that the ledger finds at once.
	maxFound = 200
)

func pathOfWrite(id ledger.ID) string { return "/v1/writes/" + pathPart(string(id)) }

// ended reports whether the outcome can change neither by itself nor by a reviewer.
func ended(s ledger.Status) bool {
	return s.Group() != ledger.Wait && s.Group() != ledger.NeedsReview
}

// applied reports to the caller that its preference was applied.
func (c *call) applied(r reply) reply {
	if c.waits {
		if r.header == nil {
			r.header = map[string]string{}
		}
		r.header[headerApplied] = "wait=" + strconv.Itoa(int(c.wait/time.Second))
		if c.final {
			r.header[headerApplied] += ", " + preferFinal
		}
	}
	return r
}

// finally is the final outcome, if the caller prefers it and has the time, or else the
// outcome so far.
func (c *call) finally(ctx context.Context, out engine.Outcome, left time.Duration) engine.Outcome {
	if !c.final || left <= 0 || out.RecheckUntil.IsZero() {
		return out
	}
	last, err := c.api.service.Final(ctx, c.who, out.ID, left)
	if err != nil {
		return out
	}
	last.Replayed = out.Replayed
	return last
}

func (c *call) submit(ctx context.Context) (reply, error) {
	key, err := idempotencyKey(c.r.Header)
	if err != nil {
		return reply{}, err
	}
	w, err := decodeIntent(c.body, c.who.Tenant, key)
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := c.awaited(ctx)
	defer cancel()
	r, err := c.declare(ctx, w, key != "", time.Now().Add(c.wait))
	return c.applied(r), err
}

// declare carries out one intent and waits for its outcome until then. keyed: the caller named it
// by an idempotency key, and gets a problem instead of the outcome of a repeat in progress.
func (c *call) declare(ctx context.Context, w intent.WriteIntent, keyed bool, until time.Time) (reply, error) {
	out, err := c.api.service.Submit(ctx, c.who, w, time.Until(until))
	if err != nil {
		return reply{}, err
	}
	out = c.finally(ctx, out, time.Until(until))
	if keyed && out.Replayed && out.Status == ledger.InProgress {
		return reply{}, &problemError{kind: inFlight, detail: out.Text, id: out.ID, known: knownNothing}
	}
	r := reply{status: http.StatusOK, body: out, header: map[string]string{"Location": pathOfWrite(out.ID)}}
	if !ended(out.Status) {
		r.status = http.StatusAccepted
	}
	if out.Status == ledger.InProgress {
		r.header["Retry-After"] = strconv.Itoa(soon)
	}
	if out.Replayed {
		r.header[headerReplayed] = "true"
	}
	return r, nil
}

func (c *call) outcome(ctx context.Context) (reply, error) {
	ctx, cancel := c.awaited(ctx)
	defer cancel()
	out, err := c.outcomeOf(ctx, c.id(), c.wait)
	return c.applied(reply{status: http.StatusOK, body: out}), err
}

// outcomeOf is the outcome of a write, after waiting for its end as the caller prefers.
func (c *call) outcomeOf(ctx context.Context, id ledger.ID, wait time.Duration) (engine.Outcome, error) {
	if c.final {
		return c.api.service.Final(ctx, c.who, id, wait)
	}
	return c.api.service.Outcome(ctx, c.who, id, wait)
}

func (c *call) account(ctx context.Context) (reply, error) {
	v, err := c.api.service.View(ctx, c.who, c.id())
	if err != nil {
		return reply{}, err
	}
	r := v.Record
	a := Account{Business: v.Business, Write: rowOf(r), Outcome: v.Outcome, Intent: r.Intent, Before: r.Before, Evidence: r.Evidence, Mismatches: r.Mismatches,
		Parent: r.Parent, Need: r.Need, Agreed: r.Agreed, Overdue: r.Overdue, Yielded: r.Yielded, Pruned: r.Tombstone, Choices: v.Choices}
	return reply{status: http.StatusOK, body: a}, nil
}

func (c *call) events(ctx context.Context) (reply, error) {
	v, err := c.api.service.View(ctx, c.who, c.id())
	if err != nil {
		return reply{}, err
	}
	life := Life{ID: v.Record.ID, Events: []Event{}}
	for _, e := range v.Events {
		life.Events = append(life.Events, eventOf(e))
	}
	return reply{status: http.StatusOK, body: life}, nil
}

// openStates are the states of writes that are not settled, by status.
var openStates = map[ledger.Status][]ledger.State{
	ledger.StatusReview: {ledger.Review}, ledger.StatusHeld: {ledger.Held}, ledger.StatusDelegated: {ledger.Delegated},
	ledger.InProgress: {ledger.Queued, ledger.Sending, ledger.Checking, ledger.Compensating},
}

// statuses are the statuses that can be requested. Unverified is none: the ledger finds by
// state, in which such a write is in progress.
var statuses = append(slices.Clone(service.Settlements), ledger.StatusReview, ledger.StatusHeld, ledger.StatusDelegated, ledger.InProgress)

func (c *call) list(ctx context.Context) (reply, error) {
	s, err := c.search()
	if err != nil {
		return reply{}, err
	}
	found, err := c.api.service.Find(ctx, c.who, s)
	if err != nil {
		return reply{}, err
	}
	page := Writes{Writes: []Row{}, Next: found.Next, Unread: unreadOf(found.Unread)}
	for _, r := range found.Records {
		row := rowOf(r)
		row.Matched = found.Matched[r.ID]
		page.Writes = append(page.Writes, row)
	}
	return reply{status: http.StatusOK, body: page}, nil
}

// search is the search that a query describes.
func (c *call) search() (ledger.Search, error) {
	q := c.query
	s := ledger.Search{Query: q.Get("q"), Destination: q.Get("destination"), Workflow: q.Get("workflow"), CorrelationID: q.Get("correlation_id"),
		IdempotencyKey: q.Get("idempotency_key"), KeyDigest: q.Get("key_digest"), Since: when(q, "since"), Until: when(q, "until"),
		Oldest: q.Get("oldest") == "true", After: q.Get("after"), Limit: min(number(q, "limit"), maxFound)}
	if _, err := (ledger.Search{Tenant: c.who.Tenant, Query: s.Query}).Checked(); err != nil {
		return s, badField("q", "has no character to search for; want some")
	}
	for _, word := range q["state"] {
		s.States = append(s.States, ledger.State(word))
	}
	for _, word := range q["status"] {
		if states := openStates[ledger.Status(word)]; states != nil {
			s.States = append(s.States, states...)
		} else {
			s.Settlements = append(s.Settlements, ledger.Status(word))
		}
	}
	if !q.Has("key") {
		if q.Has("kind") {
			return s, badField("kind", "is there without key; want both, or neither")
		}
		return s, nil
	}
	digest, err := c.keyDigest()
	s.KeyDigest = digest
	return s, err
}

// keyDigest is the fingerprint of the record that a query names by its business key.
func (c *call) keyDigest() (string, error) {
	q := c.query
	if !q.Has("destination") || !q.Has("kind") || q.Has("key_digest") {
		return "", badField("key", "is there without destination or kind, or beside key_digest; want it with the two, and alone")
	}
	text := []byte(q.Get("key"))
	if err := scan(text); err != nil {
		var bad *problemError
		if errors.As(err, &bad) {
			bad.field, bad.detail = "key", "of key: "+bad.detail
		}
		return "", err
	}
	var key intent.Fields
	if err := json.Unmarshal(text, &key); err != nil {
		return "", badField("key", "cannot be read; want a JSON object")
	}
	w := intent.WriteIntent{Tenant: c.who.Tenant, Destination: q.Get("destination"), Kind: q.Get("kind"), Key: key}
	digest, err := w.KeyDigest()
	if err != nil {
		return "", badField("key", "cannot be a business key: "+err.Error())
	}
	return digest, nil
}

// when and number read what was validated; zero if it is missing.
func when(q url.Values, name string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, q.Get(name))
	return t
}

func number(q url.Values, name string) int {
	n, _ := strconv.Atoi(q.Get(name))
	return n
}

// DecisionRequest is a reviewer's decision about a write.
type DecisionRequest struct {
	Word   engine.Word `json:"word" jsonschema:"accept, retry, compensate or abandon a write in review; approve or deny one that is held"`
	Reason string      `json:"reason" jsonschema:"why; it is kept and shown"`
	Force  bool        `json:"force,omitzero" jsonschema:"with retry: vouch that the effect is not there, where it cannot be shown"`
	Digest string      `json:"digest,omitzero" jsonschema:"the digest of the write that the reviewer read; another one is refused"`
	Seq    int64       `json:"seq,omitzero" jsonschema:"the seq of the write that the reviewer read; it is refused when something has happened since"`
}

// counted refuses a number that no event has, and that would mean nothing.
func (d DecisionRequest) counted() error {
	if d.Seq < 0 {
		return badField("/seq", "is below zero; want that of the write, or it left out")
	}
	return nil
}

// ReasonRequest is the reason of an action.
type ReasonRequest struct {
	Reason string `json:"reason" jsonschema:"why; it is kept and shown"`
}

func (c *call) decide(ctx context.Context) (reply, error) {
	var d DecisionRequest
	if err := decode(c.body, &d); err != nil {
		return reply{}, err
	}
	if err := cmp.Or(oneOf("/word", d.Word, service.Decisions), reasoned(d.Reason, maxReason), d.counted()); err != nil {
		return reply{}, err
	}
	wait := c.wait
	if !c.waits {
		wait = min(decisionWait, c.api.opts.MaxWait)
	}
	ctx, cancel := c.awaited(ctx)
	defer cancel()
	began := time.Now()
	out, err := c.api.service.Decide(ctx, c.who, c.id(), engine.Decision{Word: d.Word, Reason: d.Reason, Force: d.Force, Digest: d.Digest, Seq: d.Seq}, wait)
	if err != nil {
		return reply{}, err
	}
	return c.applied(reply{status: http.StatusOK, body: c.finally(ctx, c.now(ctx, out), c.wait-time.Since(began))}), nil
}

func (c *call) yield(ctx context.Context) (reply, error) {
	reason, err := c.reason(maxReason)
	if err != nil {
		return reply{}, err
	}
	if err := c.api.service.Yield(ctx, c.who, c.id(), reason); err != nil {
		return reply{}, err
	}
	out, err := c.api.service.Outcome(ctx, c.who, c.id(), 0)
	return reply{status: http.StatusOK, body: out}, err
}

// now is an outcome as the ledger has it, where the returned one may be older: the
// reviewer wants to see the effect of the decision.
func (c *call) now(ctx context.Context, out engine.Outcome) engine.Outcome {
	if ended(out.Status) {
		return out
	}
	if newer, err := c.api.service.Outcome(ctx, c.who, out.ID, 0); err == nil {
		return newer
	}
	return out
}
