package command

import (
	"context"
	"errors"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/once"
)

// A reviewer ends a write that package once left in review, without its functions. The next call of the
// program returns what the reviewer decided, and calls none of them.
func TestReviewOfOnce(t *testing.T) {
	for word, want := range map[string]struct {
		status ledger.Status
		err    error
	}{"accept": {ledger.Accepted, nil}, "abandon": {ledger.Abandoned, once.ErrNotVerified}} {
		t.Run(word, func(t *testing.T) {
			p, calls, stored := newPlace(t, orders.Plain.Options()), 0, []once.Record(nil)
			do := func() (string, ledger.Status, error) {
				store, err := sqlite.Open(t.Context(), p.ledger, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := store.Close(); err != nil {
						t.Error(err)
					}
				}()
				out, err := once.Do(t.Context(), store, once.Write{
					Key: "charge:INV-7721", Expect: map[string]any{"cents": 1999},
					Send: func(_ context.Context, stamp string) error {
						calls++
						stored = []once.Record{{Stamp: stamp, Fields: map[string]any{"cents": 19}}}
						return nil
					},
					Find:   func(context.Context, string) ([]once.Record, error) { calls++; return stored, nil },
					Settle: connectors.Within(0),
				})
				return string(out.ID), out.Status, err
			}
			id, status, err := do()
			if status != ledger.StatusReview || !errors.Is(err, once.ErrNotVerified) {
				t.Fatalf("%s, %v; want review", status, err)
			}
			says(t, p.want(exitVerified, p.run("--tenant", "default", "review")), id[:11], "charge:INV-7721")
			decide := []string{"--tenant", "default", "review", id, "retry", "--by", "ada", "--reason", "the bank has 19 cents"}
			p.want(exitInvalid, p.run(decide...)) // only the program has the functions
			decide[4] = word
			p.want(exitUnproven, p.run(decide...))
			before := calls
			if _, status, err = do(); status != want.status || !errors.Is(err, want.err) || calls != before {
				t.Errorf("%s, %v after %d more calls; want %s after none", status, err, calls-before, want.status)
			}
		})
	}
}
