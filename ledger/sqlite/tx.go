package sqlite

import (
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

// tx is the current transaction of the connection that writes, and its statements.
type tx struct {
	path      string
	conn      *sqlite.Conn
	now       func() time.Time
	newest    int64         // the newest time given to an entry
	sealing   bool          // a sealer has begun
	keptSince int64         // until when commits may have no row for a sealer
	ticket    int64         // the last that was assigned
	wrote     bool          // the current operation has changed something
	wakes     bool          // there is new work for any worker
	publishes bool          // there is a new change
	window    time.Duration // in which an idempotency key blocks enqueued writes; 0 for ever
	keeping   *ledger.Keeping
	noKey     withoutKey
	broken    error          // what ended the transaction early
	body      []byte         // the last that was encoded
	stamped   []ledger.Event // the last that were stored, cleared
	runs      []recentRun    // of this transaction, for recent
	recent    driver.Recent

	// remembered are writes as this connection last wrote them; nothing changes one. Foreign is a number that changes
	// when any other connection commits: then remembered is cleared.
	remembered map[ledger.ID]*row
	foreign    int64

	beginImmediate, commitAll, rollbackAll   *sqlite.Stmt
	others, meta, tick                       *sqlite.Stmt
	find, operation                          *sqlite.Stmt
	lastInQueue, nextInQueue, beforeInQueue  *sqlite.Stmt
	party, due, numbered, damaged            *sqlite.Stmt
	insert, update, event                    *sqlite.Stmt
	oldestEntries, entriesOf, entry          *sqlite.Stmt
	taken, refuse                            *sqlite.Stmt
	note, setNote                            *sqlite.Stmt
	tombstones, compactable                  *sqlite.Stmt
	followed, clear, clearEvents             *sqlite.Stmt
	eventsSize                               *sqlite.Stmt
	deleteWrite, deleteRefused               *sqlite.Stmt
	savepoint, release, rollbackTo           *sqlite.Stmt
	document, insertDocument, updateDocument *sqlite.Stmt
	doneDocument, inUse                      *sqlite.Stmt
	deleteMembers, deleteDocument            *sqlite.Stmt
	change                                   *sqlite.Stmt
	insertSearch, deleteSearch               *sqlite.Stmt
	insertTerm, deleteTerms                  *sqlite.Stmt
	oldChanges, deleteChanges                *sqlite.Stmt
	unsealedRun, unsealedOnes, sealed        *sqlite.Stmt
	oldUnsealed                              *sqlite.Stmt
	since, extent                            *sqlite.Stmt
	heldBy, erase, eraseSearch               *sqlite.Stmt
	eraseRefused, enqueuedAbout, members     *sqlite.Stmt

	// visited is the party at which the next claim continues.
	visited driver.Party
}

func newTx(conn *sqlite.Conn, path string, now func() time.Time) (*tx, error) {
	t := &tx{path: path, conn: conn, now: now, remembered: make(map[ledger.ID]*row)}
	prepare := func(query string, to **sqlite.Stmt) (err error) {
		*to, err = conn.Prepare(query)
		return explain(path, err)
	}
	for query, to := range map[string]**sqlite.Stmt{
		"BEGIN IMMEDIATE": &t.beginImmediate, "COMMIT": &t.commitAll, "ROLLBACK": &t.rollbackAll,
		"PRAGMA data_version": &t.others, "SAVEPOINT batch": &t.savepoint, "RELEASE batch": &t.release,
		"ROLLBACK TO batch": &t.rollbackTo,
	} {
		if err := prepare(query, to); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]**sqlite.Stmt{
		"meta": &t.meta, "tick": &t.tick, "find": &t.find, "operation": &t.operation, "last": &t.lastInQueue,
		"next": &t.nextInQueue, "before": &t.beforeInQueue, "next_party": &t.party, "due": &t.due,
		"numbered": &t.numbered, "mark_damaged": &t.damaged, "insert": &t.insert, "update": &t.update,
		"insert_event": &t.event, "entries": &t.oldestEntries, "entries_of": &t.entriesOf, "entry": &t.entry,
		"delete_entry": &t.taken, "refuse_entry": &t.refuse, "note": &t.note, "set_note": &t.setNote,
		"tombstones": &t.tombstones, "compactable": &t.compactable, "has_follower": &t.followed,
		"clear_intent": &t.clear, "delete_events": &t.clearEvents, "events_size": &t.eventsSize, "delete_write": &t.deleteWrite,
		"delete_refused": &t.deleteRefused, "document": &t.document, "insert_document": &t.insertDocument,
		"update_document": &t.updateDocument, "done_documents": &t.doneDocument, "collection_in_use": &t.inUse,
		"delete_members": &t.deleteMembers, "delete_document": &t.deleteDocument, "insert_change": &t.change,
		"insert_search": &t.insertSearch, "delete_search": &t.deleteSearch, "insert_term": &t.insertTerm, "delete_terms": &t.deleteTerms, "insert_unsealed": &t.unsealedRun,
		"unsealed_writes": &t.unsealedOnes, "delete_unsealed": &t.sealed,
		"delete_old_unsealed": &t.oldUnsealed, "holds": &t.heldBy,
		"erase_write": &t.erase, "erase_search": &t.eraseSearch, "delete_refused_of_records": &t.eraseRefused,
		"entries_of_records": &t.enqueuedAbout, "collection_members": &t.members, "newer_of_record": &t.since,
		"extent": &t.extent, "old_changes": &t.oldChanges, "delete_changes": &t.deleteChanges,
	} {
		if err := prepare(statements.Text(name), to); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// begin checks the version and the clock, under the write lock.
func (t *tx) begin() error {
	t.broken, t.wakes, t.publishes, t.runs = nil, false, false, nil
	err := each(t.path, t.others, func() error {
		if foreign := t.others.ColumnInt64(0); foreign != t.foreign {
			t.foreign = foreign
			clear(t.remembered)
		}
		return nil
	})
	if err != nil {
		return err
	}
	found := false
	err = each(t.path, t.meta, func() error {
		found = true
		t.newest = t.meta.ColumnInt64(2)
		t.sealing, t.keptSince, t.ticket = t.meta.ColumnBool(3), t.meta.ColumnInt64(4), t.meta.ColumnInt64(5)
		return known(t.path, t.meta.ColumnInt(0), t.meta.ColumnInt(1))
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %s: its version is missing", ledger.ErrCorrupt, t.path)
	}
	return err
}

// operate runs one operation and reports whether it changed anything. Operations are refused
// before they change anything. One that fails later has met a fault of the disk or the file, and
// breaks the transaction for all.
func (t *tx) operate(run func(*tx) error) (changed bool, err error) {
	t.wrote = false
	err = run(t)
	if err != nil && t.wrote || t.conn.AutocommitEnabled() { // SQLite may also have rolled back itself
		t.broken = errors.Join(errors.New("the transaction was rolled back"), err)
	}
	return t.wrote, err
}

// commit makes the transaction durable. After an error that is no spoiledError it is unknown
// whether it was.
func (t *tx) commit() error {
	t.tick.BindInt64(1, t.newest)
	t.tick.BindInt64(2, t.ticket)
	if err := exec(t.path, t.tick); err != nil {
		return &spoiledError{errors.Join(err, t.rollback())}
	}
	err := exec(t.path, t.commitAll)
	if err == nil {
		return nil
	}
	code := sqlite.ErrCode(err).ToPrimary()
	err = errors.Join(err, t.rollback())
	if code == sqlite.ResultFull || code == sqlite.ResultBusy {
		return &spoiledError{err} // the mark that ends a transaction in the log was not written
	}
	return unsure(t.path, err)
}

// rollback rolls the transaction back, if SQLite has not done so itself.
func (t *tx) rollback() error {
	clear(t.remembered)
	if t.conn.AutocommitEnabled() {
		return nil
	}
	return exec(t.path, t.rollbackAll)
}

// stamp returns the time of the current operation.
func (t *tx) stamp() time.Time {
	now := clamp(t.now(), t.newest)
	t.newest = nanos(now)
	return now
}

// trust is stamp for operations that must not run on a clock that is before the newest entry.
func (t *tx) trust() (time.Time, error) {
	if err := trusted(t.now(), t.newest); err != nil {
		return time.Time{}, err
	}
	return t.stamp(), nil
}
