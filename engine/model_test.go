package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// The model knows, for each logical write, what was asked for first and the
// outcome that was told last. Everything else it reads off the destination's
// own account, never off the ledger. Histories are drawn whole, then run in a
// bubble of fake time: submissions through two processes, with the same and
// with another digest, faults, time that passes, deaths of processes, persons
// who decide, and other people's records.

// move is one step of a history.
type move struct {
	Kind   string
	Write  int // which logical write
	Engine int // which process
	Vice   simulated.Vice
	Times  int
	Pass   time.Duration
	Word   engine.Word
}

const modelWrites, modelEngines = 3, 2

var modelVices = []simulated.Vice{
	simulated.LostAnswer, simulated.DroppedBefore, simulated.BadGateway, simulated.LateCommit, simulated.PhantomSuccess,
	simulated.UnreadableRead, simulated.Unreachable, simulated.Throttled, simulated.Refused,
}

func drawMove(t *rapid.T) move {
	return move{
		Kind:   rapid.SampledFrom([]string{"submit", "submit", "submit", "other", "fault", "fault", "pass", "die", "decide", "seed"}).Draw(t, "kind"),
		Write:  rapid.IntRange(0, modelWrites-1).Draw(t, "write"),
		Engine: rapid.IntRange(0, modelEngines-1).Draw(t, "engine"),
		Vice:   rapid.SampledFrom(modelVices).Draw(t, "vice"),
		Times:  rapid.IntRange(1, 3).Draw(t, "times"),
		Pass:   time.Duration(rapid.IntRange(1, 7200).Draw(t, "seconds")) * time.Second,
		Word:   rapid.SampledFrom([]engine.Word{engine.WordAccept, engine.WordRetry, engine.WordAbandon}).Draw(t, "word"),
	}
}

// mortal is the way of one process to its ledger and its destination. When it
// dies, nothing that it does has an effect any more.
type mortal struct {
	ledger.Ledger
	connectors.Connector
	dead atomic.Bool
}

var errDead = errors.New("this process is dead")

func (m *mortal) Reserve(ctx context.Context, r ledger.Reservation) (ledger.Record, bool, error) {
	if m.dead.Load() {
		return ledger.Record{}, false, errDead
	}
	return m.Ledger.Reserve(ctx, r)
}

func (m *mortal) Claim(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	return m.Ledger.Claim(ctx, c)
}

func (m *mortal) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	if m.dead.Load() {
		return ledger.Record{}, errDead
	}
	return m.Ledger.Append(ctx, id, fence, events...)
}

func (m *mortal) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if m.dead.Load() {
		return connectors.Receipt{}, errDead
	}
	return m.Connector.Write(ctx, r)
}

// history is one run of the model beside the engine.
type history struct {
	*bench
	class   simulated.Class
	lives   [modelEngines]*mortal
	engines [modelEngines]*engine.Engine
	first   [modelWrites]string // the digest that was recorded first, "" for none
	told    [modelWrites]engine.Status
	idle    time.Duration
	problem error
}

func (h *history) fail(format string, args ...any) {
	if h.problem == nil {
		h.problem = fmt.Errorf(format, args...)
	}
}

func (h *history) intent(n int) intent.WriteIntent { return order(fmt.Sprint("M-", n), intent.Create) }
func (h *history) id(n int) ledger.ID              { return ledger.IDOf(h.intent(n).StructuralKey()) }

// ours counts the effects that requests of this write had, by its stamp.
func (h *history) ours(n int) int {
	made := 0
	for _, e := range h.world.Effects() {
		if e.By == simulated.ByRequest && e.Applied() && e.Stamp == h.intent(n).Stamp() {
			made++
		}
	}
	return made
}

// born gives a process a new life.
func (h *history) born(n int) {
	d := h.world.Destination()
	h.lives[n] = &mortal{Ledger: h.ledger, Connector: d.Connector}
	d.Connector = h.lives[n]
	var reg connectors.Registry
	if err := reg.Register("orders", d); err != nil {
		h.t.Fatal(err)
	}
	h.engines[n] = engine.New(h.lives[n], &reg, nil)
}

func (h *history) step(m move) {
	switch m.Kind {
	case "submit":
		h.submit(m, h.intent(m.Write))
	case "other":
		w := h.intent(m.Write)
		w.Expect = intent.Fields{"amount_cents": jsonNumber(1), "currency": "EUR"}
		h.submit(m, w)
	case "fault":
		h.set(simulated.Fault{Vice: m.Vice, Times: m.Times})
	case "pass":
		h.pass(m.Pass)
	case "die":
		go func() { // in the middle of a submission, if there is one
			_, _ = h.engines[m.Engine].Do(context.Background(), h.intent(m.Write))
		}()
		synctest.Wait()
		h.lives[m.Engine].dead.Store(true)
		h.engines[m.Engine].Close()
		h.born(m.Engine)
		if rec, err := h.ledger.Get(context.Background(), "acme", h.id(m.Write)); err == nil && h.first[m.Write] == "" {
			h.first[m.Write] = rec.Digest // nobody was told whether it came that far
		}
	case "decide":
		_, err := h.engines[m.Engine].Resolve(context.Background(), "acme", h.id(m.Write), engine.Decision{Word: m.Word, By: "ada", Reason: "model"})
		if err == nil {
			h.told[m.Write] = "" // a person may change the outcome
		}
	case "seed":
		if len(h.world.Records(fmt.Sprint("M-", m.Write))) == 0 && h.first[m.Write] == "" {
			_, _ = h.world.Seed(intent.Fields{"order_id": fmt.Sprint("M-", m.Write), "amount_cents": jsonNumber(5)}, "")
		}
	}
}

// submit asks for a write and holds the answer against the model.
func (h *history) submit(m move, w intent.WriteIntent) {
	ctx, cancel := context.WithTimeout(context.Background(), m.Pass)
	defer cancel()
	digest, _ := w.Digest()
	before := h.ours(m.Write)
	out, err := h.engines[m.Engine].Do(ctx, w)
	if first := h.first[m.Write]; first != "" && first != digest {
		if !errors.Is(err, ledger.ErrDigestMismatch) || h.ours(m.Write) != before {
			h.fail("another digest under the key of write %d: %v", m.Write, err)
		}
		return
	}
	if err != nil {
		h.fail("write %d: %v", m.Write, err)
		return
	}
	h.first[m.Write] = digest
	if out.Status == engine.StatusVerified && h.ours(m.Write) != 1 {
		h.fail("write %d is told verified, and the destination made it %d times", m.Write, h.ours(m.Write))
	}
	told := h.told[m.Write]
	final := told == engine.StatusVerified || told == engine.StatusNotApplied || told == engine.StatusAccepted || told == engine.StatusAbandoned
	if final && out.Status != told && out.Status != engine.StatusReview {
		h.fail("write %d was told %s and is told %s now", m.Write, told, out.Status)
	}
	h.told[m.Write] = out.Status
}

// pass lets time go by, with both processes at work.
func (h *history) pass(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	for _, e := range h.engines[1:] {
		go func() { _ = e.Work(ctx, &engine.WorkOptions{Idle: h.idle}) }()
	}
	_ = h.engines[0].Work(ctx, &engine.WorkOptions{Idle: h.idle})
}

// end lets everything settle and asks the destination what happened.
func (h *history) end() {
	h.world.Clear()
	h.pass(time.Hour)
	h.idle = 10 * time.Minute
	h.pass(100 * time.Hour)
	for n := range modelWrites {
		rec, err := h.ledger.Get(context.Background(), "acme", h.id(n))
		switch {
		case errors.Is(err, ledger.ErrNotFound) && h.ours(n) == 0:
			continue // its process died before it was recorded
		case err != nil:
			h.fail("write %d has %d effects: %v", n, h.ours(n), err)
			continue
		}
		made := h.ours(n)
		switch {
		case rec.State != ledger.Settled && rec.State != ledger.Review:
			h.fail("write %d is %s for ever%s", n, rec.Phase(), h.life(rec.ID))
		case made > 1:
			h.fail("write %d was made %d times%s", n, made, h.life(rec.ID))
		case rec.Settlement == ledger.Verified && made != 1, rec.Settlement == ledger.NotApplied && made != 0:
			h.fail("write %d is %s, and the destination made it %d times%s", n, rec.Phase(), made, h.life(rec.ID))
		case rec.State == ledger.Review && rec.Reason == "":
			h.fail("write %d is in review without a reason%s", n, h.life(rec.ID))
		}
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		class := rapid.SampledFrom(simulated.Classes()).Draw(rt, "class")
		moves := rapid.SliceOfN(rapid.Custom(drawMove), 1, 20).Draw(rt, "moves")
		var problem error
		synctest.Test(t, func(t *testing.T) {
			h := &history{bench: newBench(t, class.Options(), nil), class: class, idle: 10 * time.Second}
			for n := range modelEngines {
				h.born(n)
			}
			for _, m := range moves {
				h.step(m)
			}
			h.end()
			for _, e := range h.engines {
				e.Close()
			}
			problem = h.problem
		})
		if problem != nil {
			rt.Fatal(problem)
		}
	})
}
