package postgres_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// awaitSignal waits for a wake-up; the timeout is for a test that fails.
func awaitSignal(t *testing.T, woken <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-woken:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: no worker was woken", what)
	}
}

// queued reserves a write for any worker.
func queued(t *testing.T, l *postgres.Ledger, workflow string) {
	t.Helper()
	rec, err := ledger.NewRecord(asked(workflow))
	must(t, err)
	_, _, err = l.Reserve(context.Background(), ledger.Reservation{Record: rec})
	must(t, err)
}

// listens waits until a ledger has its connection to listen on.
func (d *database) listens(l *postgres.Ledger) {
	d.t.Helper()
	for range 3000 {
		var n int
		must(d.t, l.Pool().QueryRow(context.Background(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'").Scan(&n))
		if n > 0 {
			return
		}
	}
	d.t.Fatal("no subscriber")
}

// Another process is notified of new work, whichever way it came.
func TestWokenByOthers(t *testing.T) {
	d := fresh(t)
	here, there := d.open(nil), d.open(nil)
	woken := there.Woken(t.Context())
	awaitSignal(t, woken, "the first read")
	d.listens(here)
	queued(t, here, "w1")
	awaitSignal(t, woken, "queued in another process")
	must(t, enqueue(t, here, true, asked("w2")))
	awaitSignal(t, woken, "enqueued in another process")
	d.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
	awaitSignal(t, woken, "the connection was cut and made anew")
}

// deaf is a proxy to a server that cuts each connection that wants to listen.
func deaf(t *testing.T, addr string) (proxy string, asked <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	cut := make(chan struct{}, 1)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", addr)
				if err != nil {
					return
				}
				defer server.Close()
				go func() { defer client.Close(); _, _ = io.Copy(client, server) }()
				part := make([]byte, 64<<10)
				for {
					n, err := client.Read(part)
					if err != nil {
						return
					}
					if bytes.Contains(part[:n], []byte("LISTEN")) {
						select {
						case cut <- struct{}{}:
						default:
						}
						return
					}
					if _, err := server.Write(part[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), cut
}

// Without LISTEN everything works, and work of this process wakes its workers all the same.
func TestWokenWithoutListen(t *testing.T) {
	d := fresh(t)
	wanted := asked("w1")
	proxy, listened := deaf(t, d.server.Addr())
	_, port, err := net.SplitHostPort(proxy)
	must(t, err)
	dsn := d.dsn() + " port=" + port // the last one counts
	l, err := postgres.Open(context.Background(), dsn, nil)
	must(t, err)
	defer func() { must(t, l.Close()) }()
	woken := l.Woken(t.Context())
	awaitSignal(t, listened, "the connection to listen on")
	queued(t, l, "w1")
	awaitSignal(t, woken, "queued in this process")
	are(t, lent(t, l), wanted)
	for what, rests := range map[string][]ledger.Document{"committed": nil, "committed in a transaction": {page("acme", "none", 0)}} {
		res := reservation(t, asked(what))
		res.Owner, res.Events = "", nil
		file(t, l, ledger.Batch{Documents: []ledger.Document{page("acme", what, 0)}, Reserve: &res, Unchanged: rests})
		awaitSignal(t, woken, what)
	}
}
