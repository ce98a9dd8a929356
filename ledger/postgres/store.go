package postgres

import (
	"errors"
	"fmt"
	"slices"
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
	b := newBinding(len(changes))
	for _, c := range changes {
		if err := b.add(c); err != nil {
			return "", nil, err
		}
	}
	name, own := "update", []any{l.version, now.UnixNano(), int64(maxLag)}
	columns := []any{b.id, b.wasFence, b.wasSeq, b.unordered}
	if changes[0].fresh {
		name, own = "insert", append(own, now.Add(maxClockStep).UnixNano(), checked)
		columns = b.identity()
	}
	if documents != nil {
		name, own = "commit "+name, append(own, documents...)
	}
	columns = append(columns, b.changing()...)
	if len(changes) > 1 || len(b.eventID) > maxSingle {
		own = append(append(own, columns...), b.events()...)
		if len(changes) > maxFew {
			return l.sql.Text(name), own, nil
		}
		return l.sql.Text(few(name)), append(own, len(changes)), nil
	}
	for _, column := range columns {
		own = append(own, element(column, 0))
	}
	for i := range b.eventID {
		for _, column := range b.events() {
			own = append(own, element(column, i))
		}
	}
	published := slices.ContainsFunc(b.publishedKind, func(kind string) bool { return kind != "" })
	return l.sql.Text(single(name, len(b.eventID), published)), own, nil
}

// element returns an element of a list of a binding.
func element(column any, i int) any {
	switch of := column.(type) {
	case []string:
		return of[i]
	case []int64:
		return of[i]
	case []bool:
		return of[i]
	case [][]byte:
		return of[i]
	}
	panic(fmt.Sprintf("a column of %T", column))
}

// binding is the columns of some changes, one list each.
type binding struct {
	id, tenant, destination, tool, structuralKey, idempotencyKey, keyDigest []string
	created, newest                                                         []int64
	intent                                                                  [][]byte
	stepOf, workflow, correlationID, erasedKey                              []string

	wasFence, wasSeq []int64
	unordered        []bool

	first, at                                                 []int64 // the number of the first event, one after the last if there is none, and the latest time of one
	state, queue, queuedBehind, body, owner                   []string
	due, settledAt, seq, leaseUntil, leaseFor, fences, blocks []int64
	raw                                                       [4][][]byte

	eventID, eventBody         []string
	eventSeq                   []int64
	eventEvidence, eventDiffer [][]byte

	publishedKind, publishedSettlement          []string // "" for an event that is not published
	publishedAt, publishedSends, publishedReads []int64
	publishedSaved                              []bool
}

func newBinding(n int) *binding { return &binding{id: make([]string, 0, n)} }

func (b *binding) add(c change) error {
	r := c.rec
	body, err := encode(r)
	if err != nil {
		return err
	}
	of := columnsOf(r)
	b.id = append(b.id, of.id)
	if c.fresh {
		b.tenant, b.destination, b.tool = append(b.tenant, of.tenant), append(b.destination, of.destination), append(b.tool, of.tool)
		b.structuralKey, b.idempotencyKey = append(b.structuralKey, of.structuralKey), append(b.idempotencyKey, of.idempotencyKey)
		b.keyDigest, b.created, b.intent = append(b.keyDigest, of.keyDigest), append(b.created, of.created), append(b.intent, r.Intent)
		b.stepOf, b.workflow = append(b.stepOf, r.StepOf()), append(b.workflow, r.Workflow)
		b.correlationID, b.newest = append(b.correlationID, r.CorrelationID), append(b.newest, c.newest)
		b.erasedKey = append(b.erasedKey, ledger.ErasedKey(of.tenant, of.tool, of.idempotencyKey))
	} else {
		b.wasFence, b.wasSeq, b.unordered = append(b.wasFence, c.wasFence), append(b.wasSeq, c.wasSeq), append(b.unordered, c.unordered)
	}
	first, latest := of.seq+1, int64(0)
	for i, e := range c.events {
		if i == 0 {
			first = e.Seq
		}
		latest = max(latest, nanos(e.At))
	}
	b.first, b.at = append(b.first, first), append(b.at, latest)
	b.state, b.due, b.settledAt = append(b.state, of.state), append(b.due, of.due), append(b.settledAt, of.settledAt)
	b.queue, b.queuedBehind, b.seq = append(b.queue, of.queue), append(b.queuedBehind, of.queuedBehind), append(b.seq, of.seq)
	b.body = append(b.body, body)
	for i, raw := range driver.Raws(&r) {
		b.raw[i] = append(b.raw[i], *raw)
	}
	b.owner, b.leaseUntil = append(b.owner, r.Owner), append(b.leaseUntil, nanos(r.LeaseUntil))
	b.leaseFor, b.fences, b.blocks = append(b.leaseFor, int64(r.LeaseFor)), append(b.fences, r.Fence), append(b.blocks, blocks(r))
	if err := b.addEvents(of.id, c.events); err != nil {
		return err
	}
	b.addPublished(c)
	return nil
}

// addPublished adds what the events of a change are published as.
func (b *binding) addPublished(c change) {
	published := c.changes()
	for _, e := range c.events {
		var t ledger.Change
		if len(published) > 0 && published[0].Seq == e.Seq {
			t, published = published[0], published[1:]
		}
		b.publishedKind, b.publishedSettlement = append(b.publishedKind, string(t.Kind)), append(b.publishedSettlement, string(t.Settlement))
		b.publishedAt, b.publishedSaved = append(b.publishedAt, nanos(e.At)), append(b.publishedSaved, t.Saved)
		b.publishedSends, b.publishedReads = append(b.publishedSends, int64(t.Sends)), append(b.publishedReads, int64(t.Reads))
	}
}

func (b *binding) addEvents(id string, events []ledger.Event) error {
	for _, e := range events {
		body, err := driver.EncodeEvent(nil, e)
		if err != nil {
			return err
		}
		b.eventID, b.eventSeq, b.eventBody = append(b.eventID, id), append(b.eventSeq, e.Seq), append(b.eventBody, string(body))
		b.eventEvidence, b.eventDiffer = append(b.eventEvidence, e.Evidence), append(b.eventDiffer, e.Mismatches)
	}
	return nil
}

// identity returns the immutable fields of the writes.
func (b *binding) identity() []any {
	return []any{b.id, b.tenant, b.destination, b.tool, b.structuralKey, b.idempotencyKey, b.keyDigest, b.created, b.intent, b.stepOf, b.workflow, b.correlationID, b.newest, b.erasedKey}
}

// changing returns the fields that change during their lifetime.
func (b *binding) changing() []any {
	return []any{
		b.first, b.at, b.state, b.due, b.settledAt, b.queue, b.queuedBehind, b.seq, b.body,
		b.raw[0], b.raw[1], b.raw[2], b.raw[3], b.owner, b.leaseUntil, b.leaseFor, b.fences, b.blocks,
	}
}

func (b *binding) events() []any {
	return []any{
		b.eventID, b.eventSeq, b.eventBody, b.eventEvidence, b.eventDiffer,
		b.publishedKind, b.publishedSettlement, b.publishedAt, b.publishedSends, b.publishedReads, b.publishedSaved,
	}
}
