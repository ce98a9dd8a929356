package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/signing"
)

// ErrNoSigner reports that no receipt can be issued here.
var ErrNoSigner = fmt.Errorf("%w: no key signs receipts here; want receipts.key_file or receipts.key_env in the configuration (`readback key new` makes one)", service.ErrUnsupported)

// receiptTries is how often a write that changes meanwhile is read for a receipt.
const receiptTries = 5

// Issuer issues receipts for the writes of a ledger.
type Issuer struct {
	Ledger  ledger.Ledger
	Reg     *connectors.Registry
	Signing config.Signing
	vault   *redact.Vault
	heads   signing.Keys // the keys of signed heads; zero if there are none
}

// Issuer issues receipts of the opened ledger. Without a key it fails.
func (d *Instance) Issuer() (*Issuer, error) {
	keys, err := d.Config.Signing(d.Env.Get)
	if err == nil && keys.Signer == nil {
		err = ErrNoSigner
	}
	if err != nil {
		return nil, err
	}
	reg, err := d.Config.Registry(d.Env.Get)
	if err != nil {
		return nil, err
	}
	return d.newIssuer(reg, keys)
}

func (d *Instance) newIssuer(reg *connectors.Registry, keys config.Signing) (*Issuer, error) {
	i := &Issuer{Ledger: d.Ledger, Reg: reg, Signing: keys, vault: d.Vault}
	if !d.Config.Audit.On() {
		return i, nil
	}
	o, err := d.Config.Sealing(d.Env.Get)
	if err == nil && o.Signer != nil {
		i.heads, err = signing.ReadKeys(o.Signer.Public())
	}
	return i, err
}

// issuer issues the receipts of a server; nil where the configuration names no
// keys. With trusted keys alone it only lists them.
func (h *Services) issuer() (*Issuer, error) {
	keys, err := h.Instance.Config.Signing(h.Instance.Env.Get)
	if err != nil || len(keys.Trusted.List()) == 0 {
		return nil, err
	}
	return h.Instance.newIssuer(h.reg, keys)
}

// Keys are the public keys: the current one first, then earlier ones.
func (i *Issuer) Keys() []signing.PublicKey { return i.Signing.Trusted.List() }

// Issue signs a statement about a write of a tenant.
func (i *Issuer) Issue(ctx context.Context, tenant string, id ledger.ID, values bool) (signing.Envelope, error) {
	if i.Signing.Signer == nil {
		return signing.Envelope{}, ErrNoSigner
	}
	rec, events, err := i.life(ctx, tenant, id)
	if err != nil {
		return signing.Envelope{}, err
	}
	o := receipt.Options{Values: values, Version: Built().Version, Vault: i.vault}
	if rec.Child != "" && rec.Settlement == ledger.Compensated {
		if o.Undoing, o.UndoingEvents, err = i.life(ctx, tenant, rec.Child); err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return signing.Envelope{}, err
		}
	}
	if o.Head, err = i.head(ctx, tenant); err != nil {
		return signing.Envelope{}, fmt.Errorf("the newest head of the audit log: %w", err)
	}
	s, err := receipt.Of(rec, events, i.profile(rec), o)
	if err != nil {
		return signing.Envelope{}, err
	}
	return s.Sign(ctx, i.Signing.Signer)
}

// head is the newest head that was signed with a key known here; nil where there is none.
func (i *Issuer) head(ctx context.Context, tenant string) (*receipt.Head, error) {
	if len(i.heads.List()) == 0 {
		return nil, nil
	}
	e, err := audit.NewestHead(ctx, i.Ledger, tenant)
	switch {
	case errors.Is(err, audit.ErrNoHead):
		return nil, nil
	case err != nil:
		return nil, err
	}
	h, err := audit.OpenHead(e, i.heads)
	if errors.Is(err, signing.ErrKey) { // an earlier key's: the next one comes soon
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &receipt.Head{Ledger: h.Ledger, Page: h.Page, Digest: receipt.Digest{SHA256: h.Hash}, At: h.At.UTC()}, nil
}

// life is a write and its events, both as of one moment.
func (i *Issuer) life(ctx context.Context, tenant string, id ledger.ID) (rec ledger.Record, events []ledger.Event, err error) {
	for range receiptTries {
		if rec, err = i.Ledger.Get(ctx, tenant, id); err != nil {
			return rec, nil, err
		}
		if events, err = i.Ledger.Events(ctx, tenant, id); err != nil {
			return rec, nil, err
		}
		if n := len(events); n == 0 || events[n-1].Seq <= rec.Seq {
			break
		}
	}
	return rec, events, nil
}

// profile is the profile of a write's destination, empty if it is not configured any
// more.
func (i *Issuer) profile(rec ledger.Record) connectors.Profile {
	if _, p, err := i.Reg.Lookup(rec.Destination, rec.Kind); err == nil {
		return p
	}
	return connectors.Profile{Destination: rec.Destination, Kind: rec.Kind}
}
