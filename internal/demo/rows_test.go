package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A plain ledger that forgot its rows at a restart would lose unfairly.
func TestRowsSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.txt")
	for _, row := range []struct {
		id  string
		end ending
	}{{"order-001", endAnswered}, {"order-002", endUnanswered}} {
		r, err := openRows(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.add(row.id, row.end); err != nil {
			t.Fatal(err)
		}
		if err := r.f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := openRows(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.f.Close() })
	want := map[string]ending{"order-001": endAnswered, "order-002": endUnanswered}
	if diff := cmp.Diff(want, r.known); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestBrokenRowIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.txt")
	if err := os.WriteFile(path, []byte("order-001 answered\norder-00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openRows(path); err == nil || !strings.Contains(err.Error(), `row "order-00"`) {
		t.Errorf("openRows: %v, want an error that shows the row", err)
	}
}

// On a terminal the line is written over itself, which works for one row only.
func TestProgressFitsATerminal(t *testing.T) {
	s := newScreen(nil, orderCount)
	for _, tr := range trials() {
		s.set(tr, 100, 14)
	}
	s.set(trials()[3], 86, 14)
	const want = "naive 100, ledger 100, ledger+kills 100, readback 86, IMAP 100; leases run out"
	if got := s.line(); got != want || len(got) > 79 {
		t.Errorf("line %q (%d columns), want %q", got, len(got), want)
	}
	s.set(trials()[0], 99, 0)
	if got := s.line(); !strings.HasSuffix(got, "; kills 56") {
		t.Errorf("line %q, want the kills while there is work left", got)
	}
}
