package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxSearchRead is how many writes one statement of a search reads.
	maxSearchRead = 1000
	// maxLots is of how many lots one statement reads the terms: some milliseconds.
	maxLots = 512
)

// Find implements [ledger.Ledger]. It reads the writes with the term that is likely to be most
// selective, or else those in the states; all other conditions are checked in their rows. If a
// page needs more than one read, it is not all from one moment.
func (l *Ledger) Find(ctx context.Context, s ledger.Search) (found ledger.SearchResult, err error) {
	s, err = s.Checked()
	if err == nil {
		s.KeyDigest, err = l.keeping.Digests.Of(s.KeyDigest)
	}
	if err != nil {
		return ledger.SearchResult{}, err
	}
	after := int64(math.MaxInt64)
	if s.Oldest {
		after = 0
	}
	if s.After != "" {
		after, _ = ledger.ParseSearchCursor(s.After) // it was checked
	}
	lots, err := l.lots(ctx, s, after)
	if err != nil {
		return ledger.SearchResult{}, err
	}
	for scanned, step := 0, s.Limit+1; ; step = maxSearchRead {
		step = min(step, ledger.MaxScanned-scanned)
		want := s.Limit - len(found.Records)
		got, err := l.searchNext(ctx, s, after, step, want, lots)
		if err != nil {
			return ledger.SearchResult{}, err
		}
		last, full := got.into(&found, s)
		more, ends := got.scanned == step, got.ends(s)
		if got.scanned > 0 {
			scanned, after = scanned+got.scanned, got.last
		}
		if full || len(got.rows) == want { // matches may be between them
			after, more, ends = last, more || last != got.last, false
		}
		if !more && !ends {
			more = lots.next(s.Oldest)
		}
		switch {
		case !more || ends:
			return found, nil
		case full || scanned >= ledger.MaxScanned:
			found.Next = ledger.SearchCursor(after)
			return found, nil
		}
	}
}

// searched is the result of one read of some writes: those that may match, how many were read, the
// last of them, and when the first and the last were created.
type searched struct {
	rows                  []row
	scanned               int
	last, earliest, until int64
}

// into adds matches to a page, and returns the last row that was read for it, and whether the
// page is full then.
func (g searched) into(found *ledger.SearchResult, s ledger.Search) (last int64, full bool) {
	for _, r := range g.rows {
		switch {
		case r.unread != nil:
			found.Unread = append(found.Unread, ledger.Unread{ID: r.rec.ID, Err: r.unread})
		case s.Selects(r.rec):
			found.Records = append(found.Records, r.rec)
		}
		if last = r.n; len(found.Records) == s.Limit || len(found.Unread) == ledger.MaxUnread {
			return last, true
		}
	}
	return last, false
}

// ends reports whether no later write can be in the requested time.
func (g searched) ends(s ledger.Search) bool {
	if s.Oldest {
		return g.scanned > 0 && s.Ends(at(g.until))
	}
	return g.scanned > 0 && s.Ends(at(g.earliest))
}

// lots are those whose terms the next read of a search by text reads, and those that are left. The
// first read is of one lot, each further one of many more, up to [maxLots]: a text that begins many
// terms needs no more lots, and one that begins few is found in some reads.
type lots struct{ first, last, lowest, highest int64 }

// next moves to the lots after the present ones, and reports whether there are any.
func (w *lots) next(oldest bool) bool {
	more := min(8*(w.last-w.first+1), maxLots)
	if oldest {
		w.first, w.last = w.last+1, w.last+more
	} else {
		w.first, w.last = w.first-more, w.first-1
	}
	w.first, w.last = max(w.first, w.lowest), min(w.last, w.highest)
	return w.first <= w.last
}

// all returns the present lots.
func (w *lots) all() []int64 {
	all := make([]int64, 0, maxLots)
	for lot := w.first; lot <= w.last; lot++ {
		all = append(all, lot)
	}
	return all
}

// lots returns the first lots that a search reads; for one that reads no terms, none and no others.
func (l *Ledger) lots(ctx context.Context, s ledger.Search, after int64) (*lots, error) {
	w := &lots{highest: -1}
	if statement, _ := searchStatement(s); !strings.HasPrefix(statement, "search terms") {
		return w, nil
	}
	err := l.read(ctx, l.sql.Text("term_lots"), []any{s.Tenant, statesOf(nil)}, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&w.lowest, &w.highest); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if s.Oldest {
		w.lowest = max(w.lowest, after/ledger.TermLot)
		w.first, w.last = w.lowest, w.lowest
	} else {
		w.highest = min(w.highest, after/ledger.TermLot)
		w.first, w.last = w.highest, w.highest
	}
	return w, err
}

// statesOf returns the names of states, of all for none.
func statesOf(states []ledger.State) []string {
	if len(states) == 0 {
		states = driver.States
	}
	names := make([]string, 0, len(states))
	for _, state := range states {
		names = append(names, string(state))
	}
	return names
}

// searchNext reads the next writes of a search, up to a limit, and returns those that may match, at most
// as many as are wanted.
func (l *Ledger) searchNext(ctx context.Context, s ledger.Search, after int64, most, want int, lots *lots) (g searched, err error) {
	statement, term := searchStatement(s)
	wanted, ended := []string{}, []string{}
	for _, state := range s.ScanStates() {
		wanted = append(wanted, string(state))
	}
	for _, how := range s.Settlements {
		ended = append(ended, `%"settlement":"`+string(how)+`"%`)
	}
	since, until := int64(math.MinInt64), int64(math.MaxInt64)
	if !s.Since.IsZero() {
		since = nanos(s.Since)
	}
	if !s.Until.IsZero() {
		until = nanos(s.Until)
	}
	settledAnyhow := len(s.Settlements) == 0 || slices.Contains(s.States, ledger.Settled)
	args := []any{s.Tenant, after, int64(most), wanted, s.Destination, since, until, settledAnyhow, ended, int64(want), term}
	if from, byTerms := term.([2][]string); byTerms {
		id := s.IDSpan()
		args = append(args[:len(args)-1], from[0], from[1], lots.all(), id[0], id[1])
	}
	err = l.read(ctx, l.sql.Text(statement), args, func(rows pgx.Rows) error {
		g = searched{}
		var st state
		for rows.Next() {
			r, err := scanRow(rows, append([]any{&g.scanned, &g.last, &g.earliest, &g.until}, st.dest()...)...)
			if err != nil && !ofOneRow(err) {
				return err
			}
			if r.unread = err; r.n != 0 {
				r.rec.Now = clamp(at(st.now), r.rec)
				g.rows = append(g.rows, r)
			}
		}
		return cmp.Or(rows.Err(), l.usable(st))
	})
	return g, err
}

// searchStatement returns how a search reads the writes: the name of the statement, and its
// argument; for terms, the two ends of each range of them.
func searchStatement(s ledger.Search) (statement string, term any) {
	direction := " newest"
	if s.Oldest {
		direction = " oldest"
	}
	for _, w := range []struct{ name, word string }{
		{"key_digest", s.KeyDigest}, {"idempotency_key", s.IdempotencyKey}, {"correlation_id", s.CorrelationID}, {"workflow", s.Workflow},
	} {
		if w.word != "" {
			return "search " + w.name + direction, w.word
		}
	}
	if s.Query != "" {
		var from [2][]string
		for _, span := range s.Spans() {
			from[0], from[1] = append(from[0], span[0]), append(from[1], span[1])
		}
		return "search terms" + direction, from
	}
	if len(s.Waits) > 0 {
		texts := make([]string, 0, len(s.Waits))
		for _, w := range s.Waits {
			texts = append(texts, w.Text())
		}
		return "search waits" + direction, texts
	}
	return "search state" + direction, statesOf(s.ScanStates())
}

// addSearches adds a statement for each term and direction of a search.
func addSearches(s statements) {
	term, operation, state, search := take(s, "search_by_term"), take(s, "search_by_operation"), take(s, "search_by_state"), take(s, "search")
	waits := take(s, "search_by_waits")
	terms := take(s, "search_by_terms")
	for _, d := range []struct{ name, direction, backwards, beyond string }{
		{" newest", "DESC", "ASC", "<"}, {" oldest", "ASC", "DESC", ">"},
	} {
		for name, scan := range map[string]string{
			"state": state, "waits": waits, "workflow": term, "correlation_id": term, "idempotency_key": operation, "key_digest": term, "terms": terms,
		} {
			present := " AND s." + name + " <> ''"
			if name == "workflow" {
				present = ""
			}
			s["search "+name+d.name] = strings.NewReplacer("{term}", name, "{present}", present,
				"{direction}", d.direction, "{backwards}", d.backwards, "{beyond}", d.beyond).
				Replace(strings.ReplaceAll(search, "{walk}", scan))
		}
	}
}
