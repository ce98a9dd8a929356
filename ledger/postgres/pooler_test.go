package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/readback-go/readback/ledger/postgres"
)

// between listens, and connects each client to the server with serve once the session has begun.
func between(t *testing.T, server string, serve func(back *pgproto3.Backend, front *pgproto3.Frontend)) (addr string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	must(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { session(t, client, server, serve) })
		}
	})
	return l.Addr().String()
}

// session serves one client until it disconnects.
func session(t *testing.T, client net.Conn, server string, serve func(back *pgproto3.Backend, front *pgproto3.Frontend)) {
	defer func() { _ = client.Close() }()
	upstream, err := new(net.Dialer).DialContext(context.Background(), "tcp4", server)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = upstream.Close() }()
	back, front := pgproto3.NewBackend(client, client), pgproto3.NewFrontend(upstream, upstream)
	startup, err := back.ReceiveStartupMessage()
	if err != nil {
		return
	}
	front.Send(startup)
	if err := errors.Join(front.Flush(), untilReady(front, back.Send, new(byte)), back.Flush()); err == nil {
		serve(back, front)
	}
}

// pooler imitates a pooler in transaction mode: each transaction gets a connection without any
// state of the previous one.
func pooler(t *testing.T, server string) (addr string) {
	t.Helper()
	return between(t, server, pooled)
}

func pooled(back *pgproto3.Backend, front *pgproto3.Frontend) {
	for status := byte('I'); ; {
		if status == 'I' {
			front.Send(&pgproto3.Query{String: "DISCARD ALL"})
			if err := errors.Join(front.Flush(), untilReady(front, func(pgproto3.BackendMessage) {}, &status)); err != nil {
				return
			}
		}
		if untilSync(back, front) != nil || untilReady(front, back.Send, &status) != nil || back.Flush() != nil {
			return
		}
	}
}

// untilSync reads a client's messages until it waits for an answer.
func untilSync(back *pgproto3.Backend, front *pgproto3.Frontend) error {
	for {
		m, err := back.Receive()
		if err != nil {
			return err
		}
		front.Send(m)
		switch m.(type) {
		case *pgproto3.Sync, *pgproto3.Query:
			return front.Flush()
		case *pgproto3.Terminate:
			return errors.Join(front.Flush(), io.EOF)
		}
	}
}

// untilReady takes the server's messages until it waits.
func untilReady(front *pgproto3.Frontend, take func(pgproto3.BackendMessage), status *byte) error {
	for {
		m, err := front.Receive()
		if err != nil {
			return err
		}
		take(m)
		if ready, ok := m.(*pgproto3.ReadyForQuery); ok {
			*status = ready.TxStatus
			return nil
		}
	}
}

// With a pooler that keeps no state on a connection the ledger adapts, and callers notice
// nothing.
func TestPooler(t *testing.T) {
	d := fresh(t)
	host, port, err := net.SplitHostPort(pooler(t, d.server.Addr()))
	must(t, err)
	dsn := d.dsn()
	fields := strings.Fields(dsn)
	fields[0], fields[1] = "host="+host, "port="+port
	l, err := postgres.Open(t.Context(), strings.Join(fields, " "), nil)
	must(t, err)
	defer l.Close()
	var wg sync.WaitGroup
	for g := range 24 {
		wg.Go(func() {
			for i := range 5 {
				if err := pair(l, reservation(t, asked(fmt.Sprint("w", g, "-", i)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	rec, _, err := l.Reserve(t.Context(), reservation(t, asked("last")))
	must(t, err)
	for name, call := range calls(t, l, rec) {
		if err := call(); err != nil && name != "absent" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !l.Unnamed() {
		t.Error("statements are still taken to be prepared: the pooler of this test keeps them")
	}
}
