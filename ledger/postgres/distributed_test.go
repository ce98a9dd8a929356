package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// remote is a proxy that answers as a distributed database may. Its chances are drawn from one
// seed.
type remote struct {
	serialization float64       // of each statement: that it fails with 40001, and is not run
	unsure        float64       // of each commit: that its result is not known, with 40003 or with the connection
	away          time.Duration // of the database: one way

	mu     sync.Mutex
	random *rand.Rand
}

// through returns the connection string of a database behind the proxy.
func (r *remote) through(t *testing.T, d *database) string {
	t.Helper()
	r.random = rand.New(rand.NewPCG(1, 2))
	host, port, err := net.SplitHostPort(between(t, d.server.Addr(), r.serve))
	must(t, err)
	fields := strings.Fields(d.dsn())
	fields[0], fields[1] = "host="+host, "port="+port
	return strings.Join(fields, " ")
}

func (r *remote) chance(of float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.Float64() < of
}

// verbatim is messages of a client, as they came.
type verbatim []byte

func (verbatim) Frontend()                           {}
func (verbatim) Decode([]byte) error                 { panic("it is only sent") }
func (b verbatim) Encode(dst []byte) ([]byte, error) { return append(dst, b...), nil }

// group is what a client sends before it waits for an answer.
type group struct {
	messages verbatim
	texts    []string // of the statements that are run
	end      bool
}

func (g group) begins(word string) bool {
	return len(g.texts) == 1 && strings.HasPrefix(g.texts[0], word)
}

var change = regexp.MustCompile(`(?i)\b(INSERT INTO|UPDATE|DELETE FROM) `)

func (g group) changes() bool {
	for _, text := range g.texts {
		if change.MatchString(strings.ReplaceAll(text, "FOR UPDATE", "")) {
			return true
		}
	}
	return false
}

// next reads a group. Statements are those that the connection keeps prepared.
func next(back *pgproto3.Backend, statements map[string]string) (g group, err error) {
	bound := ""
	for {
		m, err := back.Receive()
		if err != nil {
			return g, err
		}
		if g.messages, err = m.Encode(g.messages); err != nil {
			return g, err
		}
		switch m := m.(type) {
		case *pgproto3.Parse:
			statements[m.Name] = m.Query
		case *pgproto3.Bind:
			bound = m.PreparedStatement
		case *pgproto3.Execute:
			g.texts = append(g.texts, statements[bound])
		case *pgproto3.Query:
			g.texts = append(g.texts, m.String)
			return g, nil
		case *pgproto3.Sync:
			return g, nil
		case *pgproto3.Terminate:
			g.end = true
			return g, nil
		}
	}
}

func (r *remote) serve(back *pgproto3.Backend, front *pgproto3.Frontend) {
	statements := make(map[string]string)
	discard := func(pgproto3.BackendMessage) {}
	for status, changed := byte('I'), false; ; {
		g, err := next(back, statements)
		if err != nil || g.end {
			return
		}
		if r.away > 0 {
			<-time.After(r.away)
		}
		// pass sends messages to the server, and its answer to take.
		pass := func(m pgproto3.FrontendMessage, take func(pgproto3.BackendMessage)) bool {
			front.Send(m)
			return front.Flush() == nil && untilReady(front, take, &status) == nil
		}
		refuse := func(code string) {
			back.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code, Message: "as a distributed database answers"})
			back.Send(&pgproto3.ReadyForQuery{TxStatus: status})
		}
		commit := g.begins("commit")
		commits := commit && changed || status == 'I' && !g.begins("BEGIN") && g.changes()
		switch {
		case status == 'E' || g.begins("rollback"):
			if !pass(g.messages, back.Send) {
				return
			}
		case r.chance(r.serialization):
			ok := true
			if commit {
				ok = pass(&pgproto3.Query{String: "ROLLBACK"}, discard)
			} else if status == 'T' {
				ok = pass(&pgproto3.Query{String: "SELECT 1/0"}, discard)
			}
			if !ok {
				return
			}
			refuse("40001")
		case commits && r.chance(r.unsure):
			ok := true
			if r.chance(0.5) {
				ok = pass(g.messages, discard)
			} else if commit {
				ok = pass(&pgproto3.Query{String: "ROLLBACK"}, discard)
			}
			if !ok || r.chance(0.5) {
				return // with the connection
			}
			refuse("40003")
		default:
			if !pass(g.messages, back.Send) {
				return
			}
		}
		changed = status != 'I' && (changed || g.changes())
		if r.away > 0 {
			<-time.After(r.away)
		}
		if back.Flush() != nil {
			return
		}
	}
}

// A ledger works in a database that is a quarter of a second away: each way of making a change
// sends a time that the database accepts.
func TestFarAway(t *testing.T) {
	d := fresh(t)
	d.open(nil) // its tables are made from nearby
	dsn := (&remote{away: 125 * time.Millisecond}).through(t, d)
	prepared, err := postgres.Open(t.Context(), dsn, nil)
	must(t, err)
	defer prepared.Close()
	l, err := postgres.Open(t.Context(), dsn+" default_query_exec_mode=exec", nil) // half the round trips
	must(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // they need 10 s
	defer cancel()
	var wg sync.WaitGroup
	alone := func(l *postgres.Ledger, name string) func() error {
		return func() error {
			rec, _, err := l.Reserve(ctx, reservation(t, asked(name)))
			if err == nil {
				_, err = l.Append(ctx, rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent})
			}
			return err
		}
	}
	ways := map[string]func() error{
		"alone":    alone(l, "alone"),
		"prepared": alone(prepared, "prepared"),
		"together": func() error {
			made, err := l.ReserveTogether(reservation(t, asked("one")), reservation(t, asked("two")))
			if err == nil && made != 2 {
				err = fmt.Errorf("%d of 2 were made", made)
			}
			return err
		},
		"in a queue": func() error {
			first, _, err := l.Reserve(ctx, reservation(t, about("r", 1)))
			if err != nil {
				return err
			}
			if _, _, err = l.Reserve(ctx, reservation(t, about("r", 2))); err != nil {
				return err
			}
			_, err = l.Append(ctx, first.ID, first.Fence, whole[1:]...) // frees the second
			return err
		},
		"from the outbox": func() error {
			if err := enqueue(t, l, true, about("s", 1), about("s", 2)); err != nil {
				return err
			}
			_, err := l.Get(ctx, "acme", idOf(about("s", 2)))
			return err
		},
		"with a document": func() error {
			res := reservation(t, asked("with a document"))
			_, err := l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{page("acme", "p", 0)}, Reserve: &res})
			return err
		},
		"with several": func() error {
			rec, _, err := l.Reserve(ctx, reservation(t, asked("several")))
			if err != nil {
				return err
			}
			late := ledger.Appending{ID: rec.ID, Fence: rec.Fence, Events: []ledger.Event{{Kind: ledger.EvLate}}}
			_, err = l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{page("acme", "several", 0)}, Append: []ledger.Appending{late, late}})
			return err
		},
	}
	for name, way := range ways {
		wg.Go(func() {
			if err := way(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
}
