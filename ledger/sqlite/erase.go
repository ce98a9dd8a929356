package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// holds returns the active legal holds. Within the transaction no other is added.
func (t *tx) holds() (ledger.Holds, error) {
	var documents []ledger.Document
	s := t.heldBy
	err := each(t.path, s, func() error {
		documents = append(documents, ledger.Document{Tenant: s.ColumnText(0), Kind: ledger.HoldKind, ID: s.ColumnText(1), Due: moment(s, 2), Body: text(s, 3)})
		return nil
	})
	return ledger.HoldsOf(documents), err
}

// Erase implements [ledger.Maintenance]. The erased bytes stay in the file and in its log until
// [Ledger.Scrub].
func (l *Ledger) Erase(ctx context.Context, e ledger.Erasing) (ledger.Erased, error) {
	if err := e.Check(); err != nil {
		return ledger.Erased{}, err
	}
	e, err := l.keeping.Digests.OfErasing(e)
	if err != nil {
		return ledger.Erased{}, err
	}
	var did ledger.Erased // read only when it is done
	err = l.writer.do(ctx, func(t *tx) (err error) {
		did, err = t.eraseAll(e)
		return err
	})
	if err != nil {
		return ledger.Erased{}, err
	}
	return did, nil
}

func (t *tx) eraseAll(e ledger.Erasing) (did ledger.Erased, err error) {
	now, err := t.trust()
	if err != nil {
		return did, err
	}
	if _, _, err := t.oneDocument(e.Tenant, ledger.ErasureKind, e.Erasure); err != nil {
		return did, err
	}
	holds, err := t.holds()
	if err != nil {
		return did, err
	}
	unsealed, all, err := t.unsealedWrites()
	if err != nil {
		return did, err
	}
	for _, id := range e.Writes {
		r, found, err := t.write(id)
		switch {
		case err != nil && ofOneRow(err):
			did.Left = append(did.Left, ledger.LeftOver{Write: id, Why: "its row cannot be read: " + err.Error()})
			continue
		case err != nil:
			return did, err
		case !found || r.rec.Tenant != e.Tenant || r.rec.Erased != "":
			continue
		}
		why, err := t.keepsFromErasing(e, r, now, holds)
		if err != nil {
			return did, err
		}
		if why == "" && (all || unsealed[r.n]) {
			why = ledger.NotSealed
		}
		if why != "" {
			did.Left = append(did.Left, ledger.LeftOver{Write: id, Why: why})
			continue
		}
		if err := t.eraseOne(e, r, now); err != nil {
			return did, err
		}
		did.Writes++
	}
	if err := t.eraseDocuments(e, holds, now, &did); err != nil {
		return did, err
	}
	return did, t.eraseEntries(e, holds, &did)
}

func (t *tx) keepsFromErasing(e ledger.Erasing, r row, now time.Time, holds ledger.Holds) (why string, err error) {
	relatives, unread, err := t.relatives(r)
	if err != nil || unread != "" {
		return fmt.Sprintf("write %s, which belongs to it, cannot be read", unread), err
	}
	followed, err := t.isFollowed(r)
	return e.Keeps(r.rec, now, holds, followed, relatives...), err
}

func (t *tx) eraseOne(e ledger.Erasing, r row, now time.Time) error {
	had := r.rec
	r.rec = ledger.Erase(r.rec, e.Erasure)
	if err := t.insertMark(e.Mark(r.rec, now)); err != nil {
		return err
	}
	t.erase.BindInt64(1, r.n)
	t.erase.BindText(2, r.rec.IdempotencyKey)
	if err := exec(t.path, t.erase); err != nil {
		return err
	}
	return errors.Join(t.updateWrite(&r), t.writeSearch(t.eraseSearch, r.n, had), t.removeTerms(had.Tenant, []int64{r.n}), t.onRow(t.clearEvents, r.n))
}

// eraseDocuments deletes documents that are done, with their collections.
func (t *tx) eraseDocuments(e ledger.Erasing, holds ledger.Holds, now time.Time, did *ledger.Erased) error {
	for _, asked := range e.Deletes() {
		n, p, err := t.oneDocument(e.Tenant, asked.Kind, asked.ID)
		if errors.Is(err, ledger.ErrNoDocument) {
			continue
		}
		if err != nil {
			return err
		}
		members, err := t.membersOf(n, p)
		if err != nil {
			return err
		}
		if why := e.KeepsDocument(p, holds, members...); why != "" {
			did.Left = append(did.Left, ledger.LeftOver{Document: p.Kind + " " + p.ID, Why: why})
			continue
		}
		if len(members) > 0 {
			t.deleteMembers.BindText(1, p.Tenant)
			t.deleteMembers.BindText(2, p.Collection)
			t.deleteMembers.BindInt64(3, n)
			t.deleteMembers.BindInt64(4, int64(len(members)))
			if err := each(t.path, t.deleteMembers, func() error { return nil }); err != nil {
				return err
			}
		}
		t.deleteDocument.BindInt64(1, n)
		if err := each(t.path, t.deleteDocument, func() error { return nil }); err != nil {
			return err
		}
		t.wrote = true
		for _, gone := range append(members, p) {
			if err := t.unname(e, gone, now); err != nil {
				return err
			}
			did.Documents++
		}
	}
	return nil
}

// unname leaves the mark of an erased document for the sealer. Where there is none, nothing names
// the document any more: a later one does not know that it existed.
func (t *tx) unname(e ledger.Erasing, p ledger.Document, now time.Time) error {
	if t.sealing {
		return t.insertMark(e.Dropped(p.Kind, p.ID, now), nil)
	}
	return t.run(statements.Text("delete_marks"), e.Tenant, p.Kind, p.ID)
}

// oneDocument returns a document with its number, or [ledger.ErrNoDocument].
func (t *tx) oneDocument(tenant, kind, id string) (n int64, p ledger.Document, err error) {
	bindDocumentName(t.document, 1, tenant, kind, id)
	err = each(t.path, t.document, func() error {
		n, p = scanDocument(t.document, time.Time{})
		return nil
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: %s %q", ledger.ErrNoDocument, kind, id)
	}
	return n, p, err
}

// membersOf returns the documents of the collection that a document covers, without itself.
func (t *tx) membersOf(n int64, cover ledger.Document) (members []ledger.Document, err error) {
	if !cover.Covers() {
		return nil, nil
	}
	s := t.members
	s.BindText(1, cover.Tenant)
	s.BindText(2, cover.Collection)
	s.BindInt64(3, n)
	err = each(t.path, s, func() error {
		p := ledger.Document{Kind: s.ColumnText(0), ID: s.ColumnText(1)}
		if !s.ColumnIsNull(2) {
			p.Due = moment(s, 2)
		}
		members = append(members, p)
		return nil
	})
	return members, err
}

// eraseEntries deletes refused entries from the outbox, and names those that can still be taken
// in.
func (t *tx) eraseEntries(e ledger.Erasing, holds ledger.Holds, did *ledger.Erased) error {
	digests := list(e.KeyDigests)
	t.enqueuedAbout.BindText(1, e.Tenant)
	t.enqueuedAbout.BindText(2, digests)
	err := each(t.path, t.enqueuedAbout, func() error {
		did.Left = append(did.Left, ledger.LeftOver{Write: ledger.ID(t.enqueuedAbout.ColumnText(0)), Why: ledger.StillEnqueued})
		return nil
	})
	if _, held := holds.OfTenant(e.Tenant); held || err != nil {
		return err
	}
	t.eraseRefused.BindText(1, e.Tenant)
	t.eraseRefused.BindText(2, digests)
	if err := exec(t.path, t.eraseRefused); err != nil {
		return err
	}
	did.Refused = t.conn.Changes()
	t.wrote = t.wrote || did.Refused > 0
	return nil
}

// list returns texts as one parameter.
func list(texts []string) string {
	b, err := json.Marshal(texts)
	if err != nil || texts == nil {
		return "[]" // it does not fail for texts
	}
	return string(b)
}

// Scrub implements [ledger.Maintenance]: it rewrites the file without deleted data, and empties the
// log. No other call can write meanwhile. It takes some seconds for each GB, and the disk needs
// free space for a second copy of the file. It fails with [ledger.ErrUnavailable] while another
// process runs a very long read, such as a backup: then part of the log is left, and it must be
// called again.
func (l *Ledger) Scrub(ctx context.Context) error {
	conn, err := connect(ctx, l.path)
	if err != nil {
		return explain(l.path, err)
	}
	busy := false
	err = insist(ctx, func() error { return sqlitex.ExecuteTransient(conn, "VACUUM", nil) })
	if err == nil {
		err = sqlitex.ExecuteTransient(conn, "PRAGMA wal_checkpoint(TRUNCATE)", &sqlitex.ExecOptions{
			ResultFunc: func(s *sqlite.Stmt) error { busy = s.ColumnBool(0); return nil },
		})
	}
	if err = explain(l.path, err); err == nil && busy {
		err = unavailable(l.path, errors.New("another process reads from the log for long, such as a backup; what was deleted is in the log until it ends"))
	}
	return errors.Join(err, conn.Close())
}
