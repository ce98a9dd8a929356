package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// holds returns the active legal holds: those that were added before this read.
func (t *tx) holds() (ledger.Holds, error) {
	var documents []ledger.Document
	err := t.l.ask(t.ctx, t.pgx, t.l.sql.Text("holds"), nil, func(rows pgx.Rows) error {
		documents = nil
		for rows.Next() {
			p, due := ledger.Document{Kind: ledger.HoldKind}, int64(0)
			if err := rows.Scan(&p.Tenant, &p.ID, &due, (*[]byte)(&p.Body)); err != nil {
				return err
			}
			p.Due = at(due)
			documents = append(documents, p)
		}
		return rows.Err()
	})
	return ledger.HoldsOf(documents), err
}

// Erase implements [ledger.Maintenance]. The erased bytes stay in the pages of the database until
// these are overwritten; VACUUM FULL rewrites the tables. They stay in its log, in archives of
// that and on standbys for as long as those keep it.
func (l *Ledger) Erase(ctx context.Context, e ledger.Erasing) (did ledger.Erased, err error) {
	if err := e.Check(); err != nil {
		return did, err
	}
	if e, err = l.keeping.Digests.OfErasing(e); err != nil {
		return did, err
	}
	err = l.within(ctx, func(t *tx) (err error) {
		if _, err := t.pgx.Exec(t.ctx, l.sql.Text("lock_ownership"), l.args(e.Tenant)...); err != nil { // it is not moved meanwhile
			return err
		}
		if err := t.refuses(e.Tenant, false); err != nil {
			return err
		}
		did, err = t.eraseAll(e)
		return err
	})
	if err != nil {
		return ledger.Erased{}, err
	}
	return did, nil
}

// Scrub implements [ledger.Maintenance]. It does nothing: see [Ledger.Erase].
func (l *Ledger) Scrub(ctx context.Context) error { return ctx.Err() }

func (t *tx) eraseAll(e ledger.Erasing) (did ledger.Erased, err error) {
	s, err := t.l.stateIn(t.ctx, t.pgx)
	if err == nil {
		err = t.l.trusted(s)
	}
	sealing := false
	if err == nil {
		sealing, err = t.held()
	}
	if err == nil {
		_, err = t.lockedDocuments(e.Tenant, ledger.ErasureKind, e.Erasure)
	}
	if err != nil {
		return did, err
	}
	erasable, err := t.erasable(e, sealing, &did)
	if err == nil {
		err = t.erase(e, erasable)
	}
	if err != nil {
		return did, err
	}
	did.Writes = len(erasable)
	holds, err := t.holds()
	if err == nil {
		err = t.eraseDocuments(e, holds, sealing, &did)
	}
	if err == nil {
		err = t.eraseEntries(e, holds, &did)
	}
	return did, err
}

// erasable returns the writes of a request that can be erased now, locked. It names the others.
func (t *tx) erasable(e ledger.Erasing, sealing bool, did *ledger.Erased) (erasable []row, err error) {
	ids := make([]string, len(e.Writes))
	for i, id := range e.Writes {
		ids[i] = string(id)
	}
	var rows []row
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text("lock_rows"), []any{e.Tenant, ids}, func(got pgx.Rows) error {
		for got.Next() {
			r, err := scanRow(got)
			switch {
			case err != nil && ofOneRow(err):
				did.Left = append(did.Left, ledger.LeftOver{Write: r.rec.ID, Why: "its row cannot be read: " + err.Error()})
			case err != nil:
				return err
			case r.rec.Erased == "":
				rows = append(rows, r)
			}
		}
		return got.Err()
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	holds, err := t.holds() // those that were added before the rows were locked
	if err != nil {
		return nil, err
	}
	around, err := t.surroundings(rows)
	if err != nil {
		return nil, err
	}
	sealed, _, err := t.sealedOf(rows, false, sealing)
	if err != nil {
		return nil, err
	}
	isSealed := make(map[int64]bool, len(sealed))
	for _, r := range sealed {
		isSealed[r.n] = true
	}
	byID := make(map[ledger.ID]int, len(rows))
	for i, r := range rows {
		byID[r.rec.ID] = i
	}
	for _, id := range e.Writes { // in the order in which they were named
		i, there := byID[id]
		if !there {
			continue
		}
		delete(byID, id)
		why := e.Keeps(rows[i].rec, t.now, holds, around[i].followed, around[i].relatives...)
		if why == "" && !isSealed[rows[i].n] {
			why = ledger.NotSealed
		}
		if why != "" {
			did.Left = append(did.Left, ledger.LeftOver{Write: id, Why: why})
			continue
		}
		erasable = append(erasable, rows[i])
	}
	return erasable, nil
}

func (t *tx) erase(e ledger.Erasing, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	var marks []*ledger.Mark
	var ids, bodies, keys, tenants, workflows []string
	var fences, numbers []int64
	for _, r := range rows {
		rec := ledger.Erase(r.rec, e.Erasure)
		body, err := encode(rec)
		if err != nil {
			return err
		}
		mark, err := e.Mark(rec, t.now)
		if err != nil {
			return err
		}
		marks, bodies, keys = append(marks, mark), append(bodies, body), append(keys, rec.IdempotencyKey)
		ids, fences, numbers = append(ids, string(rec.ID)), append(fences, rec.Fence), append(numbers, r.n)
		tenants, workflows = append(tenants, rec.Tenant), append(workflows, r.rec.Workflow)
	}
	if err := t.mark(marks...); err != nil {
		return err
	}
	if err := t.exec("erase_writes", ids, bodies, fences, keys); err != nil {
		return err
	}
	if err := t.exec("erase_search", tenants, workflows, numbers); err != nil {
		return err
	}
	if err := t.removeTerms(e.Tenant, numbers); err != nil {
		return err
	}
	return t.exec("delete_events", numbers)
}

// lockedDocuments returns a document and the contents of the collection that it covers, or
// [ledger.ErrNoDocument].
func (t *tx) lockedDocuments(tenant, kind, id string) (documents []ledger.Document, err error) {
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text("lock_document"), []any{tenant, kind, id}, func(rows pgx.Rows) error {
		for rows.Next() {
			p, due := ledger.Document{Tenant: tenant}, int64(0)
			if err := rows.Scan(&p.Kind, &p.ID, &p.Collection, &p.Done, &due); err != nil {
				return err
			}
			p.Due = at(due)
			documents = append(documents, p)
		}
		return rows.Err()
	})
	if err == nil && (len(documents) == 0 || documents[0].Kind != kind || documents[0].ID != id) {
		err = noDocument(kind, id)
	}
	return documents, err
}

// eraseDocuments deletes documents that are done, with their collections. Where there is no sealer
// nothing names them any more: a later one does not know that they existed.
func (t *tx) eraseDocuments(e ledger.Erasing, holds ledger.Holds, sealing bool, did *ledger.Erased) error {
	for _, asked := range e.Deletes() {
		documents, err := t.lockedDocuments(e.Tenant, asked.Kind, asked.ID)
		if errors.Is(err, ledger.ErrNoDocument) {
			continue
		}
		if err != nil {
			return err
		}
		if why := e.KeepsDocument(documents[0], holds, documents[1:]...); why != "" {
			did.Left = append(did.Left, ledger.LeftOver{Document: asked.Kind + " " + asked.ID, Why: why})
			continue
		}
		var gone names
		var marks []*ledger.Mark
		for _, p := range documents {
			gone.add(p.Tenant, p.Kind, p.ID)
			marks = append(marks, e.Dropped(p.Kind, p.ID, t.now))
		}
		if sealing {
			err = t.mark(marks...)
		} else {
			err = t.exec("delete_marks", gone.tenants, gone.kinds, gone.ids)
		}
		if err != nil {
			return err
		}
		if err := t.exec("delete_documents", gone.tenants, gone.kinds, gone.ids); err != nil {
			return err
		}
		did.Documents += len(documents)
	}
	return nil
}

// eraseEntries deletes refused entries from the outbox, and names those that can still be taken
// in.
func (t *tx) eraseEntries(e ledger.Erasing, holds ledger.Holds, did *ledger.Erased) error {
	if len(e.KeyDigests) == 0 {
		return nil
	}
	err := t.l.ask(t.ctx, t.pgx, t.l.sql.Text("entries_of_records"), []any{e.Tenant, e.KeyDigests}, func(rows pgx.Rows) error {
		waiting, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, id := range waiting {
			did.Left = append(did.Left, ledger.LeftOver{Write: ledger.ID(id), Why: ledger.StillEnqueued})
		}
		return err
	})
	if _, held := holds.OfTenant(e.Tenant); held || err != nil {
		return err
	}
	tag, err := t.pgx.Exec(t.ctx, t.l.sql.Text("delete_refused_of_records"), t.l.args(e.Tenant, e.KeyDigests)...)
	did.Refused = int(tag.RowsAffected())
	return err
}
