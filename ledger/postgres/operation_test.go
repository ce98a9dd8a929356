package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// operations makes a ledger with very many writes, each with a key of its own, except one key
// under which thousands of attempts failed, and one that is used again each time its window has
// passed. The database has analysed them.
func operations(t *testing.T) (*database, *postgres.Ledger) {
	t.Helper()
	d := fresh(t)
	l := d.open(nil)
	must(t, pair(l, reservation(t, asked("model"))))
	d.exec(`INSERT INTO ledger_writes (id, tenant, destination, tool, structural_key, idempotency_key, key_digest, created, intent,
			state, due, settled_at, seq, tombstone, body, owner, lease_until, lease_for, fence, holds, blocks)
		SELECT 'wr_' || substr(k, 1, 32), w.tenant, w.destination, w.tool, k, CASE WHEN i <= 5000 THEN 'freed' WHEN i <= 10000 THEN 'weekly' ELSE k END,
			k, i, w.intent, w.state, w.due, w.settled_at, w.seq, w.tombstone, '{}', '', 0, 0, w.fence,
			i >= 10000, CASE WHEN i <= 5000 THEN NULL ELSE i END
		FROM ledger_writes AS w, (SELECT i, encode(sha256(i::text::bytea), 'hex') AS k FROM generate_series(1, 100000) AS i) AS x;
		ANALYZE`)
	return d, l
}

// node is a part of a plan as the database prints it.
type node struct {
	Type    string  `json:"Node Type"`
	Index   string  `json:"Index Name"`
	Table   string  `json:"Relation Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Cond    string  `json:"Index Cond"`
	Cost    float64 `json:"Total Cost"`
	Plans   []node
}

// met returns what a plan read of a table: how often each index was used, and how many rows in
// all.
func (n node) met(table string, asked map[string]int) (rows float64) {
	if n.Loops > 0 && (n.Table == table || strings.Contains(n.Index, table)) && strings.Contains(n.Type, "Scan") {
		asked[n.Type+" "+n.Index] += int(n.Loops)
		rows += (n.Rows + n.Removed) * n.Loops
	}
	for _, p := range n.Plans {
		rows += p.met(table, asked)
	}
	return rows
}

// ran returns the plan of a statement that was run and rolled back.
func ran(t *testing.T, conn *pgx.Conn, query string, args ...any) (n node) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	must(t, err)
	defer func() { must(t, tx.Rollback(context.Background())) }()
	var text string
	must(t, tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+query, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&text))
	var plans []struct{ Plan node }
	must(t, json.Unmarshal([]byte(text), &plans))
	return plans[0].Plan
}

// The query for a business operation is two probes in the statement that reserves: for a write that
// released it, and for one whose key was erased. One that holds it is in a unique index.
// Where it must name the prior write, it reads none that failed or is too old, however many those
// are.
func TestOperationQuery(t *testing.T) {
	d, l := operations(t)
	conn, err := pgx.Connect(t.Context(), d.dsn())
	must(t, err)
	defer conn.Close(context.Background())
	t.Run("reserve", func(t *testing.T) {
		query, args := l.Reserving(t, reservation(t, asked("new")))
		asked := map[string]int{}
		rows := ran(t, conn, query, args...).met("ledger_writes", asked)
		probes := asked["Index Scan ledger_writes_operation"] + asked["Index Only Scan ledger_writes_operation"]
		if probes != 2 || len(asked) != 1 || rows != 0 {
			t.Errorf("asked %v, met %.0f rows; want two probes of the index of operations", asked, rows)
		}
		res := reservation(t, ask("no key", ""))
		query, args = l.Reserving(t, res)
		if without := map[string]int{}; ran(t, conn, query, args...).met("ledger_writes", without) != 0 {
			t.Errorf("without a key: asked %v", without)
		}
	})
	for key, most := range map[string]float64{"freed": 0, "weekly": 1, "unused": 0} {
		t.Run(key, func(t *testing.T) {
			asked := map[string]int{}
			since := time.Now().Add(-24 * time.Hour).UnixNano()
			rows := ran(t, conn, postgres.Statements["operation"], "acme", "payments.create", []string{key, "erased:" + key}, since, "w").met("ledger_writes", asked)
			for scan := range asked {
				if scan != "Index Scan ledger_writes_operation" && scan != "Index Scan ledger_writes_holder" {
					t.Errorf("%s", scan)
				}
			}
			if rows > most {
				t.Errorf("asked %v, met %.0f rows, want at most %.0f", asked, rows, most)
			}
		})
	}
	t.Run("commits", func(t *testing.T) {
		for name, w := range map[string]string{"with a key": "invoice:77", "without": ""} {
			before := l.Stats().Commits
			_, _, err := l.Reserve(t.Context(), reservation(t, ask(name, w)))
			must(t, err)
			if commits := l.Stats().Commits - before; commits != 1 {
				t.Errorf("%s: %d commits", name, commits)
			}
		}
		rec, _, err := l.Reserve(t.Context(), reservation(t, ask("freed", "freed")))
		must(t, err)
		if rec.State != ledger.Sending {
			t.Errorf("a key that failed: %s", rec.Phase())
		}
	})
}

// A connection plans a reservation after some, and keeps the plan. In a new ledger there is nothing
// to learn from, so that no condition may be left for rows that were read: with each write of its
// tenant and tool, a reservation would take longer.
func TestPlanOfAReservationInANewLedger(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	query, _ := l.Reserving(t, reservation(t, asked("w")))
	conn, err := pgx.Connect(t.Context(), d.dsn())
	must(t, err)
	defer conn.Close(context.Background())
	made := 0
	for _, writes := range []int{0, 10, 200} {
		for ; made < writes; made++ {
			must(t, pair(l, reservation(t, asked(fmt.Sprint("w", made)))))
		}
		plan, probes := generic(t, conn, query), 0
		for _, n := range plan.all() {
			key := map[string]string{"ledger_writes": "idempotency_key = ", "ledger_outbox": "key_digest = "}[n.Table]
			if key == "" || !strings.Contains(n.Type, "Scan") {
				continue
			}
			if probes++; !strings.Contains(n.Cond, key) {
				t.Errorf("after %d writes: %s of %s by %q; want it by %s", writes, n.Type, n.Table, n.Cond, key)
			}
		}
		if probes != 3 {
			t.Errorf("%d probes, want two of the operation and one of the outbox: %+v", probes, plan)
		}
	}
}

// Few changes in one statement are planned once for a connection.
func TestPlanOfFewChanges(t *testing.T) {
	l := fresh(t).open(nil)
	release := l.Occupy(t, 15) // so that all run on one connection
	const planned = 5          // times, before the database considers to keep a plan
	for i := range 2 * planned {
		_, err := l.ReserveTogether(reservation(t, asked(fmt.Sprint("a", i))), reservation(t, asked(fmt.Sprint("b", i))))
		must(t, err)
	}
	var anew int
	must(t, l.Pool().QueryRow(t.Context(), "SELECT custom_plans FROM pg_prepared_statements WHERE custom_plans + generic_plans >= $1 AND statement LIKE '%INSERT INTO ledger_writes%'", 2*planned).Scan(&anew))
	release()
	if anew != planned {
		t.Errorf("of %d reservations of two, %d were planned, want %d", 2*planned, anew, planned)
	}
}

// Nor do other statements, which a connection plans as early, read rows that do not match.
func TestPlansInANewLedger(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	conn, err := pgx.Connect(t.Context(), d.dsn())
	must(t, err)
	defer conn.Close(context.Background())
	const key = "(idempotency_key = "
	record := map[string]string{"ledger_writes_head": "(queue = ", "ledger_writes_open": "(key_digest = "}
	made := 0
	for _, writes := range []int{0, 200} {
		for ; made < writes; made++ {
			must(t, pair(l, reservation(t, asked(fmt.Sprint("w", made)))))
		}
		for name, probes := range map[string]map[string]string{ // by index, its condition
			"precheck":                      record,
			"of_record":                     record,
			"few insert":                    {"ledger_writes_operation": key},
			"few update":                    {"ledger_writes_pkey": "(id = "},
			"search idempotency_key newest": {"ledger_writes_holder": key, "ledger_writes_operation": key, "ledger_writes_not_blocking": key},
			"operation":                     {"ledger_writes_holder": key, "ledger_writes_operation": key},
			"operation_holders":             {"ledger_writes_holder": key, "ledger_writes_operation": key},
		} {
			plan, left := generic(t, conn, postgres.Statements[name]), maps.Clone(probes)
			for _, n := range plan.all() {
				if n.Table == "ledger_writes" && n.Type == "Seq Scan" {
					t.Errorf("after %d writes %s reads all writes", writes, name)
				}
				if strings.Contains(n.Cond, probes[n.Index]) {
					delete(left, n.Index)
				}
			}
			if len(left) > 0 {
				t.Errorf("after %d writes %s has no probe %v: %+v", writes, name, left, plan)
			}
		}
	}
}

// generic returns the plan of a statement for unknown parameters.
func generic(t *testing.T, conn *pgx.Conn, query string) node {
	t.Helper()
	_, err := conn.Exec(t.Context(), "DEALLOCATE ALL; SET plan_cache_mode = force_generic_plan; PREPARE p AS "+query, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	of, err := conn.Prepare(t.Context(), "described", query)
	must(t, err)
	execute := "EXECUTE p"
	if n := len(of.ParamOIDs); n > 0 {
		execute += "(NULL" + strings.Repeat(", NULL", n-1) + ")"
	}
	var text string
	must(t, conn.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) "+execute, pgx.QueryExecModeSimpleProtocol).Scan(&text))
	must(t, conn.Deallocate(t.Context(), "described"))
	var plans []struct{ Plan node }
	must(t, json.Unmarshal([]byte(text), &plans))
	return plans[0].Plan
}

// all returns a plan's parts.
func (n node) all() []node {
	parts := []node{n}
	for _, p := range n.Plans {
		parts = append(parts, p.all()...)
	}
	return parts
}

// An operation that another write holds is not begun, and a write that ends with its reservation is
// of its operation too.
func TestBlockedReservations(t *testing.T) {
	l := fresh(t).open(nil)
	_, _, err := l.Reserve(t.Context(), reservation(t, ask("first", "invoice:77")))
	must(t, err)
	held, denied := ledger.Event{Kind: ledger.EvHeld}, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Denied, By: "ann"}
	for name, events := range map[string][]ledger.Event{"held": {held}, "denied": {held, denied}} {
		res := reservation(t, ask(name, "invoice:77"))
		res.Events = events
		if _, _, err := l.Reserve(t.Context(), res); !errors.Is(err, ledger.ErrBlocked) {
			t.Errorf("%s: error %v, want blocked", name, err)
		}
	}
}

// ask returns a write of ordinary size under a key.
func ask(name, key string) (w intent.WriteIntent) {
	w = asked(fmt.Sprint("w of ", name))
	w.IdempotencyKey = key
	return w
}
