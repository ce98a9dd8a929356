package ledger

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotOwned is wrapped by [NotOwnedError].
var ErrNotOwned = errors.New("the partition does not own this tenant")

// ErrPartition means that a ledger cannot be the partition that it is configured to be.
var ErrPartition = errors.New("not this partition")

// NotOwnedError means that a partition refused a tenant: the caller's directory is old, or the
// tenant is being moved. Nothing was applied. It wraps [ErrNotOwned] and [ErrUnavailable].
type NotOwnedError struct {
	Partition string
	// Owned is what the partition keeps of the tenant; without an epoch it never had it.
	Owned Ownership
}

func (e *NotOwnedError) Error() string {
	partition := "this partition"
	if e.Partition != "" {
		partition = fmt.Sprintf("partition %q", e.Partition)
	}
	switch o := e.Owned; {
	case o.State == TenantDraining:
		return fmt.Sprintf("tenant %q is being moved from %s (epoch %d): nothing was recorded; ask again in a moment", o.Tenant, partition, o.Epoch)
	case o.State == TenantMoved:
		return fmt.Sprintf("%s does not own tenant %q, which was moved (epoch %d): nothing was recorded; the directory names its partition", partition, o.Tenant, o.Epoch)
	default:
		return fmt.Sprintf("%s does not own tenant %q: nothing was recorded; the directory names its partition", partition, o.Tenant)
	}
}

// Unwrap returns [ErrNotOwned] and [ErrUnavailable].
func (e *NotOwnedError) Unwrap() []error { return []error{ErrNotOwned, ErrUnavailable} }

// TenantState is where a tenant is in a move between partitions.
type TenantState string

const (
	// TenantActive: the partition owns the tenant.
	TenantActive TenantState = "active"
	// TenantDraining: what a worker has is finished. No write and no document is begun, and nothing is
	// leased.
	TenantDraining TenantState = "draining"
	// TenantMoved: nothing of the tenant changes any more in this partition.
	TenantMoved TenantState = "moved"
)

// Ownership is what a partition keeps of one tenant.
type Ownership struct {
	Tenant string
	// Epoch grows with each decision about the owner of the tenant.
	Epoch int64
	State TenantState
}

// Placement is where a directory says that a tenant is.
type Placement struct {
	Tenant    string
	Partition string
	Epoch     int64
	// State is draining while the tenant is being moved to Target, else active.
	State  TenantState
	Target string
	// Previous is the partition that the last move came from.
	Previous string
}

// Partition is a ledger that has some of the tenants of a directory (package ledger/shards). It
// keeps itself which tenants it owns, and refuses others with [NotOwnedError] in the transaction
// of each change: a caller with an old directory cannot change anything.
type Partition interface {
	Ledger
	Directory

	// Join makes the ledger a partition, once; from then on it owns only the tenants that it has.
	// Home is the partition with the directory, nil for that one itself: all partitions need its
	// digest key, so that a tenant can be moved. A ledger without writes takes it over; another
	// one fails, and so does one that has another name, with [ErrPartition]. It must not be in use.
	Join(ctx context.Context, name string, home Partition) error
	// Ownerships returns what the partition keeps of tenants, by tenant.
	Ownerships(ctx context.Context) ([]Ownership, error)
	// Ownership returns what it keeps of one tenant, without an epoch where that is nothing.
	Ownership(ctx context.Context, tenant string) (Ownership, error)
	// Own changes what it keeps of a tenant from was to o; was without an epoch is for a tenant that
	// it does not know. It fails with [ErrStale] when that is not so. When it returns, no change of
	// a writer that relied on was is still to be committed; from o to o it only waits for that.
	Own(ctx context.Context, o, was Ownership) error
	// Leased counts the writes of a tenant that workers have.
	Leased(ctx context.Context, tenant string) (int, error)
	// Receive copies everything of a tenant that has moved from another partition, except changes,
	// which stay in its feed, and owns it in a later epoch, all in one step. It reports false if it
	// has owned it in that epoch already, and fails with [ErrStale] if an epoch that is at least as
	// high was given up here.
	Receive(ctx context.Context, from Partition, o Ownership) (fresh bool, err error)
	// Forget deletes what is left of a tenant that has moved in that epoch. It fails with [ErrStale]
	// when that is not so.
	Forget(ctx context.Context, o Ownership) error
}

// Directory says which partition has which tenant.
type Directory interface {
	// Placements returns all, by tenant.
	Placements(ctx context.Context) ([]Placement, error)
	// Placement returns that of one tenant, without a partition where there is none.
	Placement(ctx context.Context, tenant string) (Placement, error)
	// Place changes a placement from was to p; was without an epoch is for a new tenant. It fails
	// with [ErrStale] when that is not so.
	Place(ctx context.Context, p, was Placement) error
}
