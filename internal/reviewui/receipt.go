package reviewui

import (
	"context"
	"net/http"
	"slices"

	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

// Receipts issues receipts of the writes of a tenant.
type Receipts interface {
	// Issue signs a statement about a write, with its values if they are requested.
	Issue(ctx context.Context, tenant string, id ledger.ID, values bool) (signing.Envelope, error)
}

// mayHaveReceipt reports whether a write has an observed outcome.
func (d *app) mayHaveReceipt(r ledger.Record) bool {
	return d.opts.Receipts != nil && r.State == ledger.Settled && !r.Tombstone && !r.Delegated &&
		slices.Contains([]ledger.Status{ledger.Verified, ledger.NotApplied, ledger.Compensated}, r.Settlement)
}

// receipt serves the signed receipt of a write, as a file.
func (d *app) receipt(v *visit) error {
	if d.opts.Receipts == nil {
		return service.ErrUnsupported
	}
	view, err := d.view(v) // which reports a missing write in its own words
	if err != nil {
		return err
	}
	e, err := d.opts.Receipts.Issue(v.r.Context(), v.who.Tenant, view.Record.ID, false)
	if err != nil {
		return err
	}
	text, err := e.Encode()
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", `attachment; filename="receipt.json"`) // an id may contain any character
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(append(text, '\n')) // a client that disconnected needs no response
	return nil
}
