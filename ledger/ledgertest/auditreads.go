package ledgertest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
)

// lives reads all writes.
func (h *harness) lives(limit int) (all []ledger.Lifetime) {
	h.Helper()
	for after := ledger.ID(""); ; after = all[len(all)-1].Record.ID {
		lives, err := h.ledger.Lifetimes(context.Background(), after, limit)
		if err != nil {
			h.Fatalf("lives: %v", err)
		}
		if all = append(all, lives...); len(lives) < limit {
			return all
		}
	}
}

// kept reads all documents.
func (h *harness) kept() (all []ledger.Document) {
	h.Helper()
	for after := (ledger.Document{}); ; after = all[len(all)-1] {
		kept, err := h.ledger.Kept(context.Background(), after, 2)
		if err != nil {
			h.Fatalf("kept: %v", err)
		}
		if all = append(all, kept...); len(kept) < 2 {
			return all
		}
	}
}

var auditReads = map[string]scenario{
	"everything": {
		"a check of a ledger sees each write of each tenant with its events, and each document but the chain itself, once",
		func(h *harness) {
			var want []ledger.Record
			for i, tenant := range []string{"b", "a", "c", "a", "b"} {
				want = append(want, h.append(h.fresh(wish(tenant, fmt.Sprint("w", i)), announced), sent))
			}
			for _, kind := range []string{"step", ledger.AuditKind, "gate", "saga"} {
				h.put(ledger.Document{Tenant: "d", Kind: kind, ID: kind, Body: []byte(`{}`)})
			}
			slices.SortFunc(want, func(a, b ledger.Record) int { return strings.Compare(string(a.ID), string(b.ID)) })
			for _, limit := range []int{1, 2, 5, 1000} {
				got := h.lives(limit)
				if len(got) != len(want) {
					h.Fatalf("limit %d: %d writes, want %d", limit, len(got), len(want))
				}
				for i, life := range got {
					h.same(want[i], life.Record)
					if diff := cmp.Diff(h.events(want[i]), life.Events, cmpopts.EquateEmpty()); diff != "" || life.Unread != nil {
						h.Errorf("write %d, error %v (-want +got):\n%s", i, life.Unread, diff)
					}
				}
			}
			var kinds []string
			for _, k := range h.kept() {
				kinds = append(kinds, k.Kind)
				h.sameDocument(h.document(k), k)
			}
			if diff := cmp.Diff([]string{"gate", "saga", "step"}, kinds); diff != "" {
				h.Errorf("documents (-want +got):\n%s", diff)
			}
			tenants, err := h.ledger.Tenants(context.Background())
			if diff := cmp.Diff([]string{"a", "b", "c", "d"}, tenants); diff != "" || err != nil {
				h.Errorf("error %v, tenants (-want +got):\n%s", err, diff)
			}
			if foreign, err := h.ledger.Foreign(context.Background()); len(foreign) > 0 || err != nil {
				h.Errorf("error %v, triggers and rules %q that no driver made", err, foreign)
			}
		},
	},
}
