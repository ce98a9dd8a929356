package saga_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors/simulated"
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
