package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/signing"
)

// issuer issues receipts of what is in a ledger.
type issuer struct {
	ledger ledger.Ledger
	reg    *connectors.Registry
	keys   config.Signing
	vault  *redact.Vault
	head   func(ctx context.Context, tenant string) (*receipt.Head, error) // nil: there is none
}

// issuer is what issues receipts of the desk's ledger. Without a key it fails.
func (a *app) issuer(d *desk) (*issuer, error) {
	keys, err := d.config.Signing(a.env)
	if err == nil && keys.Signer == nil {
		err = errNoSigner
	}
	if err != nil {
		return nil, err
	}
	reg, err := d.config.Registry(a.env)
	return &issuer{ledger: d.ledger, reg: reg, keys: keys}, err
}

// Keys are the public keys: the one that signs first, then those that did.
func (i *issuer) Keys() []signing.PublicKey { return i.keys.Trusted.List() }

// Issue signs what was seen of a write of a tenant.
func (i *issuer) Issue(ctx context.Context, tenant string, id ledger.ID, values bool) (signing.Envelope, error) {
	if i.keys.Signer == nil {
		return signing.Envelope{}, errNoSigner
	}
	rec, events, err := i.life(ctx, tenant, id)
	if err != nil {
		return signing.Envelope{}, err
	}
	o := receipt.Options{Values: values, Version: built().Version, Vault: i.vault}
	if rec.Child != "" && rec.Settlement == ledger.Compensated {
		if o.Undoing, o.UndoingEvents, err = i.life(ctx, tenant, rec.Child); err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return signing.Envelope{}, err
		}
	}
	if i.head != nil {
		if o.Head, err = i.head(ctx, tenant); err != nil {
			return signing.Envelope{}, fmt.Errorf("the last head of the audit log: %w", err)
		}
	}
	s, err := receipt.Of(rec, events, i.profile(rec), o)
	if err != nil {
		return signing.Envelope{}, err
	}
	return s.Sign(i.keys.Signer)
}

// life is a write and its events, both as of one moment.
func (i *issuer) life(ctx context.Context, tenant string, id ledger.ID) (rec ledger.Record, events []ledger.Event, err error) {
	for range receiptTries {
		if rec, err = i.ledger.Get(ctx, tenant, id); err != nil {
			return rec, nil, err
		}
		if events, err = i.ledger.Events(ctx, tenant, id); err != nil {
			return rec, nil, err
		}
		if n := len(events); n == 0 || events[n-1].Seq <= rec.Seq {
			break
		}
	}
	return rec, events, nil
}

// profile is what the destination of a write can do. Of one that is not configured
// any more nothing is known.
func (i *issuer) profile(rec ledger.Record) connectors.Profile {
	if _, p, err := i.reg.Lookup(rec.Destination, rec.Kind); err == nil {
		return p
	}
	return connectors.Profile{Destination: rec.Destination, Kind: rec.Kind}
}
