package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// swallower is a proxy that, on request, loses the answer to the next change of a kind that the
// database has made durable, with the connection.
type swallower struct {
	asked atomic.Bool
	kind  string // statement, pipeline or commit
}

func (s *swallower) listen(t *testing.T, server string) (addr string) {
	t.Helper()
	return between(t, server, s.serve)
}

func (s *swallower) serve(back *pgproto3.Backend, front *pgproto3.Frontend) {
	for status, changed := byte('I'), false; ; {
		kind, stored := passOn(back, front), false
		err := untilReady(front, func(m pgproto3.BackendMessage) {
			stored = stored || names(m)
			back.Send(m)
		}, &status)
		if err != nil {
			return
		}
		durable := status == 'I' && (kind == "commit" && changed || kind != "commit" && stored)
		if durable && kind == s.kind && s.asked.CompareAndSwap(true, false) {
			return // and back is never flushed
		}
		changed = status != 'I' && (changed || stored && kind == "statement")
		if back.Flush() != nil {
			return
		}
	}
}

// names reports whether a message names a write: the answer of a statement that stored some. One
// whose time was not the database's stores none and is repeated.
func names(m pgproto3.BackendMessage) bool {
	row, ok := m.(*pgproto3.DataRow)
	return ok && slices.ContainsFunc(row.Values, func(value []byte) bool { return bytes.Contains(value, []byte("wr_")) })
}

// passOn forwards a client's messages until it waits for an answer, and returns what kind of
// change they are.
func passOn(back *pgproto3.Backend, front *pgproto3.Frontend) (kind string) {
	defer func() { _ = front.Flush() }()
	for {
		m, err := back.Receive()
		if err != nil {
			return ""
		}
		front.Send(m)
		switch m := m.(type) {
		case *pgproto3.Parse:
			if strings.Contains(m.Query, "INSERT INTO ledger_events") || strings.Contains(m.Query, "INSERT INTO ledger_documents") {
				kind = map[string]string{"": "statement", "statement": "pipeline"}[kind]
			}
		case *pgproto3.Query:
			return m.String
		case *pgproto3.Sync, *pgproto3.Terminate:
			return kind
		}
	}
}

// The change is durable and its answer is lost, on each way by which changes are made: no caller
// gets an error that says that nothing was applied, and nothing is done twice.
func TestAnswerLost(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		kind   string
		call   func(l *postgres.Ledger, head ledger.Record) error
		done   func(l *postgres.Ledger, head ledger.Record) bool
	}{
		"a statement of its own": {"its commit is part of it", "statement",
			func(l *postgres.Ledger, _ ledger.Record) error { return reserveNow(t, l, about("other", 1)) },
			func(l *postgres.Ledger, _ ledger.Record) bool { return there(t, l, idOf(about("other", 1))) }},
		"the end of a transaction": {"a place in the queue takes several statements", "commit",
			func(l *postgres.Ledger, _ ledger.Record) error { return reserveNow(t, l, about("r", 2)) },
			func(l *postgres.Ledger, _ ledger.Record) bool { return there(t, l, idOf(about("r", 2))) }},
		"an append": {"the announcement of a send may stand", "statement",
			func(l *postgres.Ledger, head ledger.Record) error {
				_, err := l.Append(context.Background(), head.ID, head.Fence, ledger.Event{Kind: ledger.EvSent})
				return err
			},
			func(l *postgres.Ledger, head ledger.Record) bool {
				rec, err := l.Get(context.Background(), head.Tenant, head.ID)
				must(t, err)
				return rec.Seq == head.Seq+1
			}},
		"two statements at once": {"they are one transaction", "pipeline",
			func(l *postgres.Ledger, head ledger.Record) error { return crowded(t, l, head) },
			func(l *postgres.Ledger, head ledger.Record) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := fresh(t), &swallower{kind: c.kind}
			host, port, err := net.SplitHostPort(s.listen(t, d.server.Addr()))
			must(t, err)
			fields := strings.Fields(d.dsn())
			fields[0], fields[1] = "host="+host, "port="+port
			l, err := postgres.Open(t.Context(), strings.Join(fields, " ")+" default_query_exec_mode=exec", nil)
			must(t, err)
			defer l.Close()
			head, _, err := l.Reserve(t.Context(), reservation(t, about("r", 1)))
			must(t, err)
			s.asked.Store(true)
			err = c.call(l, head)
			if s.asked.Load() {
				t.Fatalf("no answer was lost: the statement is not known any more; error %v", err)
			}
			if !errors.Is(err, ledger.ErrUnsure) || !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("error %v, want that it is unknown: %s", err, c.reason)
			}
			if !c.done(d.open(nil), head) {
				t.Errorf("it was not done, or twice: %s", c.reason)
			}
		})
	}
}

func reserveNow(t *testing.T, l *postgres.Ledger, w intent.WriteIntent) error {
	t.Helper()
	_, _, err := l.Reserve(context.Background(), reservation(t, w))
	return err
}

func there(t *testing.T, l *postgres.Ledger, id ledger.ID) bool {
	t.Helper()
	_, err := l.Get(context.Background(), "acme", id)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// crowded makes a new write and a change meet in one transaction, and returns the error of both,
// if it was the same.
func crowded(t *testing.T, l *postgres.Ledger, head ledger.Record) error {
	t.Helper()
	release, asked := l.Occupy(t, 16), 0
	result := make(chan error, 64)
	ask := func(f func() error) {
		go func() { result <- f() }()
		for asked++; postgres.Waiting(l) < asked; {
			runtime.Gosched()
		}
	}
	for i := range 20 { // the first are transactions of their own
		ask(func() error { return reserveNow(t, l, about(fmt.Sprint("crowd", i), 1)) })
	}
	ask(func() error {
		_, err := l.Append(context.Background(), head.ID, head.Fence, ledger.Event{Kind: ledger.EvSent})
		return err
	})
	release()
	var unsure error
	for range asked {
		if err := <-result; err != nil {
			unsure = cmp.Or(unsure, err)
			if !errors.Is(err, ledger.ErrUnsure) {
				t.Errorf("error %v", err)
			}
		}
	}
	return unsure
}
