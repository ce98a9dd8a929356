package saga_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow/saga"
)

// damaged is a ledger in which the paper of one saga cannot be read, and so cannot
// be filed anew either.
type damaged struct {
	*ledger.Memory
	id     string
	looked int // for what is due, by one worker
}

func (d *damaged) damage(p ledger.Paper) ledger.Paper {
	if p.ID == d.id {
		p.Body = json.RawMessage(`{"form": 1, "st`)
	}
	return p
}

func (d *damaged) Paper(ctx context.Context, tenant, kind, id string) (ledger.Paper, error) {
	p, err := d.Memory.Paper(ctx, tenant, kind, id)
	return d.damage(p), err
}

func (d *damaged) DuePapers(ctx context.Context, kind string, limit int) ([]ledger.Paper, time.Time, error) {
	d.looked++
	time.Sleep(time.Millisecond) // as one that is asked over a network
	due, now, err := d.Memory.DuePapers(ctx, kind, limit)
	for i := range due {
		due[i] = d.damage(due[i])
	}
	return due, now, err
}

// A saga whose paper is damaged is due for ever. A worker looks at it now and
// then, and carries the others out.
func TestWorkerBesideADamagedPaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, simulated.Unique.Options(), nil)
		other := four()
		other.ID, other.Steps = "saga-0", []saga.Step{{Name: "a", Intent: create("A-1", "")}}
		b.begin(other)
		b.begin(four())
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		store := &damaged{Memory: b.ledger, id: "saga-0"}
		if err := saga.New(store, b.engine, &saga.Options{Parallel: 1}).Work(ctx); err != nil {
			t.Fatal(err)
		}
		if store.looked > 10_000 {
			t.Errorf("the worker looked %d times, without a pause", store.looked)
		}
		b.want(b.get(), saga.Done)
	})
}

// A person's decision about a step lets its saga continue at once, for every decider, and
// meanwhile no text says that a person must decide.
func TestASagaGoesOnAtOnceAfterADecision(t *testing.T) {
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
				b := newBench(t, simulated.Plain.Options(), nil)
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
				go func() { done <- b.runner.Work(ctx) }()
				time.Sleep(time.Hour) // it looks again every five minutes by now
				s := b.get()
				if _, err := b.engine.Resolve(t.Context(), "acme", s.Steps[0].WriteID, engine.Decision{Word: c.word, By: "ada", Reason: "seen"}); err != nil {
					t.Fatal(err)
				}
				if now := b.get(); now.State == saga.Review || strings.Contains(now.Reason, "must look") || strings.Contains(now.Reason, "waits for approval") {
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
