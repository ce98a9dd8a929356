package postgres

import (
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// stored is the result of a statement that stores changes: which of them were applied, with the
// numbers of their rows.
type stored struct {
	state   state
	numbers map[ledger.ID]int64
}

func scanStored(rows pgx.Rows) (stored, error) {
	var got stored
	var ids []string
	var numbers []int64
	found := false
	for rows.Next() {
		found = true
		if err := rows.Scan(append(got.state.dest(), &ids, &numbers)...); err != nil {
			rows.Close()
			return got, err
		}
	}
	if err := rows.Err(); err != nil {
		return got, err
	}
	if !found {
		return got, errNoVersion
	}
	got.numbers = numbered(ids, numbers)
	return got, nil
}

func numbered(ids []string, numbers []int64) map[ledger.ID]int64 {
	of := make(map[ledger.ID]int64, len(ids))
	for i, id := range ids {
		of[ledger.ID(id)] = numbers[i]
	}
	return of
}

// errNoVersion means that the one row of ledger_meta is missing.
var errNoVersion = errors.New("its version is missing")

// statement returns the one that stores changes, which are all new or all not. Checked says that
// the caller has checked for conflicts.
func (l *Ledger) statement(changes []change, now time.Time, checked bool) (query string, args []any, err error) {
	return l.batch(nil, changes, now, checked)
}

// batch returns the statement that stores changes together with documents, if there are any.
func (l *Ledger) batch(documents []any, changes []change, now time.Time, checked bool) (query string, args []any, err error) {
	name := "update"
	args = append(make([]any, 0, 64), l.version, now.UnixNano(), int64(maxLag))
	if changes[0].fresh {
		name, args = "insert", append(args, now.Add(maxClockStep).UnixNano(), checked)
	}
	if documents != nil {
		name, args = "commit "+name, append(args, documents...)
	}
	var rows, events [][]any
	published := false
	for _, c := range changes {
		row, err := c.columns()
		if err != nil {
			return "", nil, err
		}
		rows = append(rows, row)
		those, some, err := c.eventColumns()
		if err != nil {
			return "", nil, err
		}
		events, published = append(events, those...), published || some
	}
	if len(changes) == 1 && len(events) <= maxSingle {
		args = append(args, rows[0]...)
		for _, e := range events {
			args = append(args, e...)
		}
		return l.sql.Text(single(name, len(events), published)), args, nil
	}
	args = append(append(args, lists(rows, stores[name].types)...), lists(events, eventTypes)...)
	if len(changes) > maxFew {
		return l.sql.Text(name), args, nil
	}
	return l.sql.Text(few(name)), append(args, len(changes)), nil
}

// columns returns those of a change, in the order of their types.
func (c change) columns() ([]any, error) {
	r := c.rec
	body, err := encode(r)
	if err != nil {
		return nil, err
	}
	of := columnsOf(r)
	to := append(make([]any, 0, 32), of.id)
	if c.fresh {
		to = append(to, of.tenant, of.destination, of.tool, of.structuralKey, of.idempotencyKey, of.keyDigest, of.created, []byte(r.Intent),
			r.StepOf(), r.Workflow, r.CorrelationID, c.newest, ledger.ErasedKey(of.tenant, of.tool, of.idempotencyKey), lines(ledger.Terms(r)))
	} else {
		to = append(to, c.wasFence, c.wasSeq, c.unordered, lines(ledger.NewTerms(c.before, r)))
	}
	first, latest := of.seq+1, int64(0) // without events: one after the last
	for i, e := range c.events {
		if i == 0 {
			first = e.Seq
		}
		latest = max(latest, nanos(e.At))
	}
	to = append(to, first, latest, of.state, of.due, of.settledAt, of.queue, of.queuedBehind, of.seq, body)
	for _, raw := range driver.Raws(&r) {
		to = append(to, []byte(*raw))
	}
	return append(to, r.Owner, nanos(r.LeaseUntil), int64(r.LeaseFor), r.Fence, blocks(r), of.waits), nil
}

// lines returns terms as one parameter.
func lines(terms []ledger.Term) string {
	all := make([]string, len(terms))
	for i, t := range terms {
		all[i] = t.Stored()
	}
	return strings.Join(all, "\n")
}

// eventColumns returns those of each event, in the order of [eventTypes], and whether one is
// published.
func (c change) eventColumns() (rows [][]any, published bool, err error) {
	changes := ledger.ChangesOf(c.before, c.rec, c.events)
	published = len(changes) > 0
	for _, e := range c.events {
		body, err := driver.EncodeEvent(nil, e)
		if err != nil {
			return nil, false, err
		}
		var as ledger.Change // of no kind for an event that is not published
		if len(changes) > 0 && changes[0].Seq == e.Seq {
			as, changes = changes[0], changes[1:]
		}
		rows = append(rows, []any{
			string(c.rec.ID), e.Seq, string(body), []byte(e.Evidence), []byte(e.Mismatches),
			string(as.Kind), string(as.Settlement), nanos(e.At), int64(as.Sends), int64(as.Reads), as.Saved,
		})
	}
	return rows, published, nil
}

// lists returns a list of each column of some rows.
func lists(rows [][]any, types []string) []any {
	out := make([]any, len(types))
	for i, of := range types {
		switch of {
		case "text":
			out[i] = list[string](rows, i)
		case "bigint":
			out[i] = list[int64](rows, i)
		case "boolean":
			out[i] = list[bool](rows, i)
		case "bytea":
			out[i] = list[[]byte](rows, i)
		}
	}
	return out
}

func list[T any](rows [][]any, column int) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = row[column].(T)
	}
	return out
}
