package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// HoldKind is the kind of the documents of legal holds. An active one is due from the time at
// which it was added, so that all are found at once; a released one is not due.
const HoldKind = "hold"

// Hold is a legal hold: while it is active, nothing that it covers is pruned or erased.
type Hold struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Destination narrows it to one. KeyDigests and Writes narrow it to the writes with one of
	// these digests and to these writes. Default: everything of the tenant.
	Destination string   `json:"destination,omitempty"`
	KeyDigests  []string `json:"key_digests,omitempty"`
	Writes      []ID     `json:"writes,omitempty"`

	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	// Released, ReleasedBy and Why record when it ended, by whom, and the reason. Default: it is
	// active.
	Released   time.Time `json:"released,omitzero"`
	ReleasedBy string    `json:"released_by,omitempty"`
	Why        string    `json:"why,omitempty"`
}

// HoldOf returns the hold in a document. The error wraps [ErrCorrupt].
func HoldOf(p Document) (h Hold, err error) {
	if err := json.Unmarshal(p.Body, &h); err != nil || h.ID != p.ID || h.Tenant != p.Tenant {
		return h, fmt.Errorf("%w: the hold %q of tenant %q cannot be read", ErrCorrupt, p.ID, p.Tenant)
	}
	return h, nil
}

// Document returns the hold as a document to write over the one that was read; the zero document
// for a new one.
func (h Hold) Document(over Document) (Document, error) {
	body, err := json.Marshal(h)
	over.Tenant, over.Kind, over.ID, over.Body = h.Tenant, HoldKind, h.ID, body
	over.State, over.Due, over.Done = "active", h.At, false
	if !h.Released.IsZero() {
		over.State, over.Due, over.Done = "released", time.Time{}, true
	}
	return over, err
}

// String describes why something cannot be pruned or erased.
func (h Hold) String() string {
	return fmt.Sprintf("legal hold %s covers it (added by %s at %s: %s)", h.ID, h.By, h.At.UTC().Format(time.RFC3339), h.Reason)
}

func (h Hold) covers(r Record) bool {
	return h.Tenant == r.Tenant && (h.Destination == "" || h.Destination == r.Destination) &&
		(len(h.KeyDigests)+len(h.Writes) == 0 || slices.Contains(h.KeyDigests, r.KeyDigest) || slices.Contains(h.Writes, r.ID))
}

// Holds are the active holds of a ledger, of all tenants.
type Holds []Hold

// HoldsOf returns the holds in documents. One that cannot be read covers everything of its
// tenant, because its scope is not known.
func HoldsOf(documents []Document) (all Holds) {
	for _, p := range documents {
		h, err := HoldOf(p)
		if err != nil {
			h = Hold{ID: p.ID, Tenant: p.Tenant, Reason: "it cannot be read", By: "unknown", At: p.Due}
		}
		all = append(all, h)
	}
	return all
}

// On returns a hold that covers a write or one of its relatives, if there is one.
func (all Holds) On(r Record, relatives ...Record) (Hold, bool) {
	for _, h := range all {
		if h.covers(r) || slices.ContainsFunc(relatives, h.covers) {
			return h, true
		}
	}
	return Hold{}, false
}

// OfTenant returns a hold of a tenant, if there is one. While there is, none of its documents and
// of its refused outbox entries is deleted: they do not name their record.
func (all Holds) OfTenant(tenant string) (Hold, bool) {
	i := slices.IndexFunc(all, func(h Hold) bool { return h.Tenant == tenant })
	if i < 0 {
		return Hold{}, false
	}
	return all[i], true
}

// Tenants returns the tenants that have a hold.
func (all Holds) Tenants() []string {
	names := []string{}
	for _, h := range all {
		names = append(names, h.Tenant)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
