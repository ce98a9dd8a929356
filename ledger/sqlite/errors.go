package sqlite

import (
	"errors"
	"fmt"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

// explain converts an error of SQLite, and no other, to an error of package ledger that names the
// file.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultFormat, sqlite.ResultError,
		sqlite.ResultConstraint, sqlite.ResultMismatch, sqlite.ResultSchema:
		return fmt.Errorf("%w: %s: %w", ledger.ErrCorrupt, path, err)
	default:
		return unavailable(path, err)
	}
}

// hints are remedies for common faults of a file.
var hints = map[sqlite.ResultCode]string{
	sqlite.ResultFull:     "the disk or a quota is full: free some space, nothing needs repair",
	sqlite.ResultReadOnly: "the file, its log (-wal, -shm), its directory or the file system cannot be written: all must be writable by the user of this process",
	sqlite.ResultCantOpen: "the file or its log (-wal, -shm) cannot be opened or made: the file and its directory must be writable by the user of this process",
	sqlite.ResultPerm:     "the file cannot be opened by the user of this process",
	sqlite.ResultBusy:     "another process holds the write lock: find one that is stopped, or an open transaction",
	sqlite.ResultIOErr:    "the disk reports an error: it may be full, or failing",
}

func unavailable(path string, err error) error {
	if hint := hints[sqlite.ErrCode(err).ToPrimary()]; hint != "" {
		return fmt.Errorf("%w: %s: %w: %s", ledger.ErrUnavailable, path, err, hint)
	}
	return fmt.Errorf("%w: %s: %w", ledger.ErrUnavailable, path, err)
}

// locked reports whether another connection is in the way and waiting helps.
func locked(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultProtocol:
		return err != nil
	}
	return false
}

// exec runs a statement that returns no rows.
func exec(path string, s *sqlite.Stmt) error {
	_, err := s.Step()
	return explain(path, errors.Join(err, s.Reset()))
}

// each calls f for every row of a statement, and resets it for the next use. Errors of f are
// returned unchanged.
func each(path string, s *sqlite.Stmt, f func() error) (err error) {
	defer func() {
		if again := s.Reset(); err == nil {
			err = explain(path, again)
		}
	}()
	for {
		row, err := s.Step()
		if err != nil || !row {
			return explain(path, err)
		}
		if err := f(); err != nil {
			return err
		}
	}
}
