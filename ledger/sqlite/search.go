package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

//go:embed sql/insert_workflow.sql
var sqlInsertWorkflow string

//go:embed sql/forget_workflow.sql
var sqlForgetWorkflow string

//go:embed sql/search_workflow.sql
var sqlSearchWorkflow string

//go:embed sql/search_correlation.sql
var sqlSearchCorrelation string

//go:embed sql/search_operation.sql
var sqlSearchOperation string

//go:embed sql/extent.sql
var sqlExtent string

//go:embed sql/search_nothing.sql
var sqlSearchNothing string

//go:embed sql/search_about.sql
var sqlSearchAbout string

//go:embed sql/search_state.sql
var sqlSearchState string

// Find implements [ledger.Ledger]. What it walks through is the writes with the
// word that is likely to select most, or else those in the states; all else is
// looked at in their rows.
func (l *Ledger) Find(ctx context.Context, s ledger.Search) (found ledger.Found, err error) {
	s, err = s.Checked()
	if err != nil {
		return ledger.Found{}, err
	}
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		newest, err := l.clock(conn)
		if err != nil {
			return err
		}
		numbers, err := l.candidates(conn, s)
		if err == nil {
			found, err = l.pick(conn, s, numbers, clamp(l.now(), newest))
		}
		return err
	})
	if err != nil {
		return ledger.Found{}, err
	}
	return found, nil
}

// walk is one way through the writes in the order of their creation.
type walk struct{ query, word string }

// walks are the ways through the writes that a search may select.
func walks(s ledger.Search) (all []walk) {
	switch {
	case s.KeyDigest != "":
		return []walk{{sqlSearchAbout, s.KeyDigest}}
	case s.IdempotencyKey != "":
		return []walk{{sqlSearchOperation, s.IdempotencyKey}, {sqlSearchNothing, s.IdempotencyKey}}
	case s.CorrelationID != "":
		return []walk{{sqlSearchCorrelation, s.CorrelationID}}
	case s.Workflow != "":
		return []walk{{sqlSearchWorkflow, s.Workflow}}
	}
	wanted := s.Walk()
	if len(wanted) == 0 {
		wanted = states
	}
	for _, state := range wanted {
		all = append(all, walk{sqlSearchState, string(state)})
	}
	return all
}

// upwards is a walk from the oldest on.
var upwards = strings.NewReplacer("s.n < ?3", "s.n > ?3", "s.n DESC", "s.n")

// candidates are the numbers of the next writes to look at, one more than are
// looked at.
func (l *Ledger) candidates(conn *sqlite.Conn, s ledger.Search) (numbers []int64, err error) {
	after := int64(math.MaxInt64)
	if s.Oldest {
		after = 0
	}
	if s.After != "" {
		after, _ = ledger.FoundAfter(s.After) // it was checked
	}
	for _, w := range walks(s) {
		if s.Oldest {
			w.query = upwards.Replace(w.query)
		}
		q, err := l.statement(conn, w.query)
		if err != nil {
			return nil, err
		}
		lots := []int64{0}
		if s.KeyDigest != "" {
			if lots, err = l.lots(conn, s, after); err != nil {
				return nil, err
			}
		}
		for _, lot := range lots {
			q.BindText(1, s.Tenant)
			q.BindText(2, w.word)
			q.BindInt64(3, after)
			q.BindInt64(4, ledger.MaxLooked+1)
			if s.KeyDigest != "" {
				q.BindInt64(5, lot)
			}
			if err := each(l.path, q, func() error { numbers = append(numbers, q.ColumnInt64(0)); return nil }); err != nil {
				return nil, err
			}
			if s.KeyDigest != "" && len(numbers) > ledger.MaxLooked {
				break
			}
		}
	}
	slices.Sort(numbers)
	if !s.Oldest {
		slices.Reverse(numbers)
	}
	return numbers[:min(len(numbers), ledger.MaxLooked+1)], nil
}

// lot is how many writes stand together in the index of key digests, as its
// migration says. More would spread a write's page over more of the file, fewer
// would make a search ask more lots: 4,000 of a million writes, some milliseconds.
const lot = 256

// lots are those that a search by key digest asks, in its order.
func (l *Ledger) lots(conn *sqlite.Conn, s ledger.Search, after int64) (lots []int64, err error) {
	q, err := l.statement(conn, sqlExtent)
	if err != nil {
		return nil, err
	}
	first, last := int64(0), int64(0)
	err = each(l.path, q, func() error { first, last = q.ColumnInt64(0), q.ColumnInt64(1); return nil })
	if s.Oldest {
		first = max(first, after)
	} else {
		last = min(last, after)
	}
	for of := first / lot; of <= last/lot; of++ {
		lots = append(lots, of)
	}
	if !s.Oldest {
		slices.Reverse(lots)
	}
	return lots, err
}

// pick looks at writes in their order, until a page is full.
func (l *Ledger) pick(conn *sqlite.Conn, s ledger.Search, numbers []int64, now time.Time) (found ledger.Found, err error) {
	q, err := l.statement(conn, sqlNumbered)
	if err != nil {
		return found, err
	}
	for i, n := range numbers {
		if len(found.Records) == s.Limit || len(found.Unread) == ledger.MaxUnread || i == ledger.MaxLooked {
			found.Next = ledger.FoundCursor(numbers[i-1])
			return found, nil
		}
		q.BindInt64(1, n)
		ends := false
		err := each(l.path, q, func() error {
			if ends = s.Ends(moment(q, 6)); ends || !mayFit(s, q) {
				return nil
			}
			r, err := scan(q, 0)
			switch {
			case err != nil && ofOneRow(err):
				found.Unread = append(found.Unread, ledger.Unread{ID: r.rec.ID, Err: err})
				return nil
			case err == nil && s.Selects(r.rec):
				r.rec.Now = now
				found.Records = append(found.Records, r.rec)
			}
			return err
		})
		if err != nil || ends {
			return found, err
		}
	}
	return found, nil
}

// mayFit reports whether a row can be one that is asked for, as far as its columns
// tell.
func mayFit(s ledger.Search, q *sqlite.Stmt) bool {
	state, destination, created := ledger.State(q.ColumnText(7)), q.ColumnText(18), moment(q, 6)
	wanted := s.Walk()
	return (len(wanted) == 0 || slices.Contains(wanted, state)) &&
		(s.Destination == "" || cmp.Or(destination, s.Destination) == s.Destination) && // version 1 had none
		!created.Before(s.Since) && (s.Until.IsZero() || created.Before(s.Until))
}

// nameWorkflow keeps, or forgets, what a write is found by.
func (t *tx) nameWorkflow(s *sqlite.Stmt, n int64, r ledger.Record) error {
	s.BindText(1, r.Tenant)
	s.BindText(2, r.Workflow)
	s.BindInt64(3, n)
	if s == t.insertWorkflow {
		s.BindText(4, r.CorrelationID)
	}
	return exec(t.path, s)
}
