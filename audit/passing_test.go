package audit_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// errPassing is the error of a call that succeeds the next time.
var errPassing = fmt.Errorf("%w: a passing error", ledger.ErrUnavailable)

// shaky is a ledger one of whose calls fails, before or after its effect.
type shaky struct {
	*ledger.Memory
	at, calls int
	after     bool
}

func (s *shaky) call(do func() error) error {
	s.calls++
	if s.calls == s.at && !s.after {
		return errPassing
	}
	err := do()
	if s.calls == s.at {
		return errPassing
	}
	return err
}

func (s *shaky) Commit(ctx context.Context, f ledger.Batch) (did ledger.Committed, err error) {
	err = s.call(func() (err error) { did, err = s.Memory.Commit(ctx, f); return err })
	return did, err
}

func (s *shaky) Document(ctx context.Context, tenant, kind, id string) (p ledger.Document, err error) {
	err = s.call(func() (err error) { p, err = s.Memory.Document(ctx, tenant, kind, id); return err })
	return p, err
}

func (s *shaky) Unsealed(ctx context.Context, after int64, limit int) (runs []ledger.Run, err error) {
	err = s.call(func() (err error) { runs, err = s.Memory.Unsealed(ctx, after, limit); return err })
	return runs, err
}

func (s *shaky) Sealed(ctx context.Context, tickets []int64) error {
	return s.call(func() error { return s.Memory.Sealed(ctx, tickets) })
}

func (s *shaky) BeginSealing(ctx context.Context) (since time.Time, err error) {
	err = s.call(func() (err error) { since, err = s.Memory.BeginSealing(ctx); return err })
	return since, err
}

func (s *shaky) Notes(ctx context.Context, prefix string) (found []ledger.Note, now time.Time, err error) {
	err = s.call(func() (err error) { found, now, err = s.Memory.Notes(ctx, prefix); return err })
	return found, now, err
}

func (s *shaky) SetNote(ctx context.Context, n ledger.Note) (set ledger.Note, err error) {
	err = s.call(func() (err error) { set, err = s.Memory.SetNote(ctx, n); return err })
	return set, err
}

// A sealer that meets an error, in any call and before or after its effect, continues by itself:
// it reads again what it missed, and seals nothing twice. Its predecessor was killed between its
// commit and the mark.
func TestPassingErrors(t *testing.T) {
	for at, met := 1, true; met; at++ {
		met = false
		for _, after := range []bool{false, true} {
			l := ledger.NewMemory()
			for i := range 3 {
				life(t, l, fmt.Sprint("t", i%2), fmt.Sprint("w", i))
			}
			killed := audit.New(&killedAtSealed{&fragile{Memory: l}}, audit.Options{Logger: quiet})
			if _, err := killed.Seal(t.Context()); !errors.Is(err, errKilled) {
				t.Fatalf("error %v", err)
			}
			on := &shaky{Memory: l, at: at, after: after}
			s := audit.New(on, audit.Options{Logger: quiet})
			for i := range 4 {
				if _, err := s.Seal(t.Context()); err != nil && !errors.Is(err, errPassing) {
					t.Fatalf("call %d: %v", at, err)
				}
				if i < 3 {
					life(t, l, "t0", fmt.Sprint("later", i))
				}
			}
			met, on.at = met || on.calls >= at, 0
			_, err := s.Seal(t.Context())
			must(t, err)
			r := clean(t, l, audit.VerifyOptions{})
			entries := int64(0)
			for _, c := range r.Chains {
				entries += c.Entries
			}
			if r.Repeated != 0 || r.Unsealed != 0 || entries != 30 {
				t.Errorf("call %d failed, when it was done %v: %d entries of 30, %d repeated, %d not sealed", at, after, entries, r.Repeated, r.Unsealed)
			}
		}
	}
}

// A sealer that never sealed anything still reports how far the chain is behind.
func TestTriedIsKnown(t *testing.T) {
	s := audit.New(&shaky{Memory: ledger.NewMemory(), at: 1}, audit.Options{Logger: quiet})
	before := time.Now()
	if _, err := s.Seal(t.Context()); !errors.Is(err, errPassing) {
		t.Fatalf("error %v", err)
	}
	if got := s.Stats(); got.Failures != 1 || !got.Read.IsZero() || got.Tried.Before(before) {
		t.Errorf("stats %+v", got)
	}
}

// A page whose content was altered together with its hash is detected without any head: the next
// page holds the previous hash.
func TestAPageIsBoundByTheNext(t *testing.T) {
	c := scene(t)
	p, err := c.l.Document(t.Context(), "a", ledger.AuditKind, "page-000000000002")
	must(t, err)
	var page audit.Page
	must(t, json.Unmarshal(p.Body, &page))
	page.Sealed, page.Hash = page.Sealed.Add(-time.Hour), ""
	page.Hash = hashed(t, page)
	text, err := json.Marshal(page)
	must(t, err)
	c.sql(t, `UPDATE ledger_documents SET body = '%s' WHERE tenant = 'a' AND kind = 'audit' AND id = 'page-000000000002'`, text)
	if r := check(t, c.l, audit.VerifyOptions{}); len(r.Problems) != 1 || r.Problems[0].Kind != audit.ChainBroken || r.Problems[0].Page != 3 {
		t.Errorf("found %v", r.Problems)
	}
}

// hashed is the SHA-256 over the canonical JSON of a page without its hash.
func hashed(t *testing.T, p audit.Page) string {
	t.Helper()
	text, err := json.Marshal(p)
	must(t, err)
	var all map[string]any
	must(t, json.Unmarshal(text, &all))
	text, err = intent.Canonical(all)
	must(t, err)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// disturbed runs a function once a check has read the chain, before it reads the writes, or once
// it has read them.
type disturbed struct {
	*sqlite.Ledger
	meanwhile func()
	late      bool
}

func (d *disturbed) Lifetimes(ctx context.Context, after ledger.ID, limit int) ([]ledger.Lifetime, error) {
	do := d.meanwhile
	d.meanwhile = nil
	if do != nil && !d.late {
		do()
	}
	lives, err := d.Ledger.Lifetimes(ctx, after, limit)
	if do != nil && d.late {
		do()
	}
	return lives, err
}

// Retention during a check causes no alarm, whether it is sealed meanwhile or not. Neither does a
// later write under the same key.
func TestRetentionWhileACheckRuns(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, l *sqlite.Ledger, seal func()){
		"pruned": func(t *testing.T, l *sqlite.Ledger, seal func()) { prune(t, l, time.Hour); seal() },
		"pruned and forgotten": func(t *testing.T, l *sqlite.Ledger, seal func()) {
			prune(t, l, time.Hour)
			seal()
			prune(t, l, 1)
			seal()
		},
		"forgotten and made anew": func(t *testing.T, l *sqlite.Ledger, seal func()) {
			prune(t, l, time.Hour)
			prune(t, l, 1)
			seal()
			life(t, l, "a", "w1")
			put(t, l, ledger.Document{Tenant: "a", Kind: "workflow", ID: "b", Collection: "b", Done: true, Body: []byte(`{"n":2}`)})
			seal()
		},
	} {
		for _, seals := range []bool{true, false} {
			for _, late := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, sealed %v, late %v", name, seals, late), func(t *testing.T) {
					l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
					s := audit.New(l, audit.Options{Logger: quiet})
					life(t, l, "a", "w1")
					put(t, l, ledger.Document{Tenant: "a", Kind: "workflow", ID: "b", Collection: "b", Done: true, Body: []byte(`{}`)})
					_, err := s.Seal(t.Context())
					must(t, err)
					happened := false
					on := &disturbed{Ledger: l, late: late, meanwhile: func() {
						happened = true
						do(t, l, func() {
							if seals {
								_, err := s.Seal(t.Context())
								must(t, err)
							}
						})
					}}
					clean(t, on, audit.VerifyOptions{})
					if !happened {
						t.Error("nothing happened meanwhile")
					}
					_, err = s.Seal(t.Context())
					must(t, err)
					clean(t, l, audit.VerifyOptions{})
				})
			}
		}
	}
}

// prune prunes settled writes, and compacts tombstones after a time: the machine's clock has
// advanced since.
func prune(t *testing.T, l *sqlite.Ledger, remember time.Duration) {
	t.Helper()
	_, err := l.Prune(t.Context(), ledger.Prune{Keep: 1, Remember: remember})
	must(t, err)
}
