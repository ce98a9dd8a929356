package audit_test

import (
	"context"
	"crypto/ed25519"
	"errors"
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

// The events of the test lives.
var (
	announced = ledger.Event{Kind: ledger.EvAnnounced, By: "one", SendFor: time.Second}
	sent      = ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: "17"}
	seen      = ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"n": 12345678901234567890, "a": 1.0}`)}
	verified  = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, In: 400 * 24 * time.Hour}
	done      = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified}
)

// reserve reserves a write of a tenant.
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

// life is a write that was sent, verified and settled.
func life(t testing.TB, l ledger.Ledger, tenant, workflow string) ledger.Record {
	t.Helper()
	return grow(t, l, reserve(t, l, tenant, workflow, announced), sent, seen, done)
}

func put(t testing.TB, l ledger.Ledger, p ledger.Document) ledger.Document {
	t.Helper()
	did, err := l.Commit(context.Background(), ledger.Batch{Documents: []ledger.Document{p}})
	must(t, err)
	return did.Documents[0]
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

// signer is a new key, and the keys that trust it.
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

// drawer is a head store in memory.
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
		s := audit.New(l, audit.Options{Signer: sign, HeadStores: map[string]audit.HeadStore{"drawer": kept}})
		seal(t, s, int(before.Seq))
		life(t, l, "a", "w1")
		rec := grow(t, l, reserve(t, l, "b", "w2", announced), sent, seen, verified)
		p := put(t, l, ledger.Document{Tenant: "a", Kind: "gate", ID: "g", Body: []byte(`{"x":1}`)})
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
		if r.Unsealed != 2 || r.Backfilled != 0 || len(r.Chains) != 2 || r.Chains[0].Proven != r.Chains[0].Entries || r.Chains[0].Heads != 2 {
			t.Errorf("report: %+v", r)
		}
		seal(t, s, 2)
		if r := clean(t, l, audit.VerifyOptions{Heads: kept.heads, Keys: keys}); r.Unsealed != 0 {
			t.Errorf("report: %+v", r)
		}
		seal(t, audit.New(l, audit.Options{}), 0)
		if stats := s.Stats(); stats.Entries != before.Seq+13 || stats.Heads != 2 || stats.HeadStores["drawer"].Kept != 2 || stats.Read.IsZero() {
			t.Errorf("stats: %+v", stats)
		}
	})
}

func TestNoHead(t *testing.T) {
	if _, err := audit.NewestHead(t.Context(), ledger.NewMemory(), "a"); !errors.Is(err, audit.ErrNoHead) || !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

// Pruning and compaction are distinguished from deletion. A later write under the same key is
// another write.
func TestPrunedIsNoAlarm(t *testing.T) {
	l := ledger.NewMemory()
	s := audit.New(l, audit.Options{})
	rec := life(t, l, "a", "w1")
	cover := put(t, l, ledger.Document{Tenant: "a", Kind: "workflow", ID: "b", Collection: "b", Done: true, Body: []byte(`{}`)})
	seal(t, s, 6)
	prune := func(keep, remember time.Duration) {
		t.Helper()
		_, err := l.Prune(t.Context(), ledger.Prune{Keep: keep, Remember: remember})
		must(t, err)
	}
	for l := l; ; { // wait until the machine's clock has advanced
		if r, err := l.Get(t.Context(), "a", rec.ID); err != nil || r.Now.After(rec.SettledAt) {
			break
		}
	}
	prune(1, time.Hour)
	clean(t, l, audit.VerifyOptions{}) // the tombstone is not sealed yet
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

// outOfOrder is a key that is kept elsewhere and fails until it is repaired.
type outOfOrder struct {
	ed25519.PrivateKey
	mended bool
}

func (k *outOfOrder) Public() ed25519.PublicKey {
	half, _ := k.PrivateKey.Public().(ed25519.PublicKey)
	return half
}

func (k *outOfOrder) Sign(_ context.Context, data []byte) ([]byte, error) {
	if !k.mended {
		return nil, errors.New("the HSM is out of order")
	}
	return ed25519.Sign(k.PrivateKey, data), nil
}

// TestAKeyThatFails: without its signature writes and sealing continue. The unsigned heads are
// signed when the key works again.
func TestAKeyThatFails(t *testing.T) {
	ledgers(t, func(t *testing.T, l ledger.Ledger) {
		_, private, err := ed25519.GenerateKey(nil)
		must(t, err)
		key := &outOfOrder{PrivateKey: private}
		sign, err := signing.NewSigner(key)
		must(t, err)
		keys, err := signing.ReadKeys(sign.Public())
		must(t, err)
		kept := &drawer{}
		s := audit.New(l, audit.Options{Signer: sign, HeadStores: map[string]audit.HeadStore{"drawer": kept}})
		for _, w := range []string{"w1", "w2"} {
			seal(t, s, int(life(t, l, "a", w).Seq))
			if n, err := s.SignHeads(t.Context()); n != 0 || !errors.Is(err, signing.ErrKey) || !strings.Contains(err.Error(), "out of order") {
				t.Fatalf("%d heads, error %v; want none and why", n, err)
			}
		}
		key.mended = true
		if n, err := s.SignHeads(t.Context()); n != 1 || err != nil {
			t.Fatalf("%d heads, error %v; want the one that was missing", n, err)
		}
		must(t, s.Flush(t.Context()))
		if r := clean(t, l, audit.VerifyOptions{Heads: kept.heads, Keys: keys}); r.Chains[0].Proven != r.Chains[0].Entries {
			t.Errorf("report: %+v", r)
		}
	})
}
