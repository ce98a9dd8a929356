package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestMain lets the test program be its own worker and destination.
func TestMain(m *testing.M) {
	if handled, code := Child(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// ownTemp makes a folder for everything that Run leaves lying about.
func ownTemp(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind in the temporary folder: %v", left)
	}
}

// TestDemo makes the whole demonstration, with its real processes and kills.
func TestDemo(t *testing.T) {
	dir := ownTemp(t)
	var out, progress bytes.Buffer
	o := Options{JSON: true, Progress: &progress, within: 5 * time.Minute} // other tests share the machine
	if err := Run(t.Context(), o, &out); err != nil {
		t.Errorf("Run: %v", err)
	}
	var got report
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatalf("the output: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("something follows the JSON object: %v", err)
	}
	want := report{Strategies: []Figures{
		{Strategy: "naive-retry", Destination: "orders", Orders: 100,
			SideEffectCalls: 120, BalanceCents: 239880, ExpectedCents: 199900, Duplicates: 20,
			AnswersLost: 20, Outcomes: map[string]int{"answered": 100}},
		{Strategy: "idempotency-ledger", Destination: "orders", Orders: 100,
			SideEffectCalls: 100, BalanceCents: 199900, ExpectedCents: 199900, Review: 20,
			AnswersLost: 20, Outcomes: map[string]int{"answered": 80, "unanswered": 20}},
		{Strategy: "idempotency-ledger-killed", Destination: "orders", Orders: 100,
			SideEffectCalls: 111, BalanceCents: 221889, ExpectedCents: 199900, Duplicates: 11, Review: 18,
			AnswersLost: 20, Kills: 14, Outcomes: map[string]int{"answered": 82, "unanswered": 18}},
		{Strategy: "readback-killed", Destination: "orders", Orders: 100,
			SideEffectCalls: 100, BalanceCents: 199900, ExpectedCents: 199900,
			AnswersLost: 20, Kills: 14},
		{Strategy: "readback-imap-killed", Destination: "imap", Orders: 100,
			SideEffectCalls: 100, AnswersLost: 20, Kills: 14},
	}}
	for i, f := range got.Strategies {
		if strings.HasPrefix(f.Strategy, "readback") {
			checkOutcomes(t, f)
			got.Strategies[i].Outcomes = nil
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Figures{})); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if !strings.Contains(progress.String(), "naive 100, ledger 100, ledger+kills 100, readback 100, IMAP 100") {
		t.Errorf("progress does not show the end:\n%s", &progress)
	}
	wantEmpty(t, dir)
	wantNoChildren(t)
}

// checkOutcomes tolerates a send that a busy machine made too slow: it counts as read back. The
// numbers of kills and losses are known.
func checkOutcomes(t *testing.T, f Figures) {
	t.Helper()
	o := f.Outcomes
	afterKill := o["recovered"] + o["sent_again"]
	if afterKill != f.Kills || o["read_back"] < 18 || o["at_once"]+o["read_back"]+afterKill != f.Orders {
		t.Errorf("%s: outcomes %v; want %d after a kill, 18 or more read back, and %d verified", f.Strategy, o, f.Kills, f.Orders)
	}
}

func TestReportForPeople(t *testing.T) {
	all := trials()
	grid := append(make([]ending, 0, 60), endAtOnce, endReadBack, endRecovered, endSentAgain, endReview, endOther)
	for len(grid) < 60 {
		grid = append(grid, endAtOnce)
	}
	r := report{Strategies: []Figures{
		{Orders: 1100, SideEffectCalls: 1320, BalanceCents: 2638680, ExpectedCents: 2198900, Duplicates: 220, AnswersLost: 220, trial: all[0]},
		{Orders: 1100, SideEffectCalls: 1099, BalanceCents: 2196901, ExpectedCents: 2198900, Lost: 1, Review: 220, AnswersLost: 220, trial: all[1]},
		{Orders: 1100, SideEffectCalls: 1111, BalanceCents: 2220889, ExpectedCents: 2198900, Duplicates: 11, Review: 209, AnswersLost: 220, Kills: 14, trial: all[2]},
		{Orders: 1100, SideEffectCalls: 1100, BalanceCents: 2198900, ExpectedCents: 2198900, AnswersLost: 220, Kills: 14, trial: all[3], grid: grid,
			Outcomes: map[string]int{"at_once": 55, "read_back": 1, "recovered": 1, "sent_again": 1, "review": 1, "other": 1}},
		{Orders: 1100, SideEffectCalls: 1100, AnswersLost: 220, Kills: 14, trial: all[4], Outcomes: map[string]int{"at_once": 1100}},
	}}
	want, err := os.ReadFile("testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), r.text()); diff != "" {
		t.Errorf("testdata/report.txt (-want +got):\n%s", diff)
	}
	for line := range strings.Lines(r.text()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}

func TestReadbackIsHeldToItsPromise(t *testing.T) {
	exact := Figures{Orders: 100, SideEffectCalls: 100, BalanceCents: 199900, ExpectedCents: 199900}
	tests := map[string]struct {
		strategy strategy
		change   func(*Figures)
		want     error
		reason   string
	}{
		"exact":            {readback, func(*Figures) {}, nil, "that is what is promised"},
		"one too many":     {readback, func(f *Figures) { f.SideEffectCalls++ }, errNotExact, "a second charge"},
		"a cent over":      {readback, func(f *Figures) { f.BalanceCents++ }, errNotExact, "another amount"},
		"a duplicate":      {readback, func(f *Figures) { f.Duplicates = 1 }, errNotExact, "one twice and one lost make 100 too"},
		"one lost":         {readback, func(f *Figures) { f.Lost = 1 }, errNotExact, "one twice and one lost make 100 too"},
		"one in review":    {readback, func(f *Figures) { f.Review = 1 }, errNotExact, "all of them can be settled here"},
		"another actor is": {plainLedger, func(f *Figures) { f.SideEffectCalls++ }, nil, "the others do not promise it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := exact
			f.trial.strategy = tc.strategy
			tc.change(&f)
			if err := (report{Strategies: []Figures{f}}).check(); !errors.Is(err, tc.want) {
				t.Errorf("check: %v, want %v: %s", err, tc.want, tc.reason)
			}
		})
	}
}

func TestDollars(t *testing.T) {
	tests := map[string]struct {
		cents  int64
		want   string
		reason string
	}{
		"nothing":   {0, "$0.00", "two places always"},
		"few cents": {5, "$0.05", "a leading zero in the cents"},
		"thousands": {239880, "$2,398.80", "commas"},
		"less":      {-1999, "-$19.99", "a lost order is charged less than expected"},
		"cents off": {-1, "-$0.01", "the sign stays when there are no dollars"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := dollars(tc.cents); got != tc.want {
				t.Errorf("dollars(%d) = %q, want %q: %s", tc.cents, got, tc.want, tc.reason)
			}
		})
	}
}

func TestKills(t *testing.T) {
	plan := kills(orderCount)
	before, after, both := 0, 0, 0
	for s := range plan {
		switch {
		case s.point == beforeSend:
			before++
		case loses(s.order):
			both++
			fallthrough
		default:
			after++
		}
	}
	if before != 3 || after != 11 || both != 2 {
		t.Errorf("%d kills before a send, %d after one, %d of these with a lost answer; want 3, 11, 2", before, after, both)
	}
	if diff := cmp.Diff(plan, kills(orderCount)); diff != "" {
		t.Errorf("another plan the second time: %s", diff)
	}
}
