package reviewui

import (
	"context"
	"net/http"
	"slices"

	"github.com/readback-go/readback/internal/office"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

// Receipts issues receipts of the writes of a tenant.
type Receipts interface {
	// Issue signs what was seen of a write, with the values of it where they are
	// asked for.
	Issue(ctx context.Context, tenant string, id ledger.ID, values bool) (signing.Envelope, error)
}

// mayHaveReceipt reports whether a write ended in a way that is observed.
func (d *desk) mayHaveReceipt(r ledger.Record) bool {
	return d.opts.Receipts != nil && r.State == ledger.Settled && !r.Tombstone && !r.Entrusted &&
		slices.Contains([]ledger.Settlement{ledger.Verified, ledger.NotApplied, ledger.Compensated}, r.Settlement)
}

// receipt hands out the signed receipt of a write, as a file.
func (d *desk) receipt(v *visit) error {
	if d.opts.Receipts == nil {
		return office.ErrUnsupported
	}
	view, err := d.view(v) // which says in its own words what there is not
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
	h.Set("Content-Disposition", `attachment; filename="receipt.json"`) // an id may hold anything
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(append(text, '\n')) // who went away needs no answer
	return nil
}
