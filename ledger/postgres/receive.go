package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// maxSort is how long the source of a move may take before the first row of a table, while the
// transaction of the target is idle: it sorts. Only the rows of the tenant are locked meanwhile.
const maxSort = 10 * time.Minute

// moving describes how the rows of a tenant in one table get into another ledger.
type moving struct {
	table   string
	columns string // of the rows, without their own numbers
	rows    string // which, and in which order; x is the table
	// of is the column with the number of a write, which the other ledger numbers anew; "" for none.
	of string
	// lot says that the first column is the lot of that number.
	lot bool
	// fence is the column that grows by one, so that a worker of the source is fenced off.
	fence string
}

// movings are the tables in the order in which they are copied. The changes that followers read
// stay: a follower reads the feeds of all partitions.
var movings = []moving{
	{table: "ledger_writes", of: "n", fence: "fence", rows: "x.tenant = $1 ORDER BY x.n",
		columns: "n id tenant destination tool structural_key idempotency_key key_digest step_of created intent state due settled_at queue queued_behind blocks seq tombstone body " +
			"before evidence mismatches child_intent owner lease_until lease_for fence holds followed damaged waits"},
	{table: "ledger_events", of: "write", columns: "write seq body evidence mismatches",
		rows: "x.write IN (SELECT w.n FROM @ledger_writes AS w WHERE w.tenant = $1) ORDER BY x.write, x.seq"},
	{table: "ledger_search", of: "n", columns: "n id tenant workflow correlation_id key_digest", rows: "x.tenant = $1"},
	{table: "ledger_terms", of: "n", lot: true, columns: "lot tenant term n id", rows: "x.tenant = $1"},
	{table: "ledger_documents", columns: "tenant kind id collection subject trace state due done body version created updated position", rows: "x.tenant = $1 ORDER BY x.n"},
	{table: "ledger_outbox", columns: "id tenant key_digest intent enqueued refused", rows: "x.tenant = $1 ORDER BY x.n"},
	{table: "ledger_unsealed", of: "write", columns: "at write id first last mark",
		rows: "(x.write IN (SELECT w.n FROM @ledger_writes AS w WHERE w.tenant = $1) OR x.mark::json ->> 'tenant' = $1) ORDER BY x.ticket"},
}

// Receive implements [ledger.Partition]. It is one transaction: a move that is interrupted leaves
// nothing here.
func (l *Ledger) Receive(ctx context.Context, from ledger.Partition, o ledger.Ownership) (fresh bool, err error) {
	source, ok := from.(*Ledger)
	if !ok || !source.keeping.Digests.Same(l.keeping.Digests) {
		return false, fmt.Errorf("%w: the digests of the two ledgers have different keys", ledger.ErrPartition)
	}
	err = l.within(ctx, func(t *tx) error {
		fresh = false
		if _, err := t.pgx.Exec(ctx, fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", maxSort.Milliseconds())); err != nil {
			return err
		}
		have := ledger.Ownership{}
		if err := t.exec("insert_ownership", o.Tenant, int64(0), string(ledger.TenantMoved)); err != nil {
			return err
		}
		err := t.pgx.QueryRow(ctx, l.sql.Text("lock_ownership"), l.args(o.Tenant)...).Scan(&have.Tenant, &have.Epoch, (*string)(&have.State))
		switch {
		case err != nil:
			return err
		case have.Epoch == o.Epoch && have.State == ledger.TenantActive:
			return nil
		case have.Epoch >= o.Epoch:
			return fmt.Errorf("%w: %s keeps tenant %q as %s since epoch %d", ledger.ErrStale, l.name, o.Tenant, have.State, have.Epoch)
		}
		if err := t.clear(o.Tenant); err != nil { // what an earlier move left
			return err
		}
		if err := t.copyFrom(source, o); err != nil {
			return err
		}
		fresh = true
		return t.exec("set_ownership", o.Tenant, o.Epoch, string(ledger.TenantActive), have.Epoch, string(have.State))
	})
	if err == nil && fresh {
		l.ring()
	}
	return fresh, err
}

// copyFrom copies the rows of a tenant as they were at one moment in the source.
func (t *tx) copyFrom(source *Ledger, o ledger.Ownership) error {
	snapshot, err := source.pool.BeginTx(t.ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return source.brokenRead(t.ctx, err)
	}
	defer func() { _ = snapshot.Rollback(context.WithoutCancel(t.ctx)) }() // it changes nothing
	_, have, err := source.ownership(t.ctx, snapshot, o.Tenant)
	if err == nil && (have.State != ledger.TenantMoved || have.Epoch != o.Epoch) {
		err = fmt.Errorf("%w: %s keeps tenant %q as %s since epoch %d; want moved in epoch %d", ledger.ErrStale, source.name, o.Tenant, have.State, have.Epoch, o.Epoch)
	}
	if err != nil {
		return source.brokenRead(t.ctx, err)
	}
	numbers, err := t.renumber(source, snapshot, o.Tenant)
	for i := 0; err == nil && i < len(movings); i++ {
		err = t.copyTable(source, snapshot, movings[i], o.Tenant, numbers)
	}
	return err
}

// renumber returns the numbers that the writes of a tenant get here, by those in the source, in the
// same order.
func (t *tx) renumber(source *Ledger, snapshot pgx.Tx, tenant string) (map[int64]int64, error) {
	rows, err := snapshot.Query(t.ctx, qualified(source.schema, "SELECT w.n FROM @ledger_writes AS w WHERE w.tenant = $1 ORDER BY w.n"), source.args(tenant)...)
	if err != nil {
		return nil, err
	}
	old, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	rows, err = t.pgx.Query(t.ctx, qualified(t.l.schema, "SELECT nextval(pg_get_serial_sequence('@ledger_writes', 'n')) FROM generate_series(1, $1::bigint) AS i"), t.l.args(int64(len(old)))...)
	if err != nil {
		return nil, err
	}
	given, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	of := make(map[int64]int64, len(old))
	for i, n := range old {
		of[n] = given[i]
	}
	return of, nil
}

// copyTable copies the rows of one table.
func (t *tx) copyTable(source *Ledger, snapshot pgx.Tx, m moving, tenant string, numbers map[int64]int64) error {
	columns := strings.Fields(m.columns)
	selected := "x." + strings.Join(columns, ", x.")
	rows, err := snapshot.Query(t.ctx, qualified(source.schema, "SELECT "+selected+" FROM @"+m.table+" AS x WHERE "+m.rows), source.args(tenant)...)
	if err != nil {
		return source.brokenRead(t.ctx, err)
	}
	defer rows.Close()
	name := pgx.Identifier{m.table}
	if t.l.schema != "" {
		name = pgx.Identifier{t.l.schema, m.table}
	}
	_, err = t.pgx.CopyFrom(t.ctx, name, columns, pgx.CopyFromFunc(func() ([]any, error) {
		if !rows.Next() {
			return nil, rows.Err()
		}
		values, err := rows.Values()
		for i := 0; err == nil && i < len(columns); i++ {
			switch n, _ := values[i].(int64); {
			case columns[i] == m.of && values[i] != nil:
				if values[i] = numbers[n]; numbers[n] == 0 {
					return nil, fmt.Errorf("%w: %s: a row of %s is of write number %d, which tenant %q does not have", ledger.ErrCorrupt, source.name, m.table, n, tenant)
				}
				if m.lot {
					values[0] = numbers[n] / ledger.TermLot
				}
			case columns[i] == m.fence:
				values[i] = n + 1
			}
		}
		return values, err
	}))
	return err
}

// clear deletes the rows of a tenant.
func (t *tx) clear(tenant string) error {
	for i := len(movings) - 1; i >= 0; i-- {
		where, _, _ := strings.Cut(movings[i].rows, " ORDER BY ")
		if _, err := t.pgx.Exec(t.ctx, qualified(t.l.schema, "DELETE FROM @"+movings[i].table+" AS x WHERE "+where), t.l.args(tenant)...); err != nil {
			return err
		}
	}
	return nil
}

// Forget implements [ledger.Partition].
func (l *Ledger) Forget(ctx context.Context, o ledger.Ownership) error {
	return l.within(ctx, func(t *tx) error {
		var have ledger.Ownership
		err := t.pgx.QueryRow(ctx, l.sql.Text("lock_ownership"), l.args(o.Tenant)...).Scan(&have.Tenant, &have.Epoch, (*string)(&have.State))
		if err == nil && (have.State != ledger.TenantMoved || have.Epoch != o.Epoch) {
			err = fmt.Errorf("%w: what %s keeps of tenant %q", ledger.ErrStale, l.name, o.Tenant)
		}
		if err == nil {
			err = t.clear(o.Tenant)
		}
		return err
	})
}
