package saga_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// damaged is a ledger in which the document of one saga is unreadable, and so cannot be written
// anew either.
type damaged struct {
	*ledger.Memory
	id    string
	reads int // reads of what is due, by one worker
}

func (d *damaged) damage(p ledger.Document) ledger.Document {
	if p.ID == d.id {
		p.Body = json.RawMessage(`{"form": 1, "st`)
	}
	return p
}

func (d *damaged) Document(ctx context.Context, tenant, kind, id string) (ledger.Document, error) {
	p, err := d.Memory.Document(ctx, tenant, kind, id)
	return d.damage(p), err
}

func (d *damaged) DueDocuments(ctx context.Context, kind string, limit int) ([]ledger.Document, time.Time, error) {
	d.reads++
	time.Sleep(time.Millisecond) // like a ledger over a network
	due, now, err := d.Memory.DueDocuments(ctx, kind, limit)
	for i := range due {
		due[i] = d.damage(due[i])
	}
	return due, now, err
}

// A saga whose document is damaged is always due. A worker reads it now and then, and carries the
// others out.
func TestWorkerBesideADamagedDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		other := four()
		other.ID, other.Steps = "saga-0", []saga.Step{{Name: "a", Intent: create("A-1", "")}}
		b.begin(other)
		b.begin(four())
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		store := &damaged{Memory: b.ledger, id: "saga-0"}
		if err := runWorker(ctx, saga.New(store, b.engine, &saga.Options{Parallel: 1})); err != nil {
			t.Fatal(err)
		}
		if store.reads > 10_000 {
			t.Errorf("the worker read %d times, without a pause", store.reads)
		}
		b.want(b.get(), saga.Done)
	})
}

// A reviewer's decision about a step lets its saga continue at once, for every decider, and
// meanwhile no text asks for a decision.
func TestASagaContinuesAtOnceAfterADecision(t *testing.T) {
	for name, c := range map[string]struct {
		risk intent.Risk
		word engine.Word
		want saga.State
	}{
		"approved": {intent.RiskApprove, engine.WordApprove, saga.Done},
		"denied":   {intent.RiskApprove, engine.WordDeny, saga.Undone},
		"accepted": {"", engine.WordAccept, saga.Done},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				first := create("A-1", intent.Compensable)
				if first.Risk = c.risk; c.risk == "" { // a foreign record is there
					if _, err := b.world.Seed(first.Key, ""); err != nil {
						t.Fatal(err)
					}
				}
				p := four()
				p.Steps = []saga.Step{{Name: "a", Intent: first}, {Name: "b", Intent: create("A-2", ""), After: []string{"a"}}}
				b.begin(p)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- runWorker(ctx, b.runner) }()
				time.Sleep(time.Hour) // it polls every five minutes by now
				s := b.get()
				if _, err := b.engine.Resolve(t.Context(), "acme", s.Steps[0].WriteID, engine.Decision{Word: c.word, By: "ada", Reason: "seen"}); err != nil {
					t.Fatal(err)
				}
				if now := b.get(); now.State == saga.Review || strings.Contains(now.Reason, "must decide") || strings.Contains(now.Reason, "waits for approval") {
					t.Errorf("after the decision: %s: %s", now.State, now.Reason)
				}
				time.Sleep(5 * time.Second)
				if got := b.get(); got.State != c.want {
					t.Errorf("five seconds after the decision: %s: %s", got.State, got.Reason)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
