package soak

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

var dispatching = flag.Bool("soak.dispatch", false, "have the workers of TestUnderFire hand their work over to a scheduler")

// surroundings starts a destination and returns its place and that of a new ledger.
func surroundings(t *testing.T, writes int) (env []string, log, book string) {
	t.Helper()
	dir := t.TempDir()
	log, book = filepath.Join(dir, "effects.log"), filepath.Join(dir, "ledger.db")
	d := start(t, "destination", "SOAK_LOG="+log)
	url, ok := d.line()
	if !ok {
		t.Fatal("the destination did not say where it is")
	}
	return []string{"SOAK_URL=" + url, "SOAK_LEDGER=" + book, fmt.Sprintf("SOAK_WRITES=%d", writes)}, log, book
}

// TestKilledAtRandomMoments kills the worker after a random number of its own steps, 200 times,
// while it carries out 2,000 writes, or a tenth of both with -short, and then compares with the
// destination.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Logf("again with -soak.seed=%d", *seed)
	chance := rand.New(rand.NewPCG(*seed, 1))
	writes, kills := 2000/need.OneIn(10), 200/need.OneIn(10)
	env, log, book := surroundings(t, writes)
	steps := writes * 3 / kills // so that the kills are spread over the writes
	killed, finished := 0, false
	for !finished {
		w := start(t, "worker", env...)
		left := -1
		if killed < kills {
			left = 1 + chance.IntN(steps)
		}
		for left != 0 {
			line, ok := w.line()
			if !ok {
				t.Fatal("the worker ended before it had finished")
			}
			if finished = line == "finished"; finished {
				break
			}
			left--
		}
		if finished {
			w.end(t)
			continue
		}
		w.kill(t)
		if killed++; killed%50 == 0 {
			t.Logf("%d kills", killed)
		}
	}
	t.Logf("%d kills, %d writes", killed, writes)
	if killed < kills {
		t.Errorf("only %d of %d kills came before the writes were done", killed, kills)
	}
	account(t, log, book, writes)
}

// account compares the destination's record with the ledger.
func account(t *testing.T, log, path string, writes int) {
	t.Helper()
	effects, err := orders.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{}
	for _, e := range effects {
		if e.Applied() && e.Op == orders.OpCreate {
			made[e.OrderID]++
		}
	}
	book, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	reviews, again := 0, 0
	for n := range writes {
		rec, err := book.Get(context.Background(), tenant, idOf(n))
		if err != nil {
			t.Errorf("%s: lost: %v", orderID(n), err)
			continue
		}
		if rec.Sends > 1 {
			again++
		}
		switch verified := rec.Settlement == ledger.Verified; {
		case verified && made[orderID(n)] != 1:
			t.Errorf("%s: verified, and the destination has made it %d times%s", orderID(n), made[orderID(n)], life(book, rec))
		case rec.State == ledger.Review && made[orderID(n)] <= 1 && rec.Reason != "":
			reviews++
			t.Logf("%s: review: %s", orderID(n), rec.Reason)
		case !verified:
			t.Errorf("%s: %s with %d effects%s", orderID(n), rec.Phase(), made[orderID(n)], life(book, rec))
		}
	}
	explained(t, book)
	t.Logf("%d effects for %d writes; %d sent more than once, each time with proof; %d in review", len(effects), writes, again, reviews)
}

// TestThreeProcessesOneSend submits one intent from 64 goroutines in each of
// three processes at once, and a different one under the same structural key
// from a fourth.
func TestThreeProcessesOneSend(t *testing.T) {
	env, log, _ := surroundings(t, 1)
	callers := []*child{start(t, "caller", env...), start(t, "caller", env...), start(t, "caller", env...)}
	began := 0
	for _, c := range callers {
		for _, out := range report(t, c).Outcomes {
			if out.Status != ledger.Verified || out.Ref == "" {
				t.Errorf("outcome %+v", out)
			}
			if !out.Replayed {
				began++
			}
		}
	}
	effects, err := orders.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	if got := orders.Summarize(effects, orderID(1)); got.SideEffectCalls != 1 || began != 1 {
		t.Errorf("%d effects, %d callers that began it, of 192; want one of each", got.SideEffectCalls, began)
	}
	other := report(t, start(t, "caller", append(env, "SOAK_AMOUNT=2099")...))
	mine, _ := order(1).Digest()
	if len(other.Outcomes) != 0 || len(other.Errors) != 64 || !strings.Contains(other.Errors[0], mine) {
		t.Errorf("another digest: %d outcomes, errors %.400q; want 64 refusals that show the recorded digest", len(other.Outcomes), other.Errors)
	}
}

type callerReport struct {
	Outcomes []engine.Outcome
	Errors   []string
}

func report(t *testing.T, c *child) callerReport {
	t.Helper()
	for {
		line, ok := c.line()
		if !ok {
			t.Fatal("the caller ended without a report")
		}
		text, found := strings.CutPrefix(line, "report ")
		if !found {
			continue
		}
		var r callerReport
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Outcomes)+len(r.Errors) != 64 {
			t.Fatalf("%d outcomes and %d errors of 64: %v", len(r.Outcomes), len(r.Errors), r.Errors)
		}
		return r
	}
}
