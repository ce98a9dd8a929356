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

//go:embed sql/due.sql
var sqlDue string

//go:embed sql/insert.sql
var sqlInsert string

//go:embed sql/update.sql
var sqlUpdate string

//go:embed sql/event.sql
var sqlEvent string

// tx is the transaction under way on the connection that writes, and the
// statements it is made of.
type tx struct {
	path   string
	conn   *sqlite.Conn
	now    func() time.Time
	newest int64 // the newest time given to an entry
	many   bool  // several operations share it
	saved  bool  // the operation under way has written
	broken error // what ended the transaction before its time

	beginImmediate, commitAll, rollbackAll *sqlite.Stmt
	save, release, rollbackTo              *sqlite.Stmt
	meta, tick                             *sqlite.Stmt
	find, operation, due                   *sqlite.Stmt
	insert, update, event                  *sqlite.Stmt
}

func newTx(conn *sqlite.Conn, path string, now func() time.Time) (*tx, error) {
	t := &tx{path: path, conn: conn, now: now}
	for query, dst := range map[string]**sqlite.Stmt{
		"BEGIN IMMEDIATE": &t.beginImmediate, "COMMIT": &t.commitAll, "ROLLBACK": &t.rollbackAll,
		"SAVEPOINT operation": &t.save, "RELEASE operation": &t.release, "ROLLBACK TO operation": &t.rollbackTo,
		sqlMeta: &t.meta, sqlTick: &t.tick,
		sqlFind: &t.find, sqlOperation: &t.operation, sqlDue: &t.due,
		sqlInsert: &t.insert, sqlUpdate: &t.update, sqlEvent: &t.event,
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
func (t *tx) begin(many bool) error {
	t.many, t.broken = many, nil
	found := false
	err := each(t.path, t.meta, func() error {
		found = true
		t.newest = t.meta.ColumnInt64(1)
		return known(t.path, t.meta.ColumnInt(0))
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %s: its version is missing", ledger.ErrCorrupt, t.path)
	}
	return err
}

// operate runs one operation so that it is applied whole or not at all, and
// says whether it changed anything.
func (t *tx) operate(run func(*tx) error) (changed bool, err error) {
	t.saved = false
	err = run(t)
	switch {
	case t.conn.AutocommitEnabled(): // SQLite itself has rolled everything back
		t.broken = errors.Join(errors.New("the transaction was rolled back"), err)
	case !t.saved, !t.many: // the transaction is the operation
	case err == nil:
		t.broken = exec(t.path, t.release)
	default:
		t.broken = errors.Join(exec(t.path, t.rollbackTo), exec(t.path, t.release))
	}
	return t.saved && err == nil, err
}

// mutate comes before the first change of an operation. An operation that
// only looks, or is refused, costs no savepoint.
func (t *tx) mutate() error {
	if t.saved {
		return nil
	}
	t.saved = true
	if !t.many {
		return nil
	}
	return exec(t.path, t.save)
}

// commit makes the transaction durable. An error that is not spoiled leaves
// open whether it was.
func (t *tx) commit() error {
	t.tick.BindInt64(1, t.newest)
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
