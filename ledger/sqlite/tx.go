package sqlite

import (
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

//go:embed sql/meta.sql
var sqlMeta string

//go:embed sql/tick.sql
var sqlTick string

//go:embed sql/find.sql
var sqlFind string

//go:embed sql/operation.sql
var sqlOperation string

//go:embed sql/last.sql
var sqlLast string

//go:embed sql/since.sql
var sqlSince string

//go:embed sql/next.sql
var sqlNext string

//go:embed sql/before.sql
var sqlBefore string

//go:embed sql/party.sql
var sqlParty string

//go:embed sql/due.sql
var sqlDue string

//go:embed sql/numbered.sql
var sqlNumbered string

//go:embed sql/damaged.sql
var sqlDamaged string

//go:embed sql/insert.sql
var sqlInsert string

//go:embed sql/update.sql
var sqlUpdate string

//go:embed sql/event.sql
var sqlEvent string

// tx is the transaction under way on the connection that writes, and the
// statements it is made of.
type tx struct {
	path      string
	conn      *sqlite.Conn
	now       func() time.Time
	newest    int64         // the newest time given to an entry
	chronicle bool          // what is not sealed is remembered
	found     foundUpTo     // of what was there when that was switched on
	ticket    int64         // the last that was given
	wrote     bool          // the operation under way has changed something
	wakes     bool          // there is new work for anybody
	tells     bool          // there is a new change
	window    time.Duration // in which an idempotency key blocks what was enqueued; 0 for ever
	keeping   *ledger.Keeping
	broken    error // what ended the transaction before its time

	// remembered are writes as this connection last wrote them, and foreign is
	// a number that changes when any other connection commits: then nothing is
	// remembered.
	remembered map[ledger.ID]row
	foreign    int64

	beginImmediate, commitAll, rollbackAll *sqlite.Stmt
	others, meta, tick                     *sqlite.Stmt
	find, operation                        *sqlite.Stmt
	lastInLine, nextInLine, beforeInLine   *sqlite.Stmt
	party, due, numbered, damaged          *sqlite.Stmt
	insert, update, event                  *sqlite.Stmt
	oldestEntries, entriesOf, entry        *sqlite.Stmt
	taken, refuse                          *sqlite.Stmt
	note, setNote                          *sqlite.Stmt
	settled, followed, clear, clearEvents  *sqlite.Stmt
	forgetWrite, forgetEntries             *sqlite.Stmt
	savepoint, release, rollbackTo         *sqlite.Stmt
	paper, insertPaper, updatePaper        *sqlite.Stmt
	donePaper, stirring                    *sqlite.Stmt
	forgetBound, forgetPaper               *sqlite.Stmt
	change                                 *sqlite.Stmt
	insertWorkflow, forgetWorkflow         *sqlite.Stmt
	oldChanges, forgetChange               *sqlite.Stmt
	unsealedRun, unsealedOnes, sealed      *sqlite.Stmt
	since, extent                          *sqlite.Stmt

	// visited is the party at which the next claim goes on looking.
	visited party
}

func newTx(conn *sqlite.Conn, path string, now func() time.Time) (*tx, error) {
	t := &tx{path: path, conn: conn, now: now, remembered: make(map[ledger.ID]row)}
	for query, dst := range map[string]**sqlite.Stmt{
		"BEGIN IMMEDIATE": &t.beginImmediate, "COMMIT": &t.commitAll, "ROLLBACK": &t.rollbackAll,
		"PRAGMA data_version": &t.others, sqlMeta: &t.meta, sqlTick: &t.tick,
		sqlFind: &t.find, sqlOperation: &t.operation,
		sqlLast: &t.lastInLine, sqlNext: &t.nextInLine, sqlBefore: &t.beforeInLine,
		sqlParty: &t.party, sqlDue: &t.due, sqlNumbered: &t.numbered, sqlDamaged: &t.damaged,
		sqlInsert: &t.insert, sqlUpdate: &t.update, sqlEvent: &t.event,
		sqlEntries: &t.oldestEntries, sqlEntriesOf: &t.entriesOf, sqlEntry: &t.entry,
		sqlTaken: &t.taken, sqlRefuse: &t.refuse, sqlNote: &t.note, sqlSetNote: &t.setNote,
		sqlDone: &t.settled, sqlFollowed: &t.followed, sqlClear: &t.clear, sqlClearEvents: &t.clearEvents,
		sqlForget: &t.forgetWrite, sqlForgetRefused: &t.forgetEntries,
		"SAVEPOINT filing": &t.savepoint, "RELEASE filing": &t.release, "ROLLBACK TO filing": &t.rollbackTo,
		sqlPaper: &t.paper, sqlInsertPaper: &t.insertPaper, sqlUpdatePaper: &t.updatePaper,
		sqlDonePapers: &t.donePaper, sqlStirring: &t.stirring,
		sqlForgetBound: &t.forgetBound, sqlForgetPaper: &t.forgetPaper,
		sqlChange: &t.change, sqlInsertWorkflow: &t.insertWorkflow, sqlForgetWorkflow: &t.forgetWorkflow,
		sqlUnsealedRun: &t.unsealedRun, sqlUnsealedWrites: &t.unsealedOnes, sqlSealed: &t.sealed,
		sqlSince: &t.since, sqlExtent: &t.extent, sqlOldChanges: &t.oldChanges, sqlForgetChanges: &t.forgetChange,
	} {
		s, err := conn.Prepare(query)
		if err != nil {
			return nil, explain(path, err)
		}
		*dst = s
	}
	return t, nil
}

// begin looks at the version and the clock, under the write lock.
func (t *tx) begin() error {
	t.broken, t.wakes, t.tells = nil, false, false
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
		t.chronicle, t.ticket = t.meta.ColumnBool(3), t.meta.ColumnInt64(4)
		t.found = foundUpTo{t.meta.ColumnInt64(5), t.meta.ColumnInt64(6)}
		return known(t.path, t.meta.ColumnInt(0), t.meta.ColumnInt(1))
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %s: its version is missing", ledger.ErrCorrupt, t.path)
	}
	return err
}

// operate runs one operation and says whether it changed anything. Operations
// are refused before they change anything; one that fails later has met a
// fault of the disk or the file, and breaks the transaction for all.
func (t *tx) operate(run func(*tx) error) (changed bool, err error) {
	t.wrote = false
	err = run(t)
	if err != nil && t.wrote || t.conn.AutocommitEnabled() { // SQLite rolls back by itself as well
		t.broken = errors.Join(errors.New("the transaction was rolled back"), err)
	}
	return t.wrote, err
}

// commit makes the transaction durable. An error that is not spoiled leaves
// open whether it was.
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

// rollback undoes the transaction, if SQLite has not done so itself.
func (t *tx) rollback() error {
	clear(t.remembered)
	if t.conn.AutocommitEnabled() {
		return nil
	}
	return exec(t.path, t.rollbackAll)
}

// stamp is the time of the operation under way.
func (t *tx) stamp() time.Time {
	now := clamp(t.now(), t.newest)
	t.newest = nanos(now)
	return now
}

// trust is stamp for operations that must not run on a clock that stands
// before the newest entry.
func (t *tx) trust() (time.Time, error) {
	if err := trusted(t.now(), t.newest); err != nil {
		return time.Time{}, err
	}
	return t.stamp(), nil
}
