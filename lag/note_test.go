package lag_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

// opened is a book on the notes that is closed at the end of the test.
func opened(t *testing.T, notes ledger.Documents) *lag.Book {
	t.Helper()
	b := lag.New(notes, nil)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait() // it has loaded
	return b
}

// record records writes that became visible between the two.
func record(b *lag.Book, writes int, missed, seen time.Duration) {
	for range writes {
		b.Seen(ordersPath, missed, seen)
	}
}

// around reports whether the first read is made between the two.
func around(b *lag.Book, from, to time.Duration) bool {
	pause, ok := b.Next(ordersPath, 0, 0)
	return ok && pause >= from && pause <= to
}

func statsOf(t *testing.T, notes ledger.Documents) map[string]lag.PathLag {
	t.Helper()
	all, err := lag.Quantiles(t.Context(), notes)
	if err != nil {
		t.Fatal(err)
	}
	by := make(map[string]lag.PathLag)
	for _, l := range all {
		by[l.Path] = l
	}
	return by
}

const ms = time.Millisecond

func TestWorkersShareWhatTheyLearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := ledger.NewMemory()
		one, two := opened(t, notes), opened(t, notes)
		record(one, 6, 290*ms, 310*ms)
		record(two, 4, 290*ms, 310*ms)
		if around(one, 0, time.Hour) || around(two, 0, time.Hour) {
			t.Fatal("one of them knows enough by itself; nothing is shown")
		}
		time.Sleep(2*30*time.Second + time.Second) // each has saved, and loaded since
		for i, b := range []*lag.Book{one, two, opened(t, notes)} {
			if !around(b, 200*ms, 320*ms) {
				pause, ok := b.Next(ordersPath, 0, 0)
				t.Errorf("book %d: %s, %t; want a read near 300 ms, learned from both", i, pause, ok)
			}
		}
		for _, path := range []string{ordersPath.Path, ""} {
			l := statsOf(t, notes)[path]
			if math.Abs(l.Count-10) > 0.1 || l.P50 < 285*ms || l.P99 > 315*ms || l.P50 > l.P90 || l.P90 > l.P99 || l.At.IsZero() || l.Destination != "orders" {
				t.Errorf("path %q: %+v; want ten writes around 300 ms", path, l)
			}
		}
	})
}

// Repeated saves are not counted again.
func TestNothingIsCountedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := ledger.NewMemory()
		one, two := opened(t, notes), opened(t, notes)
		for range 50 {
			record(one, 3, 290*ms, 310*ms)
			record(two, 2, 290*ms, 310*ms)
			time.Sleep(31 * time.Second)
		}
		time.Sleep(time.Minute)
		if l := statsOf(t, notes)[ordersPath.Path]; math.Abs(l.Count-250) > 1 {
			t.Errorf("%v writes; want 250", l.Count)
		}
	})
}

func TestCloseSavesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := ledger.NewMemory()
		b := lag.New(notes, nil)
		synctest.Wait()
		record(b, 20, 290*ms, 310*ms)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
		if l := statsOf(t, notes)[ordersPath.Path]; math.Abs(l.Count-20) > 0.1 {
			t.Errorf("%+v; want 20 writes", l)
		}
	})
}

// A book that notices a change notifies the others, which do not restore what they knew.
func TestAllForgetTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := ledger.NewMemory()
		one, two := opened(t, notes), opened(t, notes)
		record(one, 200, 290*ms, 310*ms)
		time.Sleep(31 * time.Second)
		record(two, 100, 290*ms, 310*ms)
		record(one, 20, 1990*ms, 2010*ms)
		time.Sleep(2 * time.Minute)
		if !around(two, 1900*ms, 2050*ms) {
			pause, ok := two.Next(ordersPath, 0, 0)
			t.Errorf("the other reads after %s, %t; want near 2 s", pause, ok)
		}
		if l := statsOf(t, notes)[ordersPath.Path]; l.Count > 21 || l.P50 < 1900*ms {
			t.Errorf("the ledger has %+v; want the new writes alone", l)
		}
	})
}

// Weights do not grow forever, and fade if there are few writes. A destination that takes
// hundreds of writes a second has more of them between two notes than a note may hold.
func TestManyWritesBetweenTwoNotesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := ledger.NewMemory()
		for range 3 {
			b := lag.New(notes, nil)
			synctest.Wait()
			record(b, 20_000, 290*time.Millisecond, 310*time.Millisecond)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if got := statsOf(t, notes)[ordersPath.Path]; got.Count < 200 || got.Count > 1000 {
				t.Fatalf("%v writes are remembered; want up to 1000", got.Count)
			}
		}
		if !around(opened(t, notes), 280*time.Millisecond, 400*time.Millisecond) {
			t.Error("another worker does not know what was learned")
		}
	})
}

func TestOldWritesFade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := ledger.NewMemory()
		b := opened(t, notes)
		for range 40 {
			record(b, 100, 290*ms, 310*ms)
			time.Sleep(31 * time.Second)
		}
		if l := statsOf(t, notes)[ordersPath.Path]; l.Count > 1200 || l.Count < 300 {
			t.Errorf("%v of 4000 writes count; want 300 to 1200", l.Count)
		}
		before := statsOf(t, notes)[ordersPath.Path].Count
		for range 3 {
			time.Sleep(25 * time.Hour)
			record(b, 1, 290*ms, 310*ms)
			time.Sleep(time.Minute)
		}
		if after := statsOf(t, notes)[ordersPath.Path].Count; after > before/4 {
			t.Errorf("%v writes count after three days, %v before", after, before)
		}
	})
}

// moody are notes that fail on request.
type moody struct {
	ledger.Documents
	mu       sync.Mutex
	get, set error
}

func (m *moody) fail(get, set error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.get, m.set = get, set
}

func (m *moody) Notes(ctx context.Context, prefix string) ([]ledger.Note, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.get != nil {
		return nil, time.Time{}, m.get
	}
	return m.Documents.Notes(ctx, prefix)
}

func (m *moody) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set != nil {
		return ledger.Note{}, m.set
	}
	return m.Documents.SetNote(ctx, n)
}

// An unreachable ledger loses nothing and delays no write.
func TestAnUnreachableLedger(t *testing.T) {
	down := errors.New("away")
	for name, d := range map[string]struct {
		reason   string
		get, set error
	}{
		"not readable":       {"it is tried again", down, nil},
		"not writable":       {"it is tried again", nil, down},
		"others are quicker": {"it is tried again", nil, ledger.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				notes := &moody{Documents: ledger.NewMemory()}
				notes.fail(d.get, d.set)
				b := opened(t, notes)
				other := ordersPath
				other.Kind = "item"
				record(b, 10, 290*ms, 310*ms)
				b.Seen(other, 0, 0)
				time.Sleep(2 * time.Minute)
				if !around(b, 200*ms, 320*ms) {
					t.Error("it does not use what it has learned itself")
				}
				if err := b.Sync(t.Context()); err == nil && !errors.Is(d.set, ledger.ErrStale) {
					t.Error("that nothing was saved is not reported")
				}
				notes.fail(nil, nil)
				time.Sleep(time.Minute)
				all, err := lag.Quantiles(t.Context(), notes.Documents)
				if err != nil || len(all) != 4 {
					t.Fatalf("%+v, %v; want two kinds, each with its path and as a whole: %s", all, err, d.reason)
				}
				if l := statsOf(t, notes.Documents)[ordersPath.Path]; math.Abs(l.Count-10) > 0.1 {
					t.Errorf("%+v; want ten writes: %s", l, d.reason)
				}
			})
		})
	}
}

// An unreadable note is skipped, and logged once.
func TestNotesThatCannotBeRead(t *testing.T) {
	good := func() map[string]any {
		notes := ledger.NewMemory()
		b := lag.New(notes, nil)
		record(b, 20, 290*ms, 310*ms)
		_ = b.Sync(context.Background())
		_ = b.Close()
		all, _, _ := notes.Notes(context.Background(), "")
		for _, n := range all {
			var v map[string]any
			if err := json.Unmarshal(n.Value, &v); err == nil && v["path"] == ordersPath.Path {
				v["name"] = n.Name
				return v
			}
		}
		return nil
	}
	for name, d := range map[string]struct {
		reason string
		change func(v map[string]any) any
		mended bool // written anew when there is something to share
	}{
		"no JSON":         {"another actor damaged it", func(map[string]any) any { return nil }, true},
		"another type":    {"another actor damaged it", func(map[string]any) any { return []int{1} }, true},
		"no sketch":       {"another actor damaged it", func(v map[string]any) any { v["sketch"] = "AAAA////"; return v }, true},
		"cut":             {"another actor damaged it", func(v map[string]any) any { v["sketch"] = v["sketch"].(string)[:8]; return v }, true},
		"epoch":           {"none could follow", func(v map[string]any) any { v["epoch"] = int64(1) << 60; return v }, true},
		"huge":            {"no sketch is so large", func(v map[string]any) any { v["path"] = strings.Repeat("x", 100<<10); return v }, true},
		"later version":   {"a newer program wrote it", func(v map[string]any) any { v["v"] = 2; return v }, false},
		"another's place": {"it is about something else", func(v map[string]any) any { v["kind"] = "item"; return v }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := good()
				note := ledger.Note{Name: v["name"].(string)}
				delete(v, "name")
				note.Value, _ = json.Marshal(d.change(v))
				if name == "no JSON" {
					note.Value = []byte("\x00{")
				}
				notes := ledger.NewMemory()
				if _, err := notes.SetNote(t.Context(), note); err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				b := lag.New(notes, &lag.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				time.Sleep(5 * time.Minute)
				if around(b, 0, time.Hour) {
					t.Error("it is believed")
				}
				if n := strings.Count(log.String(), "passed over"); n != 1 {
					t.Errorf("logged %d times, want once:\n%s", n, log.String())
				}
				record(b, 20, 90*ms, 110*ms)
				if err := b.Close(); err != nil {
					t.Error(err)
				}
				all, _, _ := notes.Notes(t.Context(), note.Name)
				if mended := !bytes.Equal(all[0].Value, note.Value); mended != d.mended {
					t.Errorf("written anew: %t: %s", mended, d.reason)
				}
				if _, known := statsOf(t, notes)[ordersPath.Path]; known != d.mended {
					t.Errorf("shown afterwards: %t: %s", known, d.reason)
				}
			})
		})
	}
}

// No note, whatever it holds, causes more than a pause or none.
func FuzzNotes(f *testing.F) {
	notes := ledger.NewMemory()
	b := lag.New(notes, nil)
	run("learned", b, 100, lags["300ms/jitter"], rand.New(rand.NewPCG(1, 1)))
	if err := b.Close(); err != nil {
		f.Fatal(err)
	}
	all, _, err := notes.Notes(f.Context(), "")
	if err != nil || len(all) != 2 {
		f.Fatal(all, err)
	}
	for _, n := range all {
		f.Add(n.Value, []byte{})
		var v struct{ Sketch []byte }
		if err := json.Unmarshal(n.Value, &v); err != nil {
			f.Fatal(err)
		}
		f.Add(n.Value, v.Sketch)
		f.Add(n.Value, append(v.Sketch, 5, 255, 255, 255, 255, 1))
	}
	name := all[0].Name
	f.Fuzz(func(t *testing.T, value, sketch []byte) {
		var v map[string]any
		if len(sketch) > 0 && json.Unmarshal(value, &v) == nil && v != nil {
			v["sketch"] = sketch
			value, _ = json.Marshal(v)
		}
		if len(value) == 0 {
			return
		}
		notes := ledger.NewMemory()
		if _, err := notes.SetNote(t.Context(), ledger.Note{Name: name, Value: value}); err != nil {
			return // no ledger accepts it
		}
		b := lag.New(notes, nil)
		defer b.Close()
		if err := b.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, path := range []lag.Key{ordersPath, {Destination: "orders", Kind: "order"}} {
			for reads := range 3 {
				if pause, ok := b.Next(path, 10*ms, reads); pause < 0 || pause > 4*time.Hour || !ok && pause != 0 {
					t.Errorf("read %d: %s, %t", reads, pause, ok)
				}
			}
			b.Seen(path, 90*ms, 110*ms)
		}
		all, err := lag.Quantiles(t.Context(), notes)
		if err != nil {
			t.Error(err)
		}
		for _, l := range all {
			if l.P50 < 0 || l.P99 > 4*time.Hour || !(l.Count >= 0) {
				t.Errorf("%+v", l)
			}
		}
	})
}
