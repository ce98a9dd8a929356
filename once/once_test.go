package once_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/once"
)

// shelf is a destination of records, with what its closures do in addition.
type shelf struct {
	mu      sync.Mutex
	records []once.Record
	sends   int
}

func (s *shelf) write(key string, expect any) once.Write {
	return once.Write{
		Key: key, Expect: expect,
		Send: func(_ context.Context, stamp string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sends++
			s.records = append(s.records, once.Record{Ref: fmt.Sprint(len(s.records)), Stamp: stamp, Fields: expect})
			return nil
		},
		Find: func(_ context.Context, stamp string) (found []once.Record, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, r := range s.records {
				if r.Stamp == stamp {
					found = append(found, r)
				}
			}
			return found, nil
		},
		Settle: connectors.Within(0), Horizon: connectors.Within(30 * time.Second),
	}
}

var paid = map[string]any{"paid": true}

func TestClosuresThatPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, burst := range map[string]func(){
			"panic": func() { panic("no") }, "exit": runtime.Goexit,
		} {
			for _, applied := range []bool{false, true} {
				s, store, bursts := &shelf{}, ledger.NewMemory(), 0
				w := s.write("a", paid)
				send := w.Send
				w.Send = func(ctx context.Context, stamp string) error {
					if bursts++; bursts == 1 {
						if applied {
							_ = send(ctx, stamp)
						}
						burst()
					}
					return send(ctx, stamp)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				out, err := once.Do(ctx, store, w)
				cancel()
				if out.Status != ledger.Verified || err != nil || len(s.records) != 1 {
					t.Errorf("%s, applied %t: %s, %v with %d records", name, applied, out.Status, err, len(s.records))
				}
			}
			s, store := &shelf{}, ledger.NewMemory()
			w := s.write("a", paid)
			w.Find = func(context.Context, string) ([]once.Record, error) { burst(); return nil, nil }
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if out, err := once.Do(ctx, store, w); err == nil || len(s.records) > 1 {
				t.Errorf("%s in Find: %s with %d records", name, out.Status, len(s.records))
			}
			cancel()
		}
	})
}

func TestSendThatOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := &shelf{}, ledger.NewMemory()
		w := s.write("a", paid)
		send := w.Send
		w.Send = func(ctx context.Context, stamp string) error { time.Sleep(time.Minute); return send(ctx, stamp) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if out, err := once.Do(ctx, store, w); out.Status != ledger.InProgress || !errors.Is(err, once.ErrNotVerified) || time.Since(began) > time.Second {
			t.Errorf("%s, %v after %v; want in progress after a second", out.Status, err, time.Since(began))
		}
		if out, err := once.Do(t.Context(), store, w); err != nil || len(s.records) != 1 {
			t.Errorf("%s, %v with %d records; want one", out.Status, err, len(s.records))
		}
	})
}

// Any text is a key of its own.
func TestKeys(t *testing.T) {
	s, store := &shelf{}, ledger.NewMemory()
	long := strings.Repeat("k", 1<<20)
	keys := []string{"a", "A", " a", "a ", "a/b", "a%2Fb", "a\x00", "a\xff", "a\xfe", "\u00e9", "e\u0301", "\n", "☃", "once:a", long, long + "1"}
	for _, key := range keys {
		out, err := once.Do(t.Context(), store, s.write(key, paid))
		if err != nil || out.Replayed {
			t.Errorf("%.20q: %s, replayed %t, %v", key, out.Status, out.Replayed, err)
		}
	}
	if s.sends != len(keys) {
		t.Errorf("%d sends of %d keys", s.sends, len(keys))
	}
}

// What cannot be a write is refused before anything is recorded or sent.
func TestRefused(t *testing.T) {
	loop := map[string]any{}
	loop["self"] = loop
	s, store := &shelf{}, ledger.NewMemory()
	for name, spoil := range map[string]func(*once.Write){
		"no key":           func(w *once.Write) { w.Key = "" },
		"no send":          func(w *once.Write) { w.Send = nil },
		"no find":          func(w *once.Write) { w.Find = nil },
		"nothing expected": func(w *once.Write) { w.Expect = nil },
		"an empty map":     func(w *once.Write) { w.Expect = map[string]any{} },
		"an empty struct":  func(w *once.Write) { w.Expect = struct{}{} },
		"a nil pointer":    func(w *once.Write) { w.Expect = (*struct{ A int })(nil) },
		"a nil map":        func(w *once.Write) { w.Expect = map[string]any(nil) },
		"a number":         func(w *once.Write) { w.Expect = 1 },
		"a list":           func(w *once.Write) { w.Expect = []int{1} },
		"a time":           func(w *once.Write) { w.Expect = time.Now() },
		"NaN":              func(w *once.Write) { w.Expect = map[string]any{"a": math.NaN()} },
		"a channel":        func(w *once.Write) { w.Expect = map[string]any{"a": make(chan int)} },
		"no end":           func(w *once.Write) { w.Expect = loop },
		"too large":        func(w *once.Write) { w.Expect = map[string]any{"a": strings.Repeat("a", 2<<20)} },
		"a secret without a key": func(w *once.Write) {
			w.Expect = struct {
				Card string `readback:"sensitive"`
			}{"4242"}
		},
	} {
		w := s.write("a", paid)
		spoil(&w)
		if out, err := once.Do(t.Context(), store, w); !errors.Is(err, intent.ErrInvalid) || out.ID != "" {
			t.Errorf("%s: %q, %v; want a refusal", name, out.Status, err)
		}
	}
	if _, err := once.Do(t.Context(), store, s.write("a", 1)); !strings.Contains(fmt.Sprint(err), "/expect") {
		t.Errorf("%v; want the name of what is wrong", err)
	}
	if _, err := once.Do(t.Context(), nil, s.write("a", paid)); err == nil {
		t.Error("no store: want an error")
	}
	if s.sends != 0 {
		t.Errorf("%d sends, want none", s.sends)
	}
}

type amounts struct {
	Amount   float64                   `json:"amount"`
	At       time.Time                 `json:"at"`
	Note     *string                   `json:"note"`
	Optional *string                   `json:"optional,omitempty"`
	Ignored  string                    `json:"ignored" readback:"-"`
	Memo     string                    `json:"memo" readback:"payload"`
	Tags     []string                  `json:"tags"`
	Of       *struct{ Amount float64 } `json:"of"`
	Any      any                       `json:"any"`
}

// Values are compared as JSON: a float as its shortest decimal, a time as its text, nil as null.
func TestValues(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	note, optional := "", "found only"
	expect := amounts{Amount: 0.1, At: at, Tags: nil, Of: &struct{ Amount float64 }{1e21}, Any: map[string]int{"a": 1}}
	for name, c := range map[string]struct {
		found any
		want  ledger.Status
	}{
		"equal":                 {expect, ledger.Verified},
		"a pointer":             {&expect, ledger.Verified},
		"other fields":          {amounts{Amount: 0.1, At: at, Of: expect.Of, Any: expect.Any, Optional: &optional, Ignored: "x", Memo: "x"}, ledger.Verified},
		"a float that is not":   {amounts{Amount: math.Nextafter(0.1, 1), At: at, Of: expect.Of, Any: expect.Any}, ledger.StatusReview},
		"another zone":          {amounts{Amount: 0.1, At: at.In(time.FixedZone("", 3600)), Of: expect.Of, Any: expect.Any}, ledger.StatusReview},
		"empty instead of null": {amounts{Amount: 0.1, At: at, Note: &note, Of: expect.Of, Any: expect.Any}, ledger.StatusReview},
		"missing":               {map[string]any{"amount": 0.1}, ledger.StatusReview},
	} {
		s := &shelf{}
		w := s.write("a", expect)
		w.Send = func(_ context.Context, stamp string) error {
			s.records = append(s.records, once.Record{Stamp: stamp, Fields: c.found})
			return nil
		}
		if out, err := once.Do(t.Context(), ledger.NewMemory(), w); out.Status != c.want || (err == nil) != (c.want == ledger.Verified) {
			t.Errorf("%s: %s, %v %s; want %s", name, out.Status, err, out.Mismatches, c.want)
		}
	}
}

// A record whose fields cannot be read is no record that is missing: nothing is sent, or sent again.
func TestFoundThatIsNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, found := range map[string]any{"nil": nil, "a number": 7, "NaN": map[string]any{"a": math.NaN()}} {
			s := &shelf{}
			w := s.write("a", paid)
			w.Find = func(_ context.Context, stamp string) ([]once.Record, error) {
				return []once.Record{{Stamp: stamp, Fields: found}}, nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if out, err := once.Do(ctx, ledger.NewMemory(), w); err == nil || s.sends != 0 {
				t.Errorf("%s: %s, %v after %d sends; want an error and none", name, out.Status, err, s.sends)
			}
			cancel()
		}
	})
}

// Records of other keys are never this write's own.
func TestFindThatReturnsOtherRecords(t *testing.T) {
	s, store := &shelf{}, ledger.NewMemory()
	all := func(context.Context, string) ([]once.Record, error) { return s.records, nil }
	a := s.write("a", paid)
	if _, err := once.Do(t.Context(), store, a); err != nil {
		t.Fatal(err)
	}
	b := s.write("b", paid)
	b.Find = all
	if out, err := once.Do(t.Context(), store, b); out.Status != ledger.StatusReview || err == nil || s.sends != 1 {
		t.Errorf("%s, %v after %d sends in all; want a review and no send of the second", out.Status, err, s.sends)
	}
}

func TestStoreThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, when := range []string{"before", "in Find", "in Send", "after"} {
			s := &shelf{}
			file := filepath.Join(t.TempDir(), "once.db")
			store, err := sqlite.Open(t.Context(), file, nil)
			if err != nil {
				t.Fatal(err)
			}
			w := s.write("a", paid)
			closing := w
			closing.Find = func(ctx context.Context, stamp string) ([]once.Record, error) {
				if when == "in Find" {
					_ = store.Close()
				}
				return w.Find(ctx, stamp)
			}
			closing.Send = func(ctx context.Context, stamp string) error {
				if when == "in Send" {
					_ = store.Close()
				}
				return w.Send(ctx, stamp)
			}
			if when == "before" {
				_ = store.Close()
			}
			out, err := once.Do(t.Context(), store, closing)
			if (err == nil) != (when == "after") || out.Status.Group() == ledger.Done && err != nil {
				t.Errorf("closed %s: %q, %v", when, out.Status, err)
			}
			_ = store.Close()
			if store, err = sqlite.Open(t.Context(), file, nil); err != nil {
				t.Fatal(err)
			}
			if out, err := once.Do(t.Context(), store, w); err != nil || len(s.records) != 1 {
				t.Errorf("closed %s: then %s, %v with %d records; want one", when, out.Status, err, len(s.records))
			}
			_ = store.Close()
		}
	})
}

// failing is a store of which one call fails, before or after it had its effect.
type failing struct {
	ledger.Ledger
	left  *atomic.Int64 // calls until then
	after bool
}

func (f failing) call(do func() error) error {
	if f.left.Add(-1) != 0 {
		return do()
	}
	if f.after {
		_ = do()
	}
	return errors.Join(ledger.ErrUnavailable, ledger.ErrUnsure)
}

func (f failing) Precheck(ctx context.Context, r ledger.Record) (found ledger.Precheck, err error) {
	err = f.call(func() (err error) { found, err = f.Ledger.Precheck(ctx, r); return err })
	return found, err
}

func (f failing) Reserve(ctx context.Context, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	err = f.call(func() (err error) { rec, fresh, err = f.Ledger.Reserve(ctx, r); return err })
	return rec, fresh, err
}

func (f failing) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	err = f.call(func() (err error) { rec, err = f.Ledger.Append(ctx, id, fence, events...); return err })
	return rec, err
}

func (f failing) Get(ctx context.Context, tenant string, id ledger.ID) (rec ledger.Record, err error) {
	err = f.call(func() (err error) { rec, err = f.Ledger.Get(ctx, tenant, id); return err })
	return rec, err
}

func (f failing) Claim(ctx context.Context, c ledger.Claim) (recs []ledger.Record, err error) {
	err = f.call(func() (err error) { recs, err = f.Ledger.Claim(ctx, c); return err })
	return recs, err
}

// Each call of a store fails once, in a call of Do whose request or response is lost. There is an error,
// and the next call continues. Where the effect can be read, that one need not wait for the lease of the first.
func TestStoreThatFails(t *testing.T) {
	for _, applied := range []bool{true, false} {
		for _, after := range []bool{false, true} {
			failed := int64(1)
			for met := true; met; failed++ {
				synctest.Test(t, func(t *testing.T) {
					s, store := &shelf{}, failing{ledger.NewMemory(), new(atomic.Int64), after}
					store.left.Store(failed)
					w, lost := s.write("a", paid), false
					send := w.Send
					w.Send = func(ctx context.Context, stamp string) error {
						if !lost {
							lost = true
							if applied {
								_ = send(ctx, stamp)
							}
							return errors.New("the connection was reset")
						}
						return send(ctx, stamp)
					}
					out, err := once.Do(t.Context(), store, w)
					if met = store.left.Load() <= 0; met && (err == nil || out.ID != "") {
						t.Errorf("call %d failed: %s, %v; want an error", failed, out.Status, err)
					}
					there, began := len(s.records) == 1, time.Now()
					store.left.Store(0) // none fails
					if out, err = once.Do(t.Context(), store, w); err != nil || len(s.records) != 1 {
						t.Errorf("call %d failed: then %s, %v with %d records; want one", failed, out.Status, err, len(s.records))
					}
					if took := time.Since(began); there && runtime.GOOS == "linux" && took > 2*time.Second {
						t.Errorf("call %d failed: done after %v", failed, took)
					}
				})
			}
			if failed < 4 {
				t.Errorf("only %d calls of the store failed", failed-2)
			}
		}
	}
}

// shared is a store of an engine with destinations of its own, and many open writes.
type shared struct {
	ledger.Ledger
	t *testing.T
}

func (s shared) QueueStats(ctx context.Context) (ledger.QueueStats, error) {
	s.t.Error("all open writes were counted")
	return s.Ledger.QueueStats(ctx)
}

func (s shared) KeepByDefault(func(ledger.Record) (ledger.Record, error)) {
	s.t.Error("entries of an outbox would be kept by what this package knows of their destinations")
}

// A call costs no more where many writes are open, and decides nothing about those of others.
func TestStoreThatIsShared(t *testing.T) {
	store := shared{ledger.NewMemory(), t}
	for range 2 {
		if out, err := once.Do(t.Context(), store, (&shelf{}).write("a", paid)); err != nil {
			t.Errorf("%s, %v", out.Status, err)
		}
	}
}

// Two programs that use one key for two things: the second is refused, also where the fields are equal
// and only the types have different names.
func TestOneKeyForTwoThings(t *testing.T) {
	type charge struct{ Cents int }
	type refund struct{ Cents int }
	s, store := &shelf{}, ledger.NewMemory()
	if _, err := once.Do(t.Context(), store, s.write("INV-1", charge{5})); err != nil {
		t.Fatal(err)
	}
	for _, expect := range []any{refund{5}, charge{6}, map[string]any{"Cents": 5}} {
		if out, err := once.Do(t.Context(), store, s.write("INV-1", expect)); !errors.Is(err, ledger.ErrDigestMismatch) || out.ID != "" {
			t.Errorf("%#v: %q, %v; want a refusal", expect, out.Status, err)
		}
	}
	if out, err := once.Do(t.Context(), store, s.write("INV-1", &charge{5})); err != nil || !out.Replayed {
		t.Errorf("a pointer to the same: %s, %v; want the same outcome", out.Status, err)
	}
	if s.sends != 1 {
		t.Errorf("%d sends, want 1", s.sends)
	}
}

// Errors of a known kind are of package connectors.
func TestErrorsOfSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		for name, c := range map[string]struct {
			err   error // of the first send, which has no effect
			want  ledger.Status
			sends int
		}{
			"refused":   {connectors.Refused("402", failed), ledger.NotApplied, 0},
			"wrapped":   {fmt.Errorf("charge: %w", connectors.Refused("402", failed)), ledger.NotApplied, 0},
			"not sent":  {connectors.NotSent(failed), ledger.Verified, 1},
			"throttled": {connectors.Throttled(time.Second, failed), ledger.Verified, 1},
			"login":     {connectors.LoginRefused("401", failed), ledger.Verified, 1},
			"unknown":   {failed, ledger.Verified, 1},
		} {
			s, store, sent := &shelf{}, ledger.NewMemory(), false
			w := s.write("a", paid)
			send := w.Send
			w.Send = func(ctx context.Context, stamp string) error {
				if !sent {
					sent = true
					return c.err
				}
				return send(ctx, stamp)
			}
			for range 2 {
				out, err := once.Do(t.Context(), store, w)
				if out.Status != c.want || (err == nil) != (c.want == ledger.Verified) || s.sends != c.sends {
					t.Errorf("%s: %s, %v, %d more sends; want %s after %d", name, out.Status, err, s.sends, c.want, c.sends)
				}
			}
		}
	})
}

// The error of a write that is not done has the last error of its functions.
func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("no such host")
		for name, c := range map[string]struct {
			spoil func(*once.Write)
			want  ledger.Status
			text  string
		}{
			"Send": {func(w *once.Write) { w.Send = func(context.Context, string) error { return failed } }, ledger.StatusReview, "Send: no such host"},
			"Send refused": {func(w *once.Write) {
				w.Send = func(context.Context, string) error { return connectors.Refused("402", failed) }
			}, ledger.NotApplied, "no such host"},
			"Send panics": {func(w *once.Write) { w.Send = func(context.Context, string) error { panic("no such host") } }, ledger.StatusReview, "Send: the function panicked: no such host"},
			"Find": {func(w *once.Write) {
				w.Find = func(context.Context, string) ([]once.Record, error) { return nil, failed }
			}, ledger.InProgress, "Find: no such host"},
		} {
			w := (&shelf{}).write("a", paid)
			w.Horizon = connectors.Bound{}
			c.spoil(&w)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			out, err := once.Do(ctx, ledger.NewMemory(), w)
			cancel()
			if out.Status != c.want || !errors.Is(err, once.ErrNotVerified) || !strings.Contains(fmt.Sprint(err), c.text) || errors.Is(err, failed) == (name == "Send panics") {
				t.Errorf("%s: %s, %v; want %s because of %q", name, out.Status, err, c.want, c.text)
			}
		}
	})
}

// A write in review waits for a decision, and each decision ends it.
func TestDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			d       engine.Decision
			want    ledger.Status
			records int
		}{
			{engine.Decision{Word: engine.WordAccept}, ledger.Accepted, 0},
			{engine.Decision{Word: engine.WordAbandon}, ledger.Abandoned, 0},
			{engine.Decision{Word: engine.WordRetry}, ledger.StatusReview, 0}, // nothing proves that it is harmless
			{engine.Decision{Word: engine.WordRetry, Force: true}, ledger.Verified, 1},
		} {
			s, store := &shelf{}, ledger.NewMemory()
			w := s.write("a", paid)
			w.Horizon = connectors.Bound{}
			lost := w
			lost.Send = func(context.Context, string) error { return errors.New("the connection was reset") }
			if out, err := once.Do(t.Context(), store, lost); out.Status != ledger.StatusReview || err == nil {
				t.Fatalf("%s, %v; want review", out.Status, err)
			}
			c.d.By, c.d.Reason = "ada", "looked at the bank's page"
			other := w
			other.Expect = map[string]any{"paid": false}
			if _, err := once.Decide(t.Context(), store, other, c.d); !errors.Is(err, ledger.ErrDigestMismatch) {
				t.Errorf("%s: about another content: %v; want a refusal", c.d.Word, err)
			}
			out, err := once.Decide(t.Context(), store, w, c.d)
			if out.Status != c.want || (err == nil) != (c.want.Group() == ledger.Done) {
				t.Errorf("%s: %s, %v; want %s", c.d.Word, out.Status, err, c.want)
			}
			again, err := once.Do(t.Context(), store, w)
			if again.Status != c.want || (err == nil) != (c.want.Group() == ledger.Done) || len(s.records) != c.records {
				t.Errorf("%s: then %s, %v with %d records; want %s with %d", c.d.Word, again.Status, err, len(s.records), c.want, c.records)
			}
		}
		if _, err := once.Decide(t.Context(), ledger.NewMemory(), (&shelf{}).write("a", paid), engine.Decision{Word: engine.WordAccept, By: "ada", Reason: "r"}); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("a decision about no write: %v", err)
		}
	})
}

// A read that fails shows nothing, and is not a read that finds nothing.
func TestFindThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store, failing := &shelf{}, ledger.NewMemory(), false
		w := s.write("a", paid)
		send, find := w.Send, w.Find
		w.Send = func(ctx context.Context, stamp string) error {
			failing = true
			return errors.Join(send(ctx, stamp), errors.New("the connection was reset"))
		}
		w.Find = func(ctx context.Context, stamp string) ([]once.Record, error) {
			if failing {
				return nil, errors.New("503")
			}
			return find(ctx, stamp)
		}
		if out, err := once.Do(t.Context(), store, w); out.Status != ledger.StatusReview || err == nil || s.sends != 1 {
			t.Errorf("%s, %v after %d sends; want review after one", out.Status, err, s.sends)
		}
		failing = false
		time.Sleep(time.Hour)
		if out, err := once.Do(t.Context(), store, w); err != nil || s.sends != 1 {
			t.Errorf("%s, %v after %d sends; want it verified after one", out.Status, err, s.sends)
		}
	})
}

// A store that was lost, or that is empty since it was in memory: what Find shows is the write's own,
// and is not made again.
func TestStoreThatIsLost(t *testing.T) {
	s := &shelf{}
	w := s.write("a", paid)
	for range 2 {
		if out, err := once.Do(t.Context(), ledger.NewMemory(), w); out.Status != ledger.Verified || err != nil {
			t.Errorf("%s, %v", out.Status, err)
		}
	}
	w.Expect = map[string]any{"paid": false}
	if out, err := once.Do(t.Context(), ledger.NewMemory(), w); out.Status != ledger.StatusReview || err == nil {
		t.Errorf("another content: %s, %v; want review", out.Status, err)
	}
	if s.sends != 1 {
		t.Errorf("%d sends, want 1", s.sends)
	}
}

// Where a key is done, the closures of another program are not called.
func TestOtherClosures(t *testing.T) {
	s, store := &shelf{}, ledger.NewMemory()
	w := s.write("a", paid)
	if _, err := once.Do(t.Context(), store, w); err != nil {
		t.Fatal(err)
	}
	w.Send = func(context.Context, string) error { t.Error("Send of the other program was called"); return nil }
	w.Find = func(context.Context, string) ([]once.Record, error) {
		t.Error("Find of the other program was called")
		return nil, nil
	}
	if out, err := once.Do(t.Context(), store, w); err != nil || !out.Replayed {
		t.Errorf("%s, %v; want the first outcome", out.Status, err)
	}
}

// The closures see the values of the caller's context, and not its end.
func TestContextOfClosures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		s, calls := &shelf{}, 0
		w := s.write("a", paid)
		send, find := w.Send, w.Find
		check := func(ctx context.Context) {
			calls++
			if ctx.Value(key{}) != "ada" || ctx.Err() != nil {
				t.Errorf("value %v, %v", ctx.Value(key{}), ctx.Err())
			}
			if end, ok := ctx.Deadline(); !ok || time.Until(end) > 30*time.Second {
				t.Error("the context does not end in time")
			}
		}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "ada"))
		w.Send = func(ctx context.Context, stamp string) error { cancel(); check(ctx); return send(ctx, stamp) }
		w.Find = func(ctx context.Context, stamp string) ([]once.Record, error) { check(ctx); return find(ctx, stamp) }
		_, _ = once.Do(ctx, ledger.NewMemory(), w)
		synctest.Wait()
		if calls < 2 {
			t.Errorf("%d calls, want at least 2", calls)
		}
	})
}

// A store that is a wrapper and no pointer is one as well.
func TestStoreThatIsNoKey(t *testing.T) {
	type wrapper struct {
		ledger.Ledger
		_ []string
	}
	s, store := &shelf{}, wrapper{Ledger: ledger.NewMemory()}
	for range 2 {
		if out, err := once.Do(t.Context(), store, s.write("a", paid)); err != nil || s.sends != 1 {
			t.Errorf("%s, %v after %d sends", out.Status, err, s.sends)
		}
	}
}

// A caller whose time is over gets nothing, or what is recorded.
func TestEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, store := &shelf{}, ledger.NewMemory()
		w := s.write("a", paid)
		w.Horizon = connectors.Bound{}
		w.Send = func(context.Context, string) error { return errors.New("the connection was reset") }
		if out, err := once.Do(ctx, store, w); out.Status != ledger.StatusReview || !errors.Is(err, once.ErrNotVerified) {
			t.Errorf("%s, %v; want review", out.Status, err)
		}
		time.Sleep(time.Hour) // a read is due
		find := w.Find
		w.Find = func(ctx context.Context, stamp string) ([]once.Record, error) {
			cancel()
			time.Sleep(time.Second)
			return find(ctx, stamp)
		}
		if out, err := once.Do(ctx, store, w); out.Status != ledger.StatusReview || !errors.Is(err, once.ErrNotVerified) || ctx.Err() == nil {
			t.Errorf("ended in the read: %s, %v; want review", out.Status, err)
		}
		if out, err := once.Do(ctx, store, s.write("b", paid)); out.ID != "" || !errors.Is(err, context.Canceled) || s.sends != 0 {
			t.Errorf("ended before: %s, %v after %d sends; want nothing begun", out.Status, err, s.sends)
		}
		time.Sleep(time.Minute) // the read ends
	})
}
