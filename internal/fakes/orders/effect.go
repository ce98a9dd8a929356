package orders

import (
	"encoding/json"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// Op is what a request wants, and what an effect did.
type Op = fault.Op

// The operations.
const (
	OpCreate Op = "create"
	OpUpdate Op = "update"
	OpUpsert Op = "upsert" // of requests only: its effect is a create or an update
	OpDelete Op = "delete"
	OpRead   Op = "read" // of requests only

	// OpPhantom is the log entry of a success answer to which nothing was applied. It is no
	// effect; it is stored since it uses up the key.
	OpPhantom Op = "phantom"
)

// Origin is the actor that made an effect.
type Origin = fault.Origin

// The origins.
const (
	ByRequest = fault.ByRequest
	ByItself  = fault.ByItself // a duplicate or a rollback
	ByOther   = fault.ByOther  // Seed, Edit, Change or Remove
)

// The fields that the destination knows.
const (
	fieldOrderID = "order_id"     // string, required, never changes
	fieldAmount  = "amount_cents" // whole number, not negative
	fieldStatus  = "status"       // string, "open" unless given
	fieldUpdated = "updated_at"   // set by the destination at every change
)

// Order is one record as the destination keeps it. Its fields are whatever was
// written, and "status" and "updated_at".
type Order struct {
	ID      string        `json:"id"`
	Version int64         `json:"version,omitempty"`
	Stamp   string        `json:"stamp,omitempty"`
	Fields  intent.Fields `json:"order"`
}

// AmountCents is the order's amount, 0 when it has none.
func (o *Order) AmountCents() int64 {
	if o == nil {
		return 0
	}
	n, _ := o.Fields[fieldAmount].(json.Number)
	cents, _ := n.Int64()
	return cents
}

// Effect is one change of the destination's state. It is what the log holds, a
// line each.
type Effect struct {
	Seq     int64     `json:"seq"` // from 1, without gaps
	At      time.Time `json:"at"`
	By      Origin    `json:"by"`
	Op      Op        `json:"op"`
	ID      string    `json:"id"` // the destination's own id of the record
	OrderID string    `json:"order_id"`
	Stamp   string    `json:"stamp,omitempty"` // as the request had it, even where it is not kept
	// Request is the number of the request that caused it, 0 if none did.
	Request int64 `json:"request,omitempty"`
	// IdempotencyKey and Fingerprint are set where keys are honoured.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	Fingerprint    string `json:"fingerprint,omitempty"`
	// Status is the status of the answer, if sent.
	Status int `json:"status,omitempty"`
	// Faults are the faults that met the request.
	Faults []FaultKind `json:"vices,omitempty"`
	Before *Order      `json:"before,omitempty"` // nil for a create
	After  *Order      `json:"after,omitempty"`  // nil for a delete
}

// Applied reports whether the effect changed anything. Only a phantom did not.
func (e Effect) Applied() bool { return e.Op != OpPhantom }

// Summary is the account of a destination.
type Summary struct {
	// SideEffectCalls counts the effects that requests had.
	SideEffectCalls int `json:"side_effect_calls"`
	// BalanceCents is the sum of the amounts of all orders that are there.
	BalanceCents int64 `json:"balance_cents"`
	// Orders counts the records that are there.
	Orders int `json:"orders"`
	// Duplicates counts the records beyond the first under each order_id.
	Duplicates int `json:"duplicates"`
	// Lost are those of the expected order ids under which there is none.
	Lost []string `json:"lost,omitempty"`
}

// Summarize makes the account from effects in their order, as [ReadLog] and
// [World.Effects] give them. expected are the order ids that should be there.
func Summarize(effects []Effect, expected ...string) Summary {
	var s Summary
	live := map[string]*Order{}
	for _, e := range effects {
		if !e.Applied() {
			continue
		}
		if e.By == ByRequest {
			s.SideEffectCalls++
		}
		if e.After == nil {
			delete(live, e.ID)
		} else {
			live[e.ID] = e.After
		}
	}
	count := map[string]int{}
	for _, o := range live {
		id, _ := o.Fields[fieldOrderID].(string)
		count[id]++
		s.BalanceCents += o.AmountCents()
	}
	s.Orders = len(live)
	s.Duplicates = len(live) - len(count)
	for _, id := range expected {
		if count[id] == 0 {
			s.Lost = append(s.Lost, id)
		}
	}
	return s
}
