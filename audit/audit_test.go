package audit_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/signing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The events that lives are made of.
var (
	announced = ledger.Event{Kind: ledger.EvAnnounced, By: "one", SendFor: time.Second}
	sent      = ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: "17"}
	seen      = ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"n": 12345678901234567890, "a": 1.0}`)}
	verified  = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, In: 400 * 24 * time.Hour}
	done      = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified}
)

// reserve takes up a write of a tenant.
func reserve(t testing.TB, l ledger.Ledger, tenant, workflow string, events ...ledger.Event) ledger.Record {
	t.Helper()
	rec, err := ledger.NewRecord(intent.WriteIntent{
		Tenant: tenant, Workflow: workflow, Step: "step", Tool: "tool",
		Destination: "shop", Kind: "order", Write: intent.Create,
		Key: intent.Fields{"number": workflow}, Expect: intent.Fields{"state": "open"},
	})
	must(t, err)
	rec, _, err = l.Reserve(context.Background(), ledger.Reservation{Record: rec, Events: events, Owner: "one", LeaseFor: time.Hour})
	must(t, err)
	return rec
}

func grow(t testing.TB, l ledger.Ledger, r ledger.Record, events ...ledger.Event) ledger.Record {
	t.Helper()
	r, err := l.Append(context.Background(), r.ID, r.Fence, events...)
	must(t, err)
	return r
}

// life is a write that was sent, seen and settled.
func life(t testing.TB, l ledger.Ledger, tenant, workflow string) ledger.Record {
	t.Helper()
	return grow(t, l, reserve(t, l, tenant, workflow, announced), sent, seen, done)
}

func put(t testing.TB, l ledger.Ledger, p ledger.Paper) ledger.Paper {
	t.Helper()
	did, err := l.(ledger.Papers).File(context.Background(), ledger.Filing{Papers: []ledger.Paper{p}})
	must(t, err)
	return did.Papers[0]
}

func seal(t testing.TB, s *audit.Sealer, want int) {
	t.Helper()
	if n, err := s.Seal(t.Context()); err != nil || n != want {
		t.Fatalf("%d entries were sealed, error %v; want %d", n, err, want)
	}
}

func check(t testing.TB, l ledger.Ledger, o audit.VerifyOptions) audit.Report {
	t.Helper()
	r, err := audit.Verify(t.Context(), l, o)
	must(t, err)
	return r
}

func clean(t testing.TB, l ledger.Ledger, o audit.VerifyOptions) audit.Report {
	t.Helper()
	r := check(t, l, o)
	for _, p := range r.Problems {
		t.Errorf("a false alarm: %s", p)
	}
	return r
}

// signer is a new key, and what trusts it.
func signer(t testing.TB) (*signing.Signer, signing.Keys) {
	t.Helper()
	private, public, err := signing.Generate()
	must(t, err)
	s, err := signing.ReadSigner(private)
	must(t, err)
	keys, err := signing.ReadKeys(public)
	must(t, err)
	return s, keys
}

// drawer keeps heads in memory.
type drawer struct {
	mu    sync.Mutex
	heads []signing.Envelope
}

func (d *drawer) Keep(_ context.Context, head signing.Envelope) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heads = append(d.heads, head)
	return nil
}

func (d *drawer) all() []signing.Envelope {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.heads)
}

func open(t testing.TB, path string) *sqlite.Ledger {
	t.Helper()
	l, err := sqlite.Open(context.Background(), path, nil)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

func ledgers(t *testing.T, f func(t *testing.T, l ledger.Ledger)) {
	t.Run("memory", func(t *testing.T) { f(t, ledger.NewMemory()) })
	t.Run("sqlite", func(t *testing.T) { f(t, open(t, filepath.Join(t.TempDir(), "ledger.db"))) })
}

func TestSealAndVerify(t *testing.T) {
	ledgers(t, func(t *testing.T, l ledger.Ledger) {
		sign, keys := signer(t)
		kept := &drawer{}
		before := life(t, l, "a", "before")
		s := audit.New(l, audit.Options{Signer: sign, Keepers: map[string]audit.Keeper{"drawer": kept}})
		seal(t, s, int(before.Seq))
		life(t, l, "a", "w1")
		rec := grow(t, l, reserve(t, l, "b", "w2", announced), sent, seen, verified)
		p := put(t, l, ledger.Paper{Tenant: "a", Kind: "gate", ID: "g", Body: []byte(`{"x":1}`)})
		seal(t, s, 11)
		seal(t, s, 0)
		if n, err := s.SignHeads(t.Context()); n != 2 || err != nil {
			t.Fatalf("%d heads were signed, error %v", n, err)
		}
		must(t, s.Flush(t.Context()))
		if n, err := s.SignHeads(t.Context()); n != 0 || err != nil || len(kept.heads) != 2 {
			t.Fatalf("%d heads were signed although nothing moved, error %v; %d are kept", n, err, len(kept.heads))
		}
		p.Body = []byte(`{"x":2}`)
		put(t, l, p)
		grow(t, l, rec, ledger.Event{Kind: ledger.EvRechecked})
		r := clean(t, l, audit.VerifyOptions{Heads: kept.heads, Keys: keys})
		if r.Unsealed != 2 || r.Found != int(before.Seq) || len(r.Chains) != 2 || r.Chains[0].Proven != r.Chains[0].Entries || r.Chains[0].Heads != 2 {
			t.Errorf("report: %+v", r)
		}
		seal(t, s, 2)
		if r := clean(t, l, audit.VerifyOptions{Heads: kept.heads, Keys: keys}); r.Unsealed != 0 {
			t.Errorf("report: %+v", r)
		}
		seal(t, audit.New(l, audit.Options{}), 0)
		if stats := s.Stats(); stats.Entries != before.Seq+13 || stats.Heads != 2 || stats.Keepers["drawer"].Kept != 2 || stats.Looked.IsZero() {
			t.Errorf("stats: %+v", stats)
		}
	})
}

// What cannot be sealed says so, and a head that is not there as well.
func TestCannot(t *testing.T) {
	bare := struct{ ledger.Ledger }{ledger.NewMemory()}
	s := audit.New(bare, audit.Options{})
	_, err := s.Seal(t.Context())
	_, also := audit.Verify(t.Context(), bare, audit.VerifyOptions{})
	if err := errors.Join(err, also, s.Work(t.Context())); strings.Count(fmt.Sprint(err), audit.ErrCannot.Error()) != 3 {
		t.Errorf("error %v", err)
	}
	if _, err := audit.NewestHead(t.Context(), ledger.NewMemory(), "a"); !errors.Is(err, audit.ErrNoHead) || !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

// Pruning, and forgetting, are told from deleting; what comes after under the
// same key is another write.
func TestPrunedIsNoAlarm(t *testing.T) {
	l := ledger.NewMemory()
	s := audit.New(l, audit.Options{})
	rec := life(t, l, "a", "w1")
	cover := put(t, l, ledger.Paper{Tenant: "a", Kind: "workflow", ID: "b", Binder: "b", Done: true, Body: []byte(`{}`)})
	seal(t, s, 6)
	prune := func(keep, remember time.Duration) {
		t.Helper()
		_, err := l.Prune(t.Context(), ledger.Prune{Keep: keep, Remember: remember})
		must(t, err)
	}
	for l := l; ; { // the clock of the machine must have gone on
		if r, err := l.Get(t.Context(), "a", rec.ID); err != nil || r.Now.After(rec.SettledAt) {
			break
		}
	}
	prune(1, time.Hour)
	clean(t, l, audit.VerifyOptions{}) // the burial is not sealed yet
	seal(t, s, 1)
	if r := clean(t, l, audit.VerifyOptions{}); r.Pruned != 1 {
		t.Errorf("report: %+v", r)
	}
	prune(1, 1)
	clean(t, l, audit.VerifyOptions{})
	seal(t, s, 2)
	clean(t, l, audit.VerifyOptions{})
	life(t, l, "a", "w1")
	cover.Version = 0
	put(t, l, cover)
	clean(t, l, audit.VerifyOptions{})
	seal(t, s, 6)
	clean(t, l, audit.VerifyOptions{})
}
