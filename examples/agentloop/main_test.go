package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest"
)

const base = "https://payments.example/v1" // no network is used

// TestNaive: the naive loop charges twice. It is shown, and not wanted.
func TestNaive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		twice := map[string]bool{}
		readbacktest.Replay(t, readbacktest.Plan{}, func(s *readbacktest.Story) {
			b := &bank{}
			proxy := s.Proxy(b, readbacktest.Options{})
			_ = s.Run(func(ctx context.Context, run *readbacktest.Run) error {
				return naive(ctx, run.Transport(proxy.Transport()), base, invoice)
			})
			twice[s.String()] = b.Charges(invoice.Invoice) > 1
		})
		for _, story := range []string{
			"lost-answer on write 1",
			"late-commit on write 1",
			`life 1 killed at point 2, "after POST /v1/charges"`,
		} {
			if !twice[story] {
				t.Errorf("%s: the naive loop does not charge twice; of what is this an example?", story)
			}
		}
	})
}

// TestWrapped: the same loop through readback charges once, whatever the network does and
// wherever it is killed. A duplicate that the network itself delivers is found and goes to a
// reviewer.
func TestWrapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readbacktest.Replay(t, readbacktest.Plan{}, func(s *readbacktest.Story) {
			b := &bank{}
			proxy := s.Proxy(b, readbacktest.Options{})
			book := ledger.NewMemory() // outlives the loop, as a file would
			var out engine.Outcome
			err := s.Run(func(ctx context.Context, run *readbacktest.Run) (err error) {
				out, err = wrapped(ctx, run.Transport(proxy.Transport()), base, invoice, mortal{book, run})
				return err
			})
			if err != nil {
				s.Error(err)
			}
			charges, want := 1, ledger.Verified
			if v, _ := s.Fault(); v == readbacktest.Duplicate {
				charges, want = 2, ledger.StatusReview
			}
			readbacktest.Effects(s, b.Charges, invoice.Invoice).Exactly(charges)
			if out.Status != want {
				s.Errorf("the outcome is %s (%s), want %s", out.Status, out.Text, want)
			}
		})
	})
}

// mortal is the ledger as used by one run of the loop: a dead process writes nothing.
type mortal struct {
	ledger.Ledger
	run *readbacktest.Run
}

// Reserve implements [ledger.Ledger].
func (m mortal) Reserve(ctx context.Context, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	err = m.run.Do("reserve", func() (err error) {
		rec, fresh, err = m.Ledger.Reserve(ctx, r)
		return err
	})
	return rec, fresh, err
}

// Append implements [ledger.Ledger].
func (m mortal) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	err = m.run.Do("append", func() (err error) {
		rec, err = m.Ledger.Append(ctx, id, fence, events...)
		return err
	})
	return rec, err
}

// TestRun: the program reports so too.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the bank has 2 charge(s)", "verified, sends 1", "the bank has 1 charge(s)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, out.String())
		}
	}
}
