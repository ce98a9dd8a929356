package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// Find implements [ledger.Ledger]. What it walks through is the writes with the
// word that is likely to select most, or else those in the states; all else is
// looked at in their rows. It is not all of one moment when a page needs more
// than one look.
func (l *Ledger) Find(ctx context.Context, s ledger.Search) (found ledger.Found, err error) {
	s, err = s.Checked()
	if err != nil {
		return ledger.Found{}, err
	}
	after := int64(math.MaxInt64)
	if s.Oldest {
		after = 0
	}
	if s.After != "" {
		after, _ = ledger.FoundAfter(s.After) // it was checked
	}
	for looked, step := 0, s.Limit+1; ; step = maxLook {
		step = min(step, ledger.MaxLooked-looked)
		want := s.Limit - len(found.Records)
		got, err := l.look(ctx, s, after, step, want)
		if err != nil {
			return ledger.Found{}, err
		}
		last, full := got.into(&found, s)
		more := got.looked == step && !got.ends(s)
		if looked, after = looked+got.looked, got.last; full || len(got.rows) == want { // what fits may lie between them
			after, more = last, got.looked == step || last != got.last
		}
		switch {
		case !more:
			return found, nil
		case full || looked >= ledger.MaxLooked:
			found.Next = ledger.FoundCursor(after)
			return found, nil
		}
	}
}

// glance is what a look at some writes has found: those that may fit, how many
// were looked at, the last of them, and when the first and the last were created.
type glance struct {
	rows                  []row
	looked                int
	last, earliest, until int64
}

// into adds what fits to a page, and says which row was the last that was
// looked at for it, and whether the page is full then.
func (g glance) into(found *ledger.Found, s ledger.Search) (last int64, full bool) {
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

// ends says that nothing behind these can be in the time that is asked for.
func (g glance) ends(s ledger.Search) bool {
	if s.Oldest {
		return g.looked > 0 && s.Ends(at(g.until))
	}
	return g.looked > 0 && s.Ends(at(g.earliest))
}

// look looks at the next writes of a walk, so many at the most, and returns those
// that may fit, at most as many as are wanted.
func (l *Ledger) look(ctx context.Context, s ledger.Search, after int64, most, want int) (g glance, err error) {
	statement, walk := walkOf(s)
	wanted, ended := []string{}, []string{}
	for _, state := range s.Walk() {
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
	args := []any{s.Tenant, after, int64(most), wanted, s.Destination, since, until, settledAnyhow, ended, int64(want), walk}
	err = l.read(ctx, l.sql[statement], args, func(rows pgx.Rows) error {
		g = glance{}
		var st state
		for rows.Next() {
			r, err := scanRow(rows, append([]any{&g.looked, &g.last, &g.earliest, &g.until}, st.dest()...)...)
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

// walkOf is the way of a search through the writes: the name of the statement,
// and by what it walks.
func walkOf(s ledger.Search) (statement string, walk any) {
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
	wanted := s.Walk()
	if len(wanted) == 0 {
		wanted = states
	}
	names := make([]string, 0, len(wanted))
	for _, state := range wanted {
		names = append(names, string(state))
	}
	return "search state" + direction, names
}
