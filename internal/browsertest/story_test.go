package browsertest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// shop is the tenant of the story: a shop whose helpers refund, order, answer
// tickets and keep the customers' data.
const shop = "nordlicht"

// customers are whom it is about.
var customers = []string{"Ada Brandt", "Jonas Weber", "Mila Novak", "Leon Fischer", "Sofia Rossi", "Emil Larsen", "Nora Lindqvist"}

// routine is the n-th write of an ordinary day.
func routine(n int) intent.WriteIntent {
	customer := customers[n%len(customers)]
	var w intent.WriteIntent
	switch n % 5 {
	case 0, 1:
		w = order("crm", "update_contact", fmt.Sprintf("C-%d", 20418+n), intent.Fields{"customer": customer, "plan": "pro"})
	case 2:
		w = order("tickets", "open_ticket", fmt.Sprintf("T-%d", 5521+n), intent.Fields{"customer": customer, "subject": "Where is my parcel?", "priority": "normal"})
	case 3:
		w = order("billing", "issue_invoice", fmt.Sprintf("INV-%d", 7700+n), intent.Fields{"customer": customer, "amount_cents": 1900 + 37*n, "currency": "EUR"})
	default:
		w = order("orders", "place_order", fmt.Sprintf("A-%d", 1042+n), intent.Fields{"customer": customer, "amount_cents": 4900 + 113*n, "currency": "EUR"})
	}
	w.Workflow, w.Step = fmt.Sprintf("support-%d", 3100+n/3), fmt.Sprintf("turn-%d", n%3+1)
	return w
}

// past is an engine on the ledger before the server has it, and its clock.
type past struct {
	s      *site
	engine *engine.Engine
	behind atomic.Int64
	ctx    context.Context
}

// livePast writes the day before into the ledger: a server cannot be asked to have
// been there.
func (s *site) livePast() (err error) {
	p := &past{s: s, ctx: engine.As(context.Background(), engine.Principal{Name: "support-bot", Role: engine.RoleAgent})}
	book, err := sqlite.Open(p.ctx, filepath.Join(s.dir, "readback.db"), &sqlite.Options{Now: func() time.Time { return time.Now().Add(-time.Duration(p.behind.Load())) }})
	if err != nil {
		return err
	}
	defer func() {
		p.engine.Close()
		if closed := book.Close(); err == nil {
			err = closed
		}
	}()
	var reg connectors.Registry
	for _, name := range []string{"billing", "crm", "orders", "tickets"} {
		o := s.destinations[name].Options()
		o.Lags = nil // yesterday nothing lagged, and some answers were lost
		o.Seed, o.Faults = 7, []orders.Fault{{Kind: orders.LostAnswer, Chance: 0.07}}
		w, err := orders.New(o)
		if err != nil {
			return err
		}
		if err := reg.Register(name, w.Destination()); err != nil {
			return err
		}
	}
	p.engine = engine.New(book, &reg, nil)
	n := 0
	for slot := range 48 {
		p.behind.Store(int64(24*time.Hour - time.Duration(slot)*30*time.Minute))
		for range 2 + int(9*(1-math.Cos(float64(slot+6)/48*2*math.Pi))) {
			if n++; n%11 == 0 {
				err = p.asked(n)
			} else {
				_, err = p.engine.Do(p.ctx, p.shopped(routine(n+1000)))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *past) shopped(w intent.WriteIntent) intent.WriteIntent {
	w.Tenant = shop
	return w
}

// asked is a refund that somebody was asked about.
func (p *past) asked(n int) error {
	w := p.shopped(order("billing", "refund", fmt.Sprintf("R-%d", 9000+n), intent.Fields{"customer": customers[n%len(customers)], "amount_cents": 1200 + 41*n, "currency": "EUR"}))
	w.Risk = intent.RiskApprove
	out, err := p.engine.Do(p.ctx, w)
	if err != nil {
		return err
	}
	word := engine.WordApprove
	if n%33 == 0 {
		word = engine.WordDeny
	}
	_, err = p.engine.Resolve(engine.As(p.ctx, engine.Principal{Name: "ben", Role: engine.RoleReviewer}), shop, out.ID, engine.Decision{Word: word, By: "ben", Reason: "looked at the customer's file"})
	return err
}

// story makes what people see: writes that went well, and those that wait for a
// person. It returns the write whose page is shown.
func story(t *testing.T, s *site) engine.Outcome {
	t.Helper()
	helper := &agent{t, s, shop, s.token(t, shop, "agent", "support-bot")}
	shop := s.destinations["orders"]
	const id = "A-1042"
	shop.fault(t, orders.Fault{Kind: orders.DroppedField, Key: id, Field: "delivery_note"})
	shop.fault(t, orders.Fault{Kind: orders.NormalisedField, Key: id, Field: "customer", How: "upper"})
	w := order("orders", "place_order", id, intent.Fields{"customer": "Ada Brandt", "amount_cents": 18950, "currency": "EUR", "delivery_note": "leave it with the neighbour at number 7", "gift": nil})
	w.Workflow, w.CorrelationID = "support-3207", "chat-88213"
	shown := helper.settle(w, ledger.StatusReview)

	shop.fault(t, orders.Fault{Kind: orders.DuplicateByOthers, Key: "A-1057"})
	double := order("orders", "place_order", "A-1057", intent.Fields{"customer": "Emil Larsen", "amount_cents": 7400, "currency": "EUR"})
	double.Workflow = "support-3211"
	helper.settle(double, ledger.StatusReview)
	for i, cents := range []int{249000, 4900} {
		refund := order("billing", "refund", fmt.Sprintf("R-%d", 7721+i), intent.Fields{"customer": customers[2+i], "amount_cents": cents, "currency": "EUR"})
		refund.Workflow, refund.Risk = fmt.Sprintf("refunds-%d", 512+i), intent.RiskApprove
		helper.settle(refund, ledger.StatusHeld)
	}
	for n := range 30 {
		w := routine(n)
		if n%5 == 4 {
			continue // that order stands above
		}
		helper.settle(w, ledger.Verified)
		if n%6 == 0 {
			helper.settle(w, ledger.Verified) // an orchestrator that replays
		}
	}
	var made struct {
		ID string `json:"workflow_id"`
	}
	helper.must(http.MethodPost, "/api/v1/workflows", map[string]any{"workflow_name": "supplier payments", "source": "external"}, &made)
	helper.must(http.MethodPost, "/api/v1/workflows/"+made.ID+"/steps/pay/gate", map[string]any{"step_name": "pay invoice 2214", "step_type": "tool_call",
		"step_input": map[string]any{"amount": "12,480.00 EUR", "to": "Papierwerk GmbH"}, "tool_context": map[string]any{"tool_name": "wire_transfer"}}, nil)
	return shown
}
