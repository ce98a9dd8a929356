package sqlite

import (
	"context"
	"errors"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Queries are the statements that run while somebody waits, by name.
var Queries = map[string]string{
	"find": sqlFind, "operation": sqlOperation, "update": sqlUpdate,
	"last": sqlLast, "next": sqlNext, "before": sqlBefore,
	"party": sqlParty, "due": sqlDue, "numbered": sqlNumbered, "damaged": sqlDamaged,
	"get": sqlGet, "events": sqlEvents, "list": sqlList, "about": sqlAbout, "meta": sqlMeta, "persons": sqlPersons,
}

// DoorQueries are the statements that doors ask for, by name.
var DoorQueries = map[string]string{
	"changes known": sqlChangesKnown, "changes": sqlChanges, "changes of a tenant": sqlChangesTenant,
	"history": sqlHistory, "change at": sqlChangeAt, "extent": sqlExtent, "search nothing": sqlSearchNothing, "search nothing, oldest first": upwards.Replace(sqlSearchNothing), "old changes": sqlOldChanges, "forget changes": sqlForgetChanges,
	"search about": sqlSearchAbout, "search operation": sqlSearchOperation, "search correlation": sqlSearchCorrelation,
	"search workflow": sqlSearchWorkflow, "search state": sqlSearchState,
	"search about, oldest first": upwards.Replace(sqlSearchAbout), "search operation, oldest first": upwards.Replace(sqlSearchOperation),
	"search correlation, oldest first": upwards.Replace(sqlSearchCorrelation), "search workflow, oldest first": upwards.Replace(sqlSearchWorkflow),
	"search state, oldest first": upwards.Replace(sqlSearchState),
}

// HardLog is the bound of the log, in pages, and LookEvery after how many
// operations it is looked at.
const (
	HardLog   = hardLog
	LookEvery = lookEvery
)

// Version1 makes a file as version 1 had it, with these writes in it.
func Version1(path string, recs ...ledger.Record) error {
	return oldFile(path, 1, insertVersion1, recs)
}

// Version2 makes a file as version 2 had it, with these writes in it.
func Version2(path string, recs ...ledger.Record) error {
	return oldFile(path, 2, insertVersion2, recs)
}

// Version3 makes a file as version 3 had it, with these writes in it.
func Version3(path string, recs ...ledger.Record) error {
	return oldFile(path, 3, insertVersion2, recs)
}

func oldFile(path string, version int, insert func(*sqlite.Conn, ledger.Record) error, recs []ledger.Record) error {
	conn, err := sqlite.OpenConn(path)
	if err != nil {
		return err
	}
	for _, name := range versions()[:version] {
		err = errors.Join(err, sqlitex.ExecuteScriptFS(conn, migrations, name, nil))
	}
	err = errors.Join(err, sqlitex.Execute(conn, "UPDATE ledger_meta SET version = ?", &sqlitex.ExecOptions{Args: []any{version}}))
	for _, r := range recs {
		err = errors.Join(err, insert(conn, r))
	}
	return errors.Join(err, conn.Close())
}

// insertVersion2 is what version 2 did for a write that is in no line.
func insertVersion2(conn *sqlite.Conn, r ledger.Record) error {
	if err := insertVersion1(conn, r); err != nil {
		return err
	}
	c := columnsOf(r)
	return sqlitex.Execute(conn, "UPDATE ledger_writes SET destination = ?, settled_at = nullif(?, 0), key_digest = nullif(?, '') WHERE id = ?",
		&sqlitex.ExecOptions{Args: []any{c.destination, c.settledAt, c.keyDigest, c.id}})
}

// insertVersion1 is what version 1 did. Its events are left out.
func insertVersion1(conn *sqlite.Conn, r ledger.Record) error {
	c := columnsOf(r)
	var due any
	if c.dueSet {
		due = c.due
	}
	body, err := driver.Encode(r)
	if err != nil {
		return err
	}
	return sqlitex.Execute(conn, `INSERT INTO ledger_writes (id, tenant, tool, structural_key, idempotency_key, created, intent,
		state, due, lease_until, fence, seq, body, before, evidence) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		&sqlitex.ExecOptions{Args: []any{c.id, c.tenant, c.tool, c.structuralKey, c.idempotencyKey, c.created, string(r.Intent),
			c.state, due, c.leaseUntil, c.fence, c.seq, body, nil, string(r.Evidence)}})
}

// Change runs SQL as an operation of its own, which is committed.
func (l *Ledger) Change(sql string) error {
	return l.writer.do(context.Background(), func(t *tx) error {
		t.wrote = true
		clear(t.remembered)
		return sqlitex.ExecuteScript(t.conn, sql, nil)
	})
}

// Write runs SQL on the connection that writes, as an operation of its own
// that does not count: what it changes in the file is taken back.
func (l *Ledger) Write(sql string) error {
	return l.writer.do(context.Background(), func(t *tx) error { return sqlitex.ExecuteScript(t.conn, sql, nil) })
}

// Read runs a query on a connection that reads and returns the first column.
func (l *Ledger) Read(query string) (values []string, err error) {
	err = l.read(context.Background(), func(conn *sqlite.Conn) error { return column(conn, query, &values) })
	return values, err
}

// WriterSays is Read on the connection that writes.
func (l *Ledger) WriterSays(query string) (values []string, err error) {
	err = l.writer.do(context.Background(), func(t *tx) error { return column(t.conn, query, &values) })
	return values, err
}

func column(conn *sqlite.Conn, query string, values *[]string) error {
	s, _, err := conn.PrepareTransient(query)
	if err != nil {
		return err
	}
	err = each("", s, func() error {
		*values = append(*values, s.ColumnText(s.ColumnCount()-1))
		return nil
	})
	return errors.Join(err, s.Finalize())
}

// Hold keeps the writer busy until the returned function is called. It returns
// when the writer is held.
func (l *Ledger) Hold() (release func()) {
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = l.writer.do(context.Background(), func(*tx) error {
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	return func() { close(free); <-done }
}

// Spoil is an operation that ends the transaction it is part of, as SQLite
// itself does on a full disk.
func (l *Ledger) Spoil() error {
	return l.writer.do(context.Background(), func(t *tx) error {
		return sqlitex.ExecuteTransient(t.conn, "ROLLBACK", nil)
	})
}
