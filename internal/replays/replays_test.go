package replays_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/replays"
	"github.com/readback-go/readback/ledger"
)

// counting runs a counter until the returned function is called.
func counting(t *testing.T, notes ledger.Documents) (c *replays.Counter, end func()) {
	t.Helper()
	c = replays.New(notes, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Work(ctx); err != nil {
			t.Error(err)
		}
	}()
	return c, func() { cancel(); <-done }
}

func counted(t *testing.T, notes ledger.Documents, tenant string, since, until time.Time) map[time.Time]int {
	t.Helper()
	found, err := replays.Counted(t.Context(), notes, tenant, since, until)
	if err != nil {
		t.Fatal(err)
	}
	all := map[time.Time]int{}
	for _, f := range found {
		all[f.From] += f.N
	}
	return all
}

// The counts of several processes, also of ended ones, are shown together by tenant and time.
func TestCountsOfAllProcessesStandTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, start := ledger.NewMemory(), time.Now().UTC().Truncate(replays.Step)
		one, endOne := counting(t, book)
		other, endOther := counting(t, book)
		one.Repeated(ledger.Record{Tenant: "acme"})
		one.Repeated(ledger.Record{Tenant: "umbrella"})
		other.Repeated(ledger.Record{Tenant: "acme"})
		endOne()
		time.Sleep(replays.Step)
		other.Repeated(ledger.Record{Tenant: "acme"})
		other.Repeated(ledger.Record{Tenant: "acme"})
		time.Sleep(time.Minute) // it writes by itself
		until := time.Now().Add(time.Hour)
		if diff := cmp.Diff(map[time.Time]int{start: 2, start.Add(replays.Step): 2}, counted(t, book, "acme", start, until)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[time.Time]int{start: 1}, counted(t, book, "umbrella", start, until)); diff != "" {
			t.Error(diff)
		}
		if got := counted(t, book, "acme", start.Add(replays.Step), start.Add(replays.Step)); len(got) != 0 {
			t.Errorf("%v in no time at all", got)
		}
		endOther()
	})
}

func TestOldCountsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, start := ledger.NewMemory(), time.Now()
		gone, end := counting(t, book)
		gone.Repeated(ledger.Record{Tenant: "acme"})
		end()
		c, end := counting(t, book)
		defer end()
		c.Repeated(ledger.Record{Tenant: "acme"})
		time.Sleep(replays.Kept + time.Hour)
		c.Repeated(ledger.Record{Tenant: "acme"})
		time.Sleep(time.Minute)
		total := 0
		for _, n := range counted(t, book, "acme", start, time.Now()) {
			total += n
		}
		notes, _, err := book.Notes(t.Context(), "")
		if err != nil || len(notes) != 1 || total != 1 {
			t.Errorf("%d notes hold %d repeats, %v; want the new one alone", len(notes), total, err)
		}
	})
}

// away is a ledger that cannot be written to for a while.
type away struct {
	*ledger.Memory
	down atomic.Bool
}

func (a *away) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	if a.down.Load() {
		return ledger.Note{}, errors.Join(ledger.ErrUnavailable, errors.New("connection refused"))
	}
	return a.Memory.SetNote(ctx, n)
}

func TestWhatCannotBeWrittenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, start := &away{Memory: ledger.NewMemory()}, time.Now()
		book.down.Store(true)
		c, end := counting(t, book)
		defer end()
		c.Repeated(ledger.Record{Tenant: "acme"})
		time.Sleep(time.Minute)
		synctest.Wait()
		book.down.Store(false)
		time.Sleep(time.Minute)
		if got := counted(t, book, "acme", start, time.Now()); len(got) != 1 {
			t.Fatalf("%v", got)
		}
		// The document was removed: it is written anew.
		notes, _, err := book.Notes(t.Context(), "")
		if err != nil || len(notes) != 1 {
			t.Fatal(notes, err)
		}
		if _, err := book.SetNote(t.Context(), ledger.Note{Name: notes[0].Name, Version: notes[0].Version}); err != nil {
			t.Fatal(err)
		}
		c.Repeated(ledger.Record{Tenant: "acme"})
		time.Sleep(time.Minute)
		if got := counted(t, book, "acme", start, time.Now()); !slices.Equal(values(got), []int{2}) {
			t.Errorf("%v after its note was removed", got)
		}
	})
}

func values(m map[time.Time]int) (all []int) {
	for _, n := range m {
		all = append(all, n)
	}
	return all
}
