package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/readback-go/readback/ledger"
)

// What may have committed is never reported as not applied.
func TestFailedWhileCommitting(t *testing.T) {
	answer := func(severity, code string) error {
		return fmt.Errorf("commit: %w", &pgconn.PgError{Severity: severity, SeverityUnlocalized: severity, Code: code})
	}
	for name, c := range map[string]struct {
		err           error
		unsure, again bool
		reason        string
	}{
		"connection lost":        {io.ErrUnexpectedEOF, true, false, "the answer may be what was lost"},
		"no answer in time":      {context.DeadlineExceeded, true, false, "no caller waited for it"},
		"ended by the server":    {answer("FATAL", "57P01"), true, false, "it can come behind the commit"},
		"ended by a pooler":      {answer("ERROR", "08006"), true, false, "the pooler lost its server and keeps its client"},
		"unknown to a pooler":    {answer("ERROR", "08007"), true, false, "it says so"},
		"ambiguous":              {answer("ERROR", "40003"), true, false, "a distributed database says so"},
		"rolled back by itself":  {pgx.ErrTxCommitRollback, true, false, "never met: the cautious answer"},
		"serialization failure":  {answer("ERROR", "40001"), false, true, "it was rolled back"},
		"deadlock":               {answer("ERROR", "40P01"), false, true, "it was rolled back"},
		"not prepared":           {answer("ERROR", "26000"), false, true, "it was not run"},
		"disk full":              {answer("ERROR", "53100"), false, false, "it was rolled back"},
		"no connection was made": {&pgconn.ConnectError{Config: &pgconn.Config{}}, false, false, "it was not sent"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Ledger{name: "test"}).broken(c.err)
			if got := errors.Is(err, ledger.ErrUnsure); got != c.unsure {
				t.Errorf("unsure: %v, want %v: %s (%v)", got, c.unsure, c.reason, err)
			}
			if got := errors.Is(err, errAgain); got != c.again {
				t.Errorf("again: %v, want %v: %s (%v)", got, c.again, c.reason, err)
			}
			if !c.again && !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("error %v, want unavailable", err)
			}
		})
	}
}

// An error about a row that was read does not concern the connection, which is kept.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		lost   bool
		reason string
	}{
		"connection broken": {io.ErrUnexpectedEOF, true, "another one may serve"},
		"ended":             {&pgconn.PgError{Severity: "FATAL", Code: "57P01"}, true, "another one may serve"},
		"a standby":         {fmt.Errorf("%w: a standby", ledger.ErrUnavailable), true, "another one may lead to the primary"},
		"refused":           {&pgconn.PgError{Severity: "ERROR", Code: "22021"}, false, "it would be refused again"},
		"a damaged row":     {fmt.Errorf("write: %w", ledger.ErrCorrupt), false, "it is as damaged on any connection"},
		"no such write":     {ledger.ErrNotFound, false, "nor is it there"},
		"the clock":         {ledger.ErrClock, false, "all have one clock"},
		"the caller":        {context.Canceled, false, "no caller waits any more"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lost(c.err); got != c.lost {
				t.Errorf("lost %v, want %v: %s", got, c.lost, c.reason)
			}
		})
	}
}
