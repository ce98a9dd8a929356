package orders

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/intent"
)

// write is one requested write.
type write struct {
	op          Op
	by          Origin
	id          string // for update and delete
	orderID     string // for upsert
	fields      intent.Fields
	unset       []string
	stamp       string
	match       string // If-Match, without quotes
	noneMatch   bool   // If-None-Match: *
	key         string // Idempotency-Key
	fingerprint string
	request     int64
}

// usedKey is what is known of an idempotency key.
type usedKey struct {
	at          time.Time
	fingerprint string
	inFlight    bool
	answer      answer
}

// write serves one write. ctx is the client's patience.
func (w *World) write(ctx context.Context, q write) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	q.by = ByRequest
	var met hits
	q.request, met = w.arrive(Call{Op: q.op, OrderID: w.subject(q), Stamp: q.stamp, IdempotencyKey: q.key})
	if w.options.Window <= 0 {
		q.key = ""
	}
	if met.has(DroppedBefore) {
		return answer{cut: true}
	}
	if a, ok := refused(met); ok {
		return a
	}
	if a, ok := w.recall(q); ok {
		return lose(a, met)
	}
	if f, ok := met.get(LateCommit); ok {
		return w.late(ctx, q, met, delay(f))
	}
	return w.commit(q, met)
}

// subject is the order_id of a write, if it is known.
func (w *World) subject(q write) string {
	if q.orderID != "" {
		return q.orderID
	}
	if id, ok := q.fields[fieldOrderID].(string); ok {
		return id
	}
	if r := w.rows[q.id]; r != nil {
		id, _ := r.versions[0].Value.Fields[fieldOrderID].(string)
		return id
	}
	return ""
}

func refused(met hits) (answer, bool) {
	if f, ok := met.get(Throttled); ok {
		a := problem(http.StatusTooManyRequests, "throttled", "come back later")
		a.header = http.Header{"Retry-After": {strconv.FormatFloat(delay(f).Seconds(), 'f', -1, 64)}}
		return a, true
	}
	if f, ok := met.get(Refused); ok {
		status, _ := strconv.Atoi(f.How)
		if status == 0 {
			status = http.StatusUnprocessableEntity
		}
		a := problem(status, "refused", "the destination does not want this")
		a.header = http.Header{"Request-Id": {"req_refused"}}
		return a, true
	}
	return answer{}, false
}

// recall answers a request whose key was used already.
func (w *World) recall(q write) (answer, bool) {
	if q.key == "" {
		return answer{}, false
	}
	k := w.keys[q.key]
	switch {
	case k == nil:
		return answer{}, false
	case k.inFlight:
		return problem(http.StatusConflict, "in_flight", "a request with this Idempotency-Key is being worked on"), true
	case time.Since(k.at) >= w.options.Window:
		delete(w.keys, q.key)
		return answer{}, false
	case k.fingerprint != q.fingerprint:
		return problem(http.StatusUnprocessableEntity, "key_reused", "this Idempotency-Key was used for another request"), true
	}
	a := k.answer
	a.header = http.Header{"Idempotent-Replayed": {"true"}}
	return a, true
}

// late waits until the client has gone and commits after that. It is called with the lock held
// and releases it meanwhile.
func (w *World) late(ctx context.Context, q write, met hits, delay time.Duration) answer {
	if q.key != "" {
		w.keys[q.key] = &usedKey{at: time.Now(), fingerprint: q.fingerprint, inFlight: true}
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	time.AfterFunc(delay, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if q.key != "" {
			delete(w.keys, q.key)
		}
		w.commit(q, met)
	})
	return answer{cut: true}
}

// commit applies a write and returns the answer that the faults leave of it.
func (w *World) commit(q write, met hits) answer {
	return lose(w.perform(q, met), met)
}

// lose returns what is left of an answer in transit.
func lose(a answer, met hits) answer {
	switch {
	case met.has(LostAnswer):
		return answer{cut: true}
	case met.has(BadGateway) && a.ok():
		return problem(http.StatusBadGateway, "bad_gateway", "the upstream did not answer")
	}
	return a
}

// perform applies a write, or seems to, and returns the honest answer to it.
func (w *World) perform(q write, met hits) answer {
	e, a := w.plan(q, met)
	if !a.ok() {
		return a
	}
	e.By, e.Request, e.Faults, e.Stamp = q.by, q.request, met.kinds(), q.stamp
	e.IdempotencyKey, e.Status = q.key, a.status
	if q.key != "" {
		e.Fingerprint = q.fingerprint
	}
	if met.has(PhantomSuccess) {
		e.Op = OpPhantom
	}
	if err := w.apply(e); err != nil {
		return problem(http.StatusInsufficientStorage, "log_failed", err.Error())
	}
	// The answer contains what was requested, whatever was stored.
	if e.After != nil {
		shown := *e.After
		shown.Fields = overlay(e.After.Fields, q.fields)
		a.body = w.view(shown)
	}
	if k := w.keys[q.key]; k != nil {
		k.answer = a
	}
	if e.Applied() {
		w.afterwards(e, met)
	}
	return a
}

// plan computes the effect of a write. A success answer has only the status.
func (w *World) plan(q write, met hits) (Effect, answer) {
	var before *Order
	switch q.op {
	case OpUpdate, OpDelete:
		r := w.rows[q.id]
		if r == nil || r.now() == nil {
			return Effect{}, problem(http.StatusNotFound, "not_found", "there is no such order")
		}
		before = r.now()
	case OpUpsert:
		if !w.options.Unique {
			return Effect{}, problem(http.StatusMethodNotAllowed, "no_upsert", "order_id is not unique here")
		}
		q.fields = maps.Clone(q.fields)
		if q.fields == nil {
			q.fields = intent.Fields{}
		}
		q.fields[fieldOrderID] = q.orderID
	}
	if q.op == OpCreate || q.op == OpUpsert {
		id, _ := q.fields[fieldOrderID].(string)
		if found := w.under(id, (*row).now); w.options.Unique && len(found) > 0 {
			before = &found[0]
		}
	}
	if a, bad := w.refuse(q, before); bad {
		return Effect{}, a
	}
	e := Effect{Op: OpUpdate, Before: before}
	switch {
	case q.op == OpDelete:
		e.Op, e.ID, e.OrderID = OpDelete, before.ID, before.Fields[fieldOrderID].(string)
		return e, answer{status: http.StatusNoContent}
	case before == nil:
		e.Op = OpCreate
	}
	e.After = w.next(before, q, met)
	e.ID, e.OrderID = e.After.ID, e.After.Fields[fieldOrderID].(string)
	if e.Op == OpCreate {
		return e, answer{status: http.StatusCreated}
	}
	return e, answer{status: http.StatusOK}
}

// refuse returns why a write is not applied.
func (w *World) refuse(q write, before *Order) (answer, bool) {
	if q.op == OpCreate && before != nil {
		return problem(http.StatusConflict, "exists", "there is an order with this order_id"), true
	}
	if w.options.Versions {
		if q.match != "" && (before == nil || q.match != strconv.FormatInt(before.Version, 10)) {
			return problem(http.StatusPreconditionFailed, "changed", "the order is no longer as in If-Match"), true
		}
		if q.noneMatch && before != nil {
			return problem(http.StatusPreconditionFailed, "exists", "there is an order with this order_id"), true
		}
	}
	if q.op == OpDelete {
		return answer{}, false
	}
	if err := checkFields(q, before); err != nil {
		return problem(http.StatusUnprocessableEntity, "invalid", err.Error()), true
	}
	return answer{}, false
}

func checkFields(q write, before *Order) error {
	if len(q.fields) > maxFields {
		return fmt.Errorf("an order has at most %d fields", maxFields)
	}
	id, given := q.fields[fieldOrderID]
	s, _ := id.(string)
	switch {
	case before == nil && (s == "" || len(s) > maxOrderID):
		return fmt.Errorf("%s must be a string of 1 to %d bytes", fieldOrderID, maxOrderID)
	case before != nil && given && id != before.Fields[fieldOrderID]:
		return fmt.Errorf("%s cannot be changed", fieldOrderID)
	}
	for _, path := range q.unset {
		p := intent.Pointer(path)
		if !p.IsValid() || p == "" || p.Contains("/"+fieldOrderID) || p.Contains("/"+fieldUpdated) {
			return fmt.Errorf("unset %q: want a JSON Pointer to a field other than %s and %s", path, fieldOrderID, fieldUpdated)
		}
	}
	if v, ok := q.fields[fieldAmount]; ok && v != nil {
		n, _ := v.(json.Number)
		if cents, err := n.Int64(); err != nil || cents < 0 {
			return fmt.Errorf("%s must be a whole number, not negative", fieldAmount)
		}
	}
	return nil
}

// next is the order after a create or an update.
func (w *World) next(before *Order, q write, met hits) *Order {
	o := Order{ID: "", Version: 1, Fields: intent.Fields{fieldStatus: "open"}}
	if before == nil {
		o.ID = w.newID()
	} else {
		o = *before
		o.Version++
	}
	if w.options.Stamps && q.stamp != "" && (before == nil || w.options.StampUpdates) {
		o.Stamp = q.stamp
	}
	o.Fields = overlay(o.Fields, alter(q.fields, met))
	for _, path := range q.unset {
		o.Fields = without(o.Fields, slices.Collect(intent.Pointer(path).Tokens()))
	}
	o.Fields[fieldUpdated] = time.Now().UTC().Format(time.RFC3339Nano)
	return &o
}
