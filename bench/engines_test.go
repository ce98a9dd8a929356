//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger/postgres"
)

// The program of a worker is that of the test.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	is, err := workerMain(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if is {
		return
	}
	os.Exit(m.Run())
}

// TestAccount: the table's account finds a duplicate, a lost order and a wrong report where there is one,
// and none elsewhere.
func TestAccount(t *testing.T) {
	for _, c := range []struct {
		name     string
		faults   []orders.Fault // of the first request
		requests int
		removed  int
		reported end
		want     tally
	}{
		{"made once", nil, 1, 0, done, tally{}},
		{"made twice", nil, 2, 0, done, tally{Duplicates: 1, Wrong: 1}},
		{"made three times", nil, 3, 0, done, tally{Duplicates: 2, Wrong: 1}},
		{"not made, and reported as made", nil, 0, 0, done, tally{Lost: 1, Wrong: 1}},
		{"not made, and reported as not made", nil, 0, 0, failed, tally{Open: 1}},
		{"made, and reported as not made", nil, 1, 0, failed, tally{Wrong: 1}},
		{"a phantom success", []orders.Fault{{Kind: orders.PhantomSuccess}}, 1, 0, done, tally{Lost: 1, Wrong: 1}},
		{"a lost answer", []orders.Fault{{Kind: orders.LostAnswer}}, 1, 0, done, tally{}},
		{"a lost answer, and a repeat", []orders.Fault{{Kind: orders.LostAnswer, Times: 1}}, 2, 0, done, tally{Duplicates: 1, Wrong: 1}},
		{"a rollback", []orders.Fault{{Kind: orders.Rollback}}, 1, 0, done, tally{Lost: 1, Wrong: 1}},
		{"twice, and one is removed", nil, 2, 1, done, tally{Duplicates: 1}},
		{"another one after a rollback", []orders.Fault{{Kind: orders.Rollback, Times: 1}}, 2, 0, done, tally{}},
		{"made without a field", []orders.Fault{{Kind: orders.DroppedField}}, 1, 0, done, tally{Wrong: 1}},
		{"twice, and a reviewer is asked", nil, 2, 0, person, tally{Duplicates: 1, Person: 1}},
		{"no report", nil, 1, 0, "", tally{Open: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := declared(false)
			o.Faults = c.faults
			place, err := openShop(o, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = place.stop() }()
			for range c.requests {
				_ = charge(t.Context(), http.DefaultClient, trial{Destination: place.URL}, newOrder("A-1"))
			}
			for _, r := range place.World.Records("A-1")[:c.removed] {
				if err := place.World.Remove(r.ID); err != nil {
					t.Fatal(err)
				}
			}
			if got := account(place.World, []string{"A-1"}, map[string]end{"A-1": c.reported}); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestKnown: a workflow that failed before it asked for its write is not waited for, and one that has not ended is.
func TestKnown(t *testing.T) {
	m, err := newMachine(options{dir: os.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	if m.pg == nil {
		pgtest.Need(t, pgtest.ErrMissing)
	}
	dsn, drop, err := m.database()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = drop() })
	l, err := postgres.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	reported := map[string]end{"A-1": failed}
	if all, over, err := known(t.Context(), l, reported, 1); err != nil || !over || !maps.Equal(all, reported) {
		t.Errorf("one workflow of one: %v, %v, %v", all, over, err)
	}
	if all, over, err := known(t.Context(), l, reported, 2); err != nil || over {
		t.Errorf("one workflow of two: %v, %v, %v", all, over, err)
	}
}

// TestEngines: every engine that can run here repeats orders whose answers are lost alone, and none with
// readback.
func TestEngines(t *testing.T) {
	m, err := newMachine(options{dir: os.TempDir(), restate: os.Getenv("RESTATE_SERVER"), temporal: os.Getenv("TEMPORAL_SERVER")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	var left bytes.Buffer
	present := m.present(&left, engineNames)
	t.Log(left.String())
	s, err := startServers(m, present)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	lossy := trouble{name: "lost answers", faults: []orders.Fault{of(orders.LostAnswer, .5, 0)}}
	for _, c := range present {
		t.Run(c.name, func(t *testing.T) {
			alone, err := s.cell(t.Context(), c.name, false, 12, lossy, 1)
			if err != nil {
				t.Fatal(err)
			}
			if alone.Duplicates == 0 || alone.Wrong == 0 {
				t.Errorf("alone: %+v, want duplicates", alone)
			}
			with, err := s.cell(t.Context(), c.name, true, 12, lossy, 1)
			if err != nil || with != (tally{Sends: 12}) {
				t.Errorf("with readback: %+v, %v; want each order once", with, err)
			}
		})
	}
}

// TestEnginesTable: the table of figures that are known, and its place in a page.
func TestEnginesTable(t *testing.T) {
	e := enginesTable{
		n: 600, names: []string{"DBOS"}, before: "1, 2, 3",
		cells: map[string]map[string][2]tally{"DBOS": {"rollbacks": {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}}}},
		rates: map[string]map[pace]rates{"DBOS": {paces[0]: {[]float64{100, 200, 300}, []float64{180, 170, 190}}}},
	}
	page, err := insert([]byte("a\n"+tableBegins+"old\n"+tableEnds+"b\n"), e.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a\n" + tableBegins, tableEnds + "b\n",
		"| DBOS | rollbacks | 1 / 7 | 2 / 8 | 3 / 9 | 4 / 10 | 5 / 11 | 6 / 12 |\n",
		"| DBOS | 50 ms | 16 | 200 (100 to 300) | 180 (170 to 190) | 10 % |\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(string(page), "old") {
		t.Error("the old table is still there")
	}
	if _, err := insert([]byte("a page without marks"), "x"); err == nil {
		t.Error("a page without marks was accepted")
	}
}
