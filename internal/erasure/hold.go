package erasure

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/readback-go/readback/ledger"
)

// Hold adds a legal hold: on everything of a tenant, on a destination, on one record by its key,
// or on one write. It binds every prune and every erasure that begins after it was added.
func (s *Service) Hold(ctx context.Context, of Subject, by, reason string) (h ledger.Hold, err error) {
	if err := checkText(by, reason, of); err != nil {
		return h, err
	}
	if of.Tenant == "" || len(of.Key) > 0 && of.Destination == "" {
		return h, errors.New("a key needs the destination that it is a key of")
	}
	_, now, err := s.Ledger.DueDocuments(ctx, ledger.HoldKind, 1)
	if err != nil {
		return h, err
	}
	h = ledger.Hold{ID: "hold_" + strings.ToLower(rand.Text()[:16]), Tenant: of.Tenant, Destination: of.Destination, Reason: reason, By: by, At: now}
	if of.Write != "" || len(of.Key) > 0 {
		found, err := s.Find(ctx, of)
		if err != nil {
			return h, err
		}
		if h.KeyDigests = found.KeyDigests; of.Write != "" {
			h.Writes = []ledger.ID{of.Write}
		}
		h.Writes = append(h.Writes, found.about...)
		if len(h.KeyDigests)+len(h.Writes) == 0 { // it would cover everything
			return h, unknownDestination(of.Destination)
		}
	}
	return h, s.fileHold(ctx, h, ledger.Document{})
}

// Release ends a legal hold. It fails with [ledger.ErrNotFound].
func (s *Service) Release(ctx context.Context, tenant, id, by, why string) (h ledger.Hold, err error) {
	if err := checkText(by, why, Subject{}); err != nil {
		return h, err
	}
	p, err := s.Ledger.Document(ctx, tenant, ledger.HoldKind, id)
	if err != nil {
		return h, err
	}
	if h, err = ledger.HoldOf(p); err != nil {
		h = ledger.Hold{ID: id, Tenant: tenant, Reason: "it could not be read", By: "unknown", At: p.Created}
	}
	if !h.Released.IsZero() {
		return h, fmt.Errorf("hold %s was released by %s before: %s", id, h.ReleasedBy, h.Why)
	}
	h.Released, h.ReleasedBy, h.Why = p.Now, by, why
	return h, s.fileHold(ctx, h, p)
}

// Holds returns those of a tenant, newest first, including released ones.
func (s *Service) Holds(ctx context.Context, tenant string) (all []ledger.Hold, total int, err error) {
	documents, total, err := s.Ledger.FindDocuments(ctx, ledger.DocumentQuery{Tenant: tenant, Kind: ledger.HoldKind, Limit: maxListed})
	for _, p := range documents {
		h, bad := ledger.HoldOf(p)
		if bad != nil { // it covers everything of the tenant
			h = ledger.HoldsOf([]ledger.Document{p})[0]
		}
		all = append(all, h)
	}
	return all, total, err
}

func (s *Service) fileHold(ctx context.Context, h ledger.Hold, over ledger.Document) error {
	p, err := h.Document(over)
	if err == nil {
		_, err = s.Ledger.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}})
	}
	if err != nil {
		return fmt.Errorf("hold %s: %w", h.ID, err)
	}
	return nil
}

func unknownDestination(name string) error {
	return fmt.Errorf("nothing is known of destination %q: it is not configured, and no write about this key is there", name)
}

// checkText refuses a name or a reason that must not be kept for ever, such as one that contains
// values of the subject's key.
func checkText(by, reason string, of Subject) error {
	switch {
	case strings.TrimSpace(by) == "":
		return errors.New("the operator's name is missing")
	case strings.TrimSpace(reason) == "":
		return errors.New("the reason is missing; want why")
	case len(by) > maxText || len(reason) > maxText:
		return fmt.Errorf("the operator's name has %d bytes and the reason %d; want at most %d each", len(by), len(reason), maxText)
	}
	for field, value := range of.Key {
		if text := fmt.Sprint(value); len(text) >= minNaming && strings.Contains(strings.ToLower(reason), strings.ToLower(text)) {
			return fmt.Errorf("the reason contains the value of %q, and a reason is kept for ever; want one that names no person, such as the number of a request", field)
		}
	}
	return nil
}
