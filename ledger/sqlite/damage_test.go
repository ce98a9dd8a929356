package sqlite_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/sqlite"
)

// Rows that are damaged by hand, in any state.
func TestDamagedRows(t *testing.T) {
	c := newClock()
	ledgertest.Damage(t, func(t *testing.T) (ledger.Ledger, ledgertest.Tear) {
		path := file(t)
		return open(t, path, &sqlite.Options{Now: c.now}), func(t *testing.T, id ledger.ID, contradict bool) {
			set := "body = 'x' || body"
			if contradict {
				set = "tool = 'another'"
			}
			sql(t, outsider(t, path), fmt.Sprintf("UPDATE ledger_writes SET %s WHERE id = '%s'", set, id))
		}
	}, ledgertest.Options{Sleep: c.move})
}

// waiting queues a write about a record, for any worker.
func waiting(t testing.TB, l ledger.Ledger, record, workflow string) ledger.Record {
	t.Helper()
	return waitingLong(t, l, record, workflow, "Invoice "+workflow)
}

func waitingLong(t testing.TB, l ledger.Ledger, record, workflow, description string) ledger.Record {
	t.Helper()
	w := asked(workflow)
	w.Key, w.Expect["description"] = intent.Fields{"reference": record}, description
	res := reservation(t, w)
	res.Owner, res.Events = "", nil
	rec, fresh, err := l.Reserve(context.Background(), res)
	if err != nil || !fresh {
		t.Fatalf("reserve %s: fresh %v, error %v", workflow, fresh, err)
	}
	return rec
}

// lent returns what a claim gets.
func lent(t testing.TB, l ledger.Ledger, limit int) []ledger.Record {
	t.Helper()
	recs, err := l.Claim(context.Background(), ledger.Claim{Owner: "w", LeaseFor: time.Minute, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

func finish(t testing.TB, l ledger.Ledger, rec ledger.Record) {
	t.Helper()
	if _, err := l.Append(context.Background(), rec.ID, rec.Fence, evSend, evSent, evRead, evSettle); err != nil {
		t.Fatal(err)
	}
}

// tear makes a row unreadable. It returns a function that repairs it.
func tear(t testing.TB, path string, rec ledger.Record) (mend func()) {
	t.Helper()
	other := outsider(t, path)
	const row = " WHERE id = '%s'"
	sql(t, other, fmt.Sprintf("UPDATE ledger_writes SET body = 'x' || body"+row, rec.ID))
	return func() {
		sql(t, other, fmt.Sprintf("UPDATE ledger_writes SET body = substr(body, 2), damaged = NULL"+row, rec.ID))
	}
}

// damagedOnes returns the damaged writes in queue stats.
func damagedOnes(t testing.TB, l *sqlite.Ledger) (ids []ledger.ID) {
	t.Helper()
	s, err := l.QueueStats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range s.Damaged {
		if d.Reason == "" || d.Tenant != "acme" {
			t.Errorf("%+v: want its tenant and why it cannot be read", d)
		}
		ids = append(ids, d.ID)
	}
	return ids
}

// An unreadable row is among others that are due: it is skipped and named, the others are leased,
// and once repaired it is work again.
func TestDamagedAmongOthers(t *testing.T) {
	for name, limit := range map[string]int{"one at a time": 1, "all at once": 10} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			l := open(t, path, nil)
			var recs []ledger.Record
			for i := range 4 {
				recs = append(recs, waiting(t, l, fmt.Sprint("r", i), fmt.Sprint("w", i)))
			}
			mends := []func(){tear(t, path, recs[0]), tear(t, path, recs[2])}
			var got []ledger.Record
			for range 5 {
				got = append(got, lent(t, l, limit)...)
			}
			if len(got) != 2 || got[0].ID != recs[1].ID || got[1].ID != recs[3].ID {
				t.Errorf("%d lent: %v; want the two that can be read", len(got), got)
			}
			if named := damagedOnes(t, l); len(named) != 2 || named[0] != recs[0].ID || named[1] != recs[2].ID {
				t.Errorf("named as damaged: %v", named)
			}
			for _, mend := range mends {
				mend()
			}
			if got := lent(t, l, 10); len(got) != 2 || got[0].ID != recs[0].ID {
				t.Errorf("%d lent after they were mended", len(got))
			}
			if named := damagedOnes(t, l); len(named) != 0 {
				t.Errorf("named as damaged: %v", named)
			}
		})
	}
}

// The next write in the queue cannot be read: the one before it is settled all the same, and once
// repaired the next one is freed, however large it is.
func TestDamagedNextInTheQueue(t *testing.T) {
	for name, size := range map[string]int{"small": 1, "larger than what is remembered": 8 << 10} {
		t.Run(name, func(t *testing.T) { damagedNextInTheQueue(t, strings.Repeat("w", size)) })
	}
}

func damagedNextInTheQueue(t *testing.T, description string) {
	path := file(t)
	l := open(t, path, nil)
	first, second := waiting(t, l, "r", "w1"), waitingLong(t, l, "r", "w2", description)
	third := waiting(t, l, "r", "w3")
	mend := tear(t, path, second)
	finish(t, l, lent(t, l, 1)[0])
	if got := lent(t, l, 10); len(got) != 0 {
		t.Fatalf("%v lent; the queue stops", got)
	}
	if named := damagedOnes(t, l); len(named) != 1 || named[0] != second.ID {
		t.Errorf("named as damaged: %v", named)
	}
	mend()
	got, err := l.Claim(t.Context(), ledger.Claim{Tenant: "acme", ID: second.ID, Owner: "w", LeaseFor: time.Minute, Early: true})
	if err != nil || len(got) != 1 || got[0].ID != second.ID || got[0].QueuedBehind != "" {
		t.Fatalf("%v lent, error %v; want the second, as %s is done", got, err, first.ID)
	}
	finish(t, l, got[0])
	if got := lent(t, l, 10); len(got) != 1 || got[0].ID != third.ID {
		t.Errorf("%v lent; want the third", got)
	}
}

// The last write in the queue cannot be read: new ones are queued behind it.
func TestDamagedLastInTheQueue(t *testing.T) {
	path := file(t)
	l := open(t, path, nil)
	first := waiting(t, l, "r", "w1")
	tear(t, path, first)
	second := waiting(t, l, "r", "w2")
	if second.QueuedBehind != first.ID {
		t.Errorf("behind %q, want %s", second.QueuedBehind, first.ID)
	}
	other := waiting(t, l, "another", "w3")
	if got := lent(t, l, 10); len(got) != 1 || got[0].ID != other.ID {
		t.Errorf("%v lent; want what has nothing to do with it", got)
	}
}
