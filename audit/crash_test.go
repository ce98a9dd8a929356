package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

var quiet = slog.New(slog.DiscardHandler)

// errKilled reports that the process was killed.
var errKilled = errors.New("killed")

// fragile is a ledger whose caller is killed before or after a call that changes something.
type fragile struct {
	*ledger.Memory
	at     int // the number of the call
	after  bool
	calls  int
	killed bool
}

func (f *fragile) call(do func() error) error {
	if f.killed {
		return errKilled
	}
	f.calls++
	if f.calls == f.at && !f.after {
		f.killed = true
		return errKilled
	}
	err := do()
	if f.calls == f.at {
		f.killed = true
		return errKilled
	}
	return err
}

func (f *fragile) Commit(ctx context.Context, batch ledger.Batch) (did ledger.Committed, err error) {
	err = f.call(func() (err error) { did, err = f.Memory.Commit(ctx, batch); return err })
	return did, err
}

func (f *fragile) SetNote(ctx context.Context, n ledger.Note) (set ledger.Note, err error) {
	err = f.call(func() (err error) { set, err = f.Memory.SetNote(ctx, n); return err })
	return set, err
}

func (f *fragile) BeginSealing(ctx context.Context) (since time.Time, err error) {
	err = f.call(func() (err error) { since, err = f.Memory.BeginSealing(ctx); return err })
	return since, err
}

func (f *fragile) Sealed(ctx context.Context, tickets []int64) error {
	return f.call(func() error { return f.Memory.Sealed(ctx, tickets) })
}

// A sealer that is killed before or after any step loses nothing and seals nothing twice: the
// next one continues.
func TestKilledAtEachStep(t *testing.T) {
	sign, keys := signer(t)
	for at, ended := 1, 0; ended < 2; at++ {
		ended = 0
		for _, after := range []bool{false, true} {
			l := ledger.NewMemory()
			for i := range 3 {
				life(t, l, fmt.Sprint("t", i%2), fmt.Sprint("w", i))
			}
			f := &fragile{Memory: l, at: at, after: after}
			s := audit.New(f, audit.Options{Signer: sign, Logger: quiet})
			_, err := s.Seal(t.Context())
			if err == nil {
				life(t, l, "t0", "later")
				_, err = s.Seal(t.Context())
			}
			if err == nil {
				_, err = s.SignHeads(t.Context())
			}
			if err == nil {
				ended++
				continue
			}
			if !errors.Is(err, errKilled) {
				t.Fatalf("step %d: %v", at, err)
			}
			clean(t, l, audit.VerifyOptions{Keys: keys})
			life(t, l, "t1", "after the kill")
			next := audit.New(l, audit.Options{Signer: sign, Logger: quiet})
			_, err = next.Seal(t.Context())
			must(t, err)
			_, err = next.SignAll(t.Context())
			must(t, err)
			r := clean(t, l, audit.VerifyOptions{Keys: keys})
			lives, err := l.Lifetimes(t.Context(), "", 1000)
			must(t, err)
			entries, heads := int64(0), 0
			for _, c := range r.Chains {
				entries, heads = entries+c.Entries, heads+c.Heads
			}
			if r.Repeated != 0 || r.Unsealed != 0 || entries != int64(5*len(lives)) || heads != 2 {
				t.Errorf("killed at step %d, after it %v: %d entries for %d writes, %d heads, %d repeated, %d not sealed", at, after, entries, len(lives), heads, r.Repeated, r.Unsealed)
			}
		}
		if at > 100 {
			t.Fatal("it never ends")
		}
	}
}

// Two sealers that are killed one after the other, each between its commit and the mark, leave
// nothing twice: the first one's entries are marked before the second commits any.
func TestKilledTwice(t *testing.T) {
	l := ledger.NewMemory()
	written := 0
	for range 4 {
		life(t, l, "a", fmt.Sprint("w", written))
		written++
		f := &fragile{Memory: l}
		s := audit.New(&killedAtSealed{f}, audit.Options{Logger: quiet})
		if _, err := s.Seal(t.Context()); !errors.Is(err, errKilled) {
			t.Fatalf("error %v", err)
		}
	}
	life(t, l, "a", "last")
	_, err := audit.New(l, audit.Options{Logger: quiet}).Seal(t.Context())
	must(t, err)
	if r := clean(t, l, audit.VerifyOptions{}); r.Repeated != 0 || r.Unsealed != 0 || r.Chains[0].Entries != int64(5*(written+1)) {
		t.Errorf("report %+v", r)
	}
}

// killedAtSealed is killed when it marks its entries as sealed.
type killedAtSealed struct{ *fragile }

func (f *killedAtSealed) Commit(ctx context.Context, batch ledger.Batch) (ledger.Committed, error) {
	did, err := f.fragile.Commit(ctx, batch)
	f.killed = true
	return did, err
}

// Several sealers at once, with writers and a checker in parallel: nothing is lost, nothing is
// repeated, and no check fails.
func TestSealersCompete(t *testing.T) {
	ledgers(t, func(t *testing.T, l ledger.Ledger) {
		var writers, sealers, checkers sync.WaitGroup
		done := make(chan struct{})
		over := func() bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		for range 3 {
			s := audit.New(l, audit.Options{Logger: quiet})
			sealers.Go(func() {
				for !over() {
					if _, err := s.Seal(context.Background()); err != nil && !errors.Is(err, ledger.ErrStale) {
						t.Errorf("seal: %v", err)
					}
				}
			})
		}
		checkers.Go(func() {
			for !over() {
				r, err := audit.Verify(context.Background(), l, audit.VerifyOptions{})
				if err != nil || len(r.Problems) > 0 {
					t.Errorf("a check beside the work: %v, error %v", r.Problems, err)
					return
				}
			}
		})
		const many, each = 4, 12
		for w := range many {
			writers.Go(func() {
				for i := range each {
					r := reserve(t, l, fmt.Sprint("t", i%3), fmt.Sprint("w", w, "-", i), announced)
					r = grow(t, l, r, sent)
					grow(t, l, r, seen, verifiedNow)
				}
			})
		}
		writers.Wait()
		close(done)
		sealers.Wait()
		checkers.Wait()
		_, err := audit.New(l, audit.Options{Logger: quiet}).Seal(t.Context())
		must(t, err)
		r := clean(t, l, audit.VerifyOptions{})
		entries := int64(0)
		for _, c := range r.Chains {
			entries += c.Entries
		}
		if entries != many*each*5 || r.Repeated != 0 || r.Unsealed != 0 {
			t.Errorf("%d entries, want %d; %d repeated, %d not sealed", entries, many*each*5, r.Repeated, r.Unsealed)
		}
	})
}

var verifiedNow = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified}

// sealHere makes this process, as a child of the test, seal a ledger until it is killed.
const sealHere = "READBACK_TEST_SEAL"

func TestMain(m *testing.M) {
	if path := os.Getenv(sealHere); path != "" {
		l, err := sqlite.Open(context.Background(), path, nil)
		if err != nil {
			panic(err)
		}
		s := audit.New(l, audit.Options{Logger: quiet})
		for {
			if _, err := s.Seal(context.Background()); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

// Sealer processes are repeatedly killed while another process writes.
func TestSealersAreKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	program, err := os.Executable()
	must(t, err)
	written := 0
	for round := range 8 {
		child := exec.Command(program)
		child.Env = append(os.Environ(), sealHere+"="+path)
		must(t, child.Start())
		for n := 0; n < 10+round || sealedSoFar(t, l) == 0; n++ {
			life(t, l, "a", fmt.Sprint("w", written))
			written++
		}
		must(t, child.Process.Kill()) // SIGKILL, at any instruction
		_ = child.Wait()              // it returns that the child was killed
		clean(t, l, audit.VerifyOptions{})
	}
	_, err = audit.New(l, audit.Options{Logger: quiet}).Seal(t.Context())
	must(t, err)
	if r := clean(t, l, audit.VerifyOptions{}); r.Repeated != 0 || r.Unsealed != 0 || r.Chains[0].Entries != int64(5*written) {
		t.Errorf("%d writes; %+v", written, r)
	}
}

func sealedSoFar(t *testing.T, l *sqlite.Ledger) int64 {
	t.Helper()
	r, err := audit.Verify(t.Context(), l, audit.VerifyOptions{})
	must(t, err)
	if len(r.Chains) == 0 {
		return 0
	}
	return r.Chains[0].Entries
}
