package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// fencedFrom is the version of the first program that refuses tenants of other partitions: older
// ones cannot work on a partition.
const fencedFrom = 2

var _ ledger.Partition = (*Ledger)(nil)

// ofTenant are the conditions of statements about the tenant that an expression names: that the
// partition owns it, or that nothing keeps what is begun from being finished. Every ledger that is
// no partition has all tenants.
var ofTenant = regexp.MustCompile(`\{(owned|kept):([^}]+)\}`)

func fenced(text string) string {
	return ofTenant.ReplaceAllStringFunc(text, func(mark string) string {
		m := ofTenant.FindStringSubmatch(mark)
		state := "= 'active'"
		if m[1] == "kept" {
			state = "<> 'moved'"
		}
		return "(NOT g.fenced OR EXISTS (SELECT 1 FROM @ledger_tenants AS f WHERE f.tenant = " + m[2] + " AND f.state " + state + "))"
	})
}

// ownership returns the name of the partition, "" for none, and what it keeps of a tenant.
func (l *Ledger) ownership(ctx context.Context, where asker, tenant string) (name string, o ledger.Ownership, err error) {
	err = l.ask(ctx, where, l.sql.Text("ownership"), []any{tenant}, func(rows pgx.Rows) error {
		name, o, err = scanOwnership(rows, tenant)
		return err
	})
	return name, o, err
}

func scanOwnership(rows pgx.Rows, tenant string) (name string, o ledger.Ownership, err error) {
	o.Tenant = tenant
	_, err = pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, r.Scan(&name, &o.Epoch, (*string)(&o.State))
	})
	return name, o, err
}

// refuses returns the error of a partition that does not own a tenant, or does not begin anything
// new of it.
func (t *tx) refuses(tenant string, begins bool) error {
	name, o, err := t.l.ownership(t.ctx, t.pgx, tenant)
	if err != nil || name == "" || o.State == ledger.TenantActive || !begins && o.State == ledger.TenantDraining {
		return err
	}
	return &ledger.NotOwnedError{Partition: name, Owned: o}
}

// refusesDocuments is refuses for the documents of a batch.
func (t *tx) refusesDocuments(f ledger.Batch) error {
	for _, p := range f.Documents {
		if err := t.refuses(p.Tenant, p.Version == 0); err != nil {
			return err
		}
	}
	return nil
}

// Join implements [ledger.Partition].
func (l *Ledger) Join(ctx context.Context, name string, home ledger.Partition) error {
	if l.dialect.noLockTable {
		return fmt.Errorf("%w: %q: a database without LOCK TABLE cannot wait for the writers of a tenant: give partitions databases in PostgreSQL", ledger.ErrPartition, name)
	}
	shared := ""
	if home != nil {
		h, ok := home.(*Ledger)
		if !ok {
			return fmt.Errorf("%w: %q: the home of its directory is no PostgreSQL ledger", ledger.ErrPartition, name)
		}
		if err := h.read(ctx, h.sql.Text("digest_key"), nil, func(rows pgx.Rows) (err error) {
			shared, err = pgx.CollectOneRow(rows, pgx.RowTo[string])
			return err
		}); err != nil {
			return err
		}
		digests, err := ledger.OpenKeyDigests(shared, l.keys)
		if err != nil {
			return err
		}
		if digests.Same(l.keeping.Digests) {
			shared = ""
		}
	}
	err := l.script(ctx, func(tx pgx.Tx) error {
		var have, key string
		var used bool
		if err := tx.QueryRow(ctx, l.sql.Text("lock_partition"), l.args()...).Scan(&have, &key, &used); err != nil {
			return err
		}
		switch {
		case have != "" && have != name:
			return fmt.Errorf("%w: %s is partition %q already, and not %q: give each partition a database of its own", ledger.ErrPartition, l.name, have, name)
		case shared != "" && used:
			return fmt.Errorf("%w: %s has writes whose digests have another key than those of the partition with the directory, so that no tenant could be moved: use a new database for partition %q", ledger.ErrPartition, l.name, name)
		case have == name && shared == "":
			return nil
		case shared != "":
			key = shared
		}
		if have == "" {
			if _, err := tx.Exec(ctx, l.sql.Text("await_writers"), l.args()...); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, l.sql.Text("own_present"), l.args()...); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, l.sql.Text("join_partition"), l.args(name, key, fencedFrom)...)
		return err
	})
	if err == nil {
		l.keeping.Digests, err = l.openDigests(ctx, l.keys)
	}
	return err
}

// Ownerships implements [ledger.Partition].
func (l *Ledger) Ownerships(ctx context.Context) (all []ledger.Ownership, err error) {
	err = l.read(ctx, l.sql.Text("ownerships"), nil, func(rows pgx.Rows) error {
		all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (o ledger.Ownership, err error) {
			return o, r.Scan(&o.Tenant, &o.Epoch, (*string)(&o.State))
		})
		return err
	})
	return all, err
}

// Ownership implements [ledger.Partition].
func (l *Ledger) Ownership(ctx context.Context, tenant string) (o ledger.Ownership, err error) {
	err = l.read(ctx, l.sql.Text("ownership"), []any{tenant}, func(rows pgx.Rows) error {
		_, o, err = scanOwnership(rows, tenant)
		return err
	})
	return o, err
}

// Own implements [ledger.Partition].
func (l *Ledger) Own(ctx context.Context, o, was ledger.Ownership) error {
	err := l.patient(ctx, func(t *tx) error {
		statement, args := "set_ownership", []any{o.Tenant, o.Epoch, string(o.State), was.Epoch, string(was.State)}
		if was.Epoch == 0 {
			statement, args = "insert_ownership", args[:3]
		}
		tag, err := t.pgx.Exec(t.ctx, l.sql.Text(statement), l.args(args...)...)
		if err == nil && tag.RowsAffected() == 0 {
			return fmt.Errorf("%w: what %s keeps of tenant %q", ledger.ErrStale, l.name, o.Tenant)
		}
		return err
	})
	if err != nil || o.State == ledger.TenantActive {
		return err
	}
	return l.patient(ctx, func(t *tx) error { return t.exec("await_writers") })
}

// patient is begun for a transaction that waits for others: each attempt waits only briefly, since
// further writers queue behind it.
func (l *Ledger) patient(ctx context.Context, f func(t *tx) error) error {
	for {
		err := l.begun(ctx, beginBriefly, f)
		if !locked(err) || ctx.Err() != nil {
			return err
		}
	}
}

// Leased implements [ledger.Partition].
func (l *Ledger) Leased(ctx context.Context, tenant string) (n int, err error) {
	err = l.read(ctx, l.sql.Text("leased"), []any{tenant}, func(rows pgx.Rows) error {
		n, err = pgx.CollectOneRow(rows, pgx.RowTo[int])
		return err
	})
	return n, err
}

func scanPlacement(r pgx.CollectableRow) (p ledger.Placement, err error) {
	return p, r.Scan(&p.Tenant, &p.Partition, &p.Epoch, (*string)(&p.State), &p.Target, &p.Previous)
}

// Placements implements [ledger.Directory].
func (l *Ledger) Placements(ctx context.Context) (all []ledger.Placement, err error) {
	err = l.read(ctx, l.sql.Text("placements"), nil, func(rows pgx.Rows) error {
		all, err = pgx.CollectRows(rows, scanPlacement)
		return err
	})
	return all, err
}

// Placement implements [ledger.Directory].
func (l *Ledger) Placement(ctx context.Context, tenant string) (p ledger.Placement, err error) {
	err = l.read(ctx, l.sql.Text("placement"), []any{tenant}, func(rows pgx.Rows) error {
		p, err = pgx.CollectOneRow(rows, scanPlacement)
		if errors.Is(err, pgx.ErrNoRows) {
			p, err = ledger.Placement{Tenant: tenant}, nil
		}
		return err
	})
	return p, err
}

// Place implements [ledger.Directory].
func (l *Ledger) Place(ctx context.Context, p, was ledger.Placement) error {
	return l.within(ctx, func(t *tx) error {
		statement, args := "set_placement", []any{p.Tenant, p.Partition, p.Epoch, string(p.State), p.Target, p.Previous, was.Epoch, string(was.State), was.Target}
		if was.Epoch == 0 {
			statement, args = "insert_placement", args[:6]
		}
		tag, err := t.pgx.Exec(t.ctx, l.sql.Text(statement), l.args(args...)...)
		if err == nil && tag.RowsAffected() == 0 {
			return fmt.Errorf("%w: the place of tenant %q", ledger.ErrStale, p.Tenant)
		}
		return err
	})
}
