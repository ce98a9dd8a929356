package postgres

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// stored is the answer to a statement that stores changes: which of them were
// applied, with the numbers of their rows.
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

// errNoVersion says that the one row of ledger_meta is gone.
var errNoVersion = errors.New("its version is missing")

// statement is the one that stores changes, which are all new or all not.
// Looked says that the caller has looked for what could be in the way.
func (l *Ledger) statement(changes []change, now time.Time, looked bool) (query string, args []any, err error) {
	return l.filing(nil, changes, now, looked)
}

// filing is the statement that stores changes together with papers, if there
// are any of those.
func (l *Ledger) filing(papers []any, changes []change, now time.Time, looked bool) (query string, args []any, err error) {
	b := newBinding(len(changes))
	for _, c := range changes {
		if err := b.add(c); err != nil {
			return "", nil, err
		}
	}
	name, own := "update", []any{l.version, now.UnixNano(), int64(maxLag)}
	columns := []any{b.id, b.wasFence, b.wasSeq, b.alone}
	if changes[0].fresh {
		name, own = "insert", append(own, now.Add(maxClockStep).UnixNano(), looked)
		columns = b.identity()
	}
	if papers != nil {
		name, own = "file "+name, append(own, papers...)
	}
	columns = append(columns, b.changing()...)
	if len(changes) > 1 || len(b.eventID) > maxSingle {
		return l.sql[name], append(append(own, columns...), b.events()...), nil
	}
	for _, column := range columns {
		own = append(own, element(column, 0))
	}
	for i := range b.eventID {
		for _, column := range b.events() {
			own = append(own, element(column, i))
		}
	}
	return l.sql[single(name, len(b.eventID))], own, nil
}

// element is one of a list of a binding.
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
	id, tenant, destination, tool, structuralKey, idempotencyKey, about []string
	created, newest                                                     []int64
	intent                                                              [][]byte
	stepOf, workflow, correlationID                                     []string

	wasFence, wasSeq []int64
	alone            []bool

	state, keyDigest, behind, body, owner                     []string
	due, settledAt, seq, leaseUntil, leaseFor, fences, blocks []int64
	raw                                                       [4][][]byte

	eventID, eventBody         []string
	eventSeq                   []int64
	eventEvidence, eventDiffer [][]byte

	toldKind, toldSettlement     []string // "" for an event that is not told
	toldAt, toldSends, toldReads []int64
	toldSaved                    []bool
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
		b.about, b.created, b.intent = append(b.about, of.about), append(b.created, of.created), append(b.intent, r.Intent)
		b.stepOf, b.workflow = append(b.stepOf, r.StepOf()), append(b.workflow, r.Workflow)
		b.correlationID, b.newest = append(b.correlationID, r.CorrelationID), append(b.newest, c.newest)
	} else {
		b.wasFence, b.wasSeq, b.alone = append(b.wasFence, c.wasFence), append(b.wasSeq, c.wasSeq), append(b.alone, c.alone)
	}
	b.state, b.due, b.settledAt = append(b.state, of.state), append(b.due, of.due), append(b.settledAt, of.settledAt)
	b.keyDigest, b.behind, b.seq = append(b.keyDigest, of.keyDigest), append(b.behind, of.behind), append(b.seq, of.seq)
	b.body = append(b.body, body)
	for i, raw := range driver.Raws(&r) {
		b.raw[i] = append(b.raw[i], *raw)
	}
	b.owner, b.leaseUntil = append(b.owner, r.Owner), append(b.leaseUntil, nanos(r.LeaseUntil))
	b.leaseFor, b.fences, b.blocks = append(b.leaseFor, int64(r.LeaseFor)), append(b.fences, r.Fence), append(b.blocks, blocks(r))
	if err := b.addEvents(of.id, c.events); err != nil {
		return err
	}
	b.addTold(c)
	return nil
}

// addTold adds as what the events of a change are told.
func (b *binding) addTold(c change) {
	told := c.told()
	for _, e := range c.events {
		var t ledger.Change
		if len(told) > 0 && told[0].Seq == e.Seq {
			t, told = told[0], told[1:]
		}
		b.toldKind, b.toldSettlement = append(b.toldKind, string(t.Kind)), append(b.toldSettlement, string(t.Settlement))
		b.toldAt, b.toldSaved = append(b.toldAt, nanos(t.At)), append(b.toldSaved, t.Saved)
		b.toldSends, b.toldReads = append(b.toldSends, int64(t.Sends)), append(b.toldReads, int64(t.Reads))
	}
}

func (b *binding) addEvents(id string, events []ledger.Event) error {
	for _, e := range events {
		body, err := driver.EncodeEvent(e)
		if err != nil {
			return err
		}
		b.eventID, b.eventSeq, b.eventBody = append(b.eventID, id), append(b.eventSeq, e.Seq), append(b.eventBody, body)
		b.eventEvidence, b.eventDiffer = append(b.eventEvidence, e.Evidence), append(b.eventDiffer, e.Mismatches)
	}
	return nil
}

// identity is what never changes about the writes.
func (b *binding) identity() []any {
	return []any{b.id, b.tenant, b.destination, b.tool, b.structuralKey, b.idempotencyKey, b.about, b.created, b.intent, b.stepOf, b.workflow, b.correlationID, b.newest}
}

// changing is what changes in their lives.
func (b *binding) changing() []any {
	return []any{
		b.state, b.due, b.settledAt, b.keyDigest, b.behind, b.seq, b.body,
		b.raw[0], b.raw[1], b.raw[2], b.raw[3], b.owner, b.leaseUntil, b.leaseFor, b.fences, b.blocks,
	}
}

func (b *binding) events() []any {
	return []any{
		b.eventID, b.eventSeq, b.eventBody, b.eventEvidence, b.eventDiffer,
		b.toldKind, b.toldSettlement, b.toldAt, b.toldSends, b.toldReads, b.toldSaved,
	}
}
