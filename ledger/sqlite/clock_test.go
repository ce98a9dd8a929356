package sqlite_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// The clock of a ledger never runs backwards, not even between processes that open it one after
// another.
func TestClockIsClamped(t *testing.T) {
	c, path := newClock(), file(t)
	first, err := sqlite.Open(context.Background(), path, &sqlite.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	rec := reserve(t, first, "w1")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c.move(-time.Minute) // as far as is tolerated
	l := open(t, path, &sqlite.Options{Now: c.now})
	got, err := l.Get(context.Background(), rec.Tenant, rec.ID)
	if err != nil || !got.Now.Equal(rec.Now) {
		t.Errorf("get: now %s, error %v; want %s", got.Now, err, rec.Now)
	}
	list, err := l.List(context.Background(), ledger.Filter{Tenant: rec.Tenant})
	if err != nil || !list[0].Now.Equal(rec.Now) {
		t.Errorf("list: now %s, error %v; want %s", list[0].Now, err, rec.Now)
	}
	next, err := l.Append(context.Background(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent})
	if err != nil || !next.Updated.Equal(rec.Now) {
		t.Errorf("append: at %s, error %v; want %s", next.Updated, err, rec.Now)
	}
	if second := reserve(t, l, "w2"); !second.Created.Equal(rec.Now) {
		t.Errorf("reserve: at %s, want %s", second.Created, rec.Now)
	}
	c.move(time.Hour)
	if third := reserve(t, l, "w3"); !third.Created.Equal(c.now()) {
		t.Errorf("reserve: at %s, want %s: the clock is right again", third.Created, c.now())
	}
}

// With a clock that is too far back nothing new is begun, and what was sent can still be settled.
func TestClockIsRefused(t *testing.T) {
	c := newClock()
	l := open(t, file(t), &sqlite.Options{Now: c.now})
	rec := reserve(t, l, "w1")
	newest := c.now()
	c.move(-time.Minute - 1)
	_, _, err := l.Reserve(context.Background(), reservation(t, asked("w2")))
	if !errors.Is(err, ledger.ErrClock) {
		t.Errorf("reserve: error %v", err)
	}
	for _, part := range []string{c.now().Format(time.RFC3339Nano), newest.Format(time.RFC3339Nano), "set this machine's clock"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if _, err := l.Claim(context.Background(), ledger.Claim{Owner: "x", LeaseFor: time.Minute}); !errors.Is(err, ledger.ErrClock) {
		t.Errorf("claim: error %v", err)
	}
	if present(t, l, "w2") {
		t.Error("a refused reservation was made")
	}
	done, err := l.Append(context.Background(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent},
		ledger.Event{Kind: ledger.EvRead}, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified})
	if err != nil || done.State != ledger.Settled || !done.SettledAt.Equal(newest) {
		t.Errorf("append: %s at %s, error %v", done.Phase(), done.SettledAt, err)
	}
	if _, err := l.List(context.Background(), ledger.Filter{Tenant: rec.Tenant}); err != nil {
		t.Errorf("list: error %v", err)
	}
	c.move(time.Second)
	reserve(t, l, "w2")
}

// A clock that was once far ahead does not lock a ledger for ever.
func TestClockIsReset(t *testing.T) {
	c, path := newClock(), file(t)
	c.move(365 * 24 * time.Hour)
	l, err := sqlite.Open(context.Background(), path, &sqlite.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	reserve(t, l, "w1")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c.move(-365 * 24 * time.Hour)
	l = open(t, path, &sqlite.Options{Now: c.now})
	if _, _, err := l.Reserve(context.Background(), reservation(t, asked("w2"))); !errors.Is(err, ledger.ErrClock) {
		t.Fatalf("error %v", err)
	}
	l = open(t, path, &sqlite.Options{Now: c.now, ResetClock: true})
	if rec := reserve(t, l, "w2"); !rec.Created.Equal(c.now()) {
		t.Errorf("created %s, want %s", rec.Created, c.now())
	}
}
