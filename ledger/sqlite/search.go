package sqlite

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

// Find implements [ledger.Ledger]. It reads the writes with the term that is likely to be most
// selective, or else those in the states; all other conditions are checked in their rows.
func (l *Ledger) Find(ctx context.Context, s ledger.Search) (found ledger.SearchResult, err error) {
	s, err = s.Checked()
	if err == nil {
		s.KeyDigest, err = l.keeping.Digests.Of(s.KeyDigest)
	}
	if err != nil {
		return ledger.SearchResult{}, err
	}
	err = l.readNow(ctx, func(conn *sqlite.Conn, now time.Time) error {
		numbers, err := l.candidates(conn, s)
		if err == nil {
			found, err = l.pick(conn, s, numbers, now)
		}
		return err
	})
	if err != nil {
		return ledger.SearchResult{}, err
	}
	return found, nil
}

// search is one way to read the writes in the order of their creation: those with a word, or up
// to another one. Lot is how many are stored together; 0 for all.
type search struct {
	query, word, to string
	lot             int64
}

// searches returns the ways to read the writes that a search may select.
func searches(s ledger.Search) (all []search) {
	switch {
	case s.KeyDigest != "":
		return []search{{query: "search_key_digest", word: s.KeyDigest, lot: lot}}
	case s.IdempotencyKey != "":
		return []search{{query: "search_operation", word: s.IdempotencyKey}, {query: "search_not_blocking", word: s.IdempotencyKey}}
	case s.CorrelationID != "":
		return []search{{query: "search_correlation", word: s.CorrelationID}}
	case s.Workflow != "":
		return []search{{query: "search_workflow", word: s.Workflow}}
	case s.Query != "":
		for _, span := range s.Spans() {
			all = append(all, search{"search_terms", span[0], span[1], ledger.TermLot})
		}
		if span := s.IDSpan(); span[0] != "" {
			all = append(all, search{query: "search_id", word: span[0], to: span[1]})
		}
		return all
	}
	if len(s.Waits) > 0 {
		for _, w := range s.Waits {
			all = append(all, search{query: "search_waits", word: w.Text()})
		}
		return all
	}
	wanted := s.ScanStates()
	if len(wanted) == 0 {
		wanted = driver.States
	}
	for _, state := range wanted {
		all = append(all, search{query: "search_state", word: string(state)})
	}
	return all
}

// mostScanned is the most writes that one search reads. Of groups of waiting writes, nearly all
// that are read match.
func mostScanned(s ledger.Search) int {
	if len(s.Waits) > 0 && s.KeyDigest+s.IdempotencyKey+s.CorrelationID+s.Workflow+s.Query == "" {
		return s.Limit + ledger.MaxUnread
	}
	return ledger.MaxScanned
}

// candidates returns the numbers of the next writes to read, one more than are read.
func (l *Ledger) candidates(conn *sqlite.Conn, s ledger.Search) (numbers []int64, err error) {
	most := mostScanned(s)
	after := int64(math.MaxInt64)
	if s.Oldest {
		after = 0
	}
	if s.After != "" {
		after, _ = ledger.ParseSearchCursor(s.After) // it was checked
	}
	for _, w := range searches(s) {
		if s.Oldest {
			w.query += oldestFirst
		}
		q, err := l.statement(conn, w.query)
		if err != nil {
			return nil, err
		}
		lots := []int64{0}
		if w.lot > 0 {
			if lots, err = l.lots(conn, s, after, w.lot); err != nil {
				return nil, err
			}
		}
		read := 0
		for _, of := range lots {
			q.BindText(1, s.Tenant)
			q.BindText(2, w.word)
			q.BindInt64(3, after)
			q.BindInt64(4, int64(most)+1)
			if w.lot > 0 {
				q.BindInt64(5, of)
			}
			if w.to != "" {
				q.BindText(6, w.to)
			}
			if err := each(l.path, q, func() error { numbers = append(numbers, q.ColumnInt64(0)); read++; return nil }); err != nil {
				return nil, err
			}
			if read > most {
				break
			}
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	if !s.Oldest {
		slices.Reverse(numbers)
	}
	return numbers[:min(len(numbers), most+1)], nil
}

// lot is how many writes are stored together in the index of key digests, as its migration says.
// More would spread a write's page over more of the file; fewer would make a search read more
// lots: 4,000 for a million writes, some milliseconds.
const lot = 256

// lots returns those of a size that a search reads, in its order.
func (l *Ledger) lots(conn *sqlite.Conn, s ledger.Search, after, size int64) (lots []int64, err error) {
	q, err := l.statement(conn, "extent")
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
	for of := first / size; of <= last/size; of++ {
		lots = append(lots, of)
	}
	if !s.Oldest {
		slices.Reverse(lots)
	}
	return lots, err
}

// pick reads writes in their order, until a page is full.
func (l *Ledger) pick(conn *sqlite.Conn, s ledger.Search, numbers []int64, now time.Time) (found ledger.SearchResult, err error) {
	q, err := l.statement(conn, "found")
	if err != nil {
		return found, err
	}
	for i, n := range numbers {
		if len(found.Records) == s.Limit || len(found.Unread) == ledger.MaxUnread || i == mostScanned(s) {
			found.Next = ledger.SearchCursor(numbers[i-1])
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

// mayFit reports whether a row can match, as far as its columns show.
func mayFit(s ledger.Search, q *sqlite.Stmt) bool {
	state, destination, created := ledger.State(q.ColumnText(7)), q.ColumnText(18), moment(q, 6)
	wanted := s.ScanStates()
	return (len(wanted) == 0 || slices.Contains(wanted, state)) &&
		(s.Destination == "" || destination == s.Destination) &&
		!created.Before(s.Since) && (s.Until.IsZero() || created.Before(s.Until))
}

// writeSearch stores, or deletes, a write's search terms.
func (t *tx) writeSearch(s *sqlite.Stmt, n int64, r ledger.Record) error {
	s.BindText(1, r.Tenant)
	s.BindText(2, r.Workflow)
	s.BindInt64(3, n)
	if s == t.insertSearch {
		s.BindText(4, r.CorrelationID)
	}
	return exec(t.path, s)
}

// addTerms stores terms of a write.
func (t *tx) addTerms(n int64, tenant string, terms []ledger.Term) error {
	for _, term := range terms {
		t.insertTerm.BindInt64(1, n/ledger.TermLot)
		t.insertTerm.BindText(2, tenant)
		t.insertTerm.BindText(3, term.Stored())
		t.insertTerm.BindInt64(4, n)
		if err := exec(t.path, t.insertTerm); err != nil {
			return err
		}
	}
	return nil
}

// removeTerms deletes all terms of some writes of a tenant.
func (t *tx) removeTerms(tenant string, numbers []int64) error {
	lots := make(map[int64][]int64)
	for _, n := range numbers {
		lots[n/ledger.TermLot] = append(lots[n/ledger.TermLot], n)
	}
	for lot, numbers := range lots {
		text, err := json.Marshal(numbers)
		if err != nil {
			return err
		}
		t.deleteTerms.BindInt64(1, lot)
		t.deleteTerms.BindText(2, tenant)
		t.deleteTerms.BindText(3, string(text))
		if err := exec(t.path, t.deleteTerms); err != nil {
			return err
		}
	}
	return nil
}
