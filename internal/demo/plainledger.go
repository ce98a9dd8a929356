package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// plainLedger is the idempotency ledger that articles suggest, done with care: one row for each
// business key, on disk before the next order begins. If there is a row, the order was called,
// and is never called again. If not, it calls, and writes the row, whatever the result: also
// after an error, since a call without an answer may have charged. So a lost answer makes no
// second charge.
//
// It needs nothing from the destination, and reads nothing from there: of a call without an
// answer it records only that it was made. And its row is written by code that runs after the
// call. A killed process runs no code, so its successor finds no row and calls again.
//
// Writing the row first does not close that gap, it reverses it: with a row that only says
// "begun", the successor must call again (and charges twice if the call was made) or never (and
// loses the order if it was not). Ledgers that let such rows expire do the first.
func (w *worker) plainLedger(ctx context.Context) (err error) {
	rows, err := openRows(w.spec.rows())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.f.Close()) }()
	for n := 1; n <= w.spec.Orders; n++ {
		e, have := rows.known[orderID(n)]
		if !have {
			e = endAnswered
			if err := w.send(ctx, n, 1); err != nil {
				e = endUnanswered
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := rows.add(orderID(n), e); err != nil {
				return err
			}
		}
		if err := w.end(n, e); err != nil {
			return err
		}
	}
	return nil
}

// rows is the plain ledger's file: a line for each order, synced.
type rows struct {
	f     *os.File
	known map[string]ending
}

func openRows(path string) (*rows, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	r := &rows{f: f, known: map[string]ending{}}
	if err := r.read(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *rows) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		id, how, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			return fmt.Errorf("row %q: want an order and what became of it", lines.Text())
		}
		r.known[id] = ending(how)
	}
	return lines.Err()
}

func (r *rows) add(id string, e ending) error {
	if _, err := fmt.Fprintf(r.f, "%s %s\n", id, e); err != nil {
		return err
	}
	return r.f.Sync()
}
