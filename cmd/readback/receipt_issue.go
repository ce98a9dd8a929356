package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/readback-go/readback/audit"
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
	heads  signing.Keys // who signs heads of the audit log; zero where nobody does
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
	if err != nil {
		return nil, err
	}
	return a.newIssuer(d, reg, keys)
}

func (a *app) newIssuer(d *desk, reg *connectors.Registry, keys config.Signing) (*issuer, error) {
	i := &issuer{ledger: d.ledger, reg: reg, keys: keys, vault: d.vault}
	if !d.config.Audit.On() {
		return i, nil
	}
	o, err := d.config.Sealing(a.env)
	if err == nil && o.Signer != nil {
		i.heads, err = signing.ReadKeys(o.Signer.Public())
	}
	return i, err
}

// serverIssuer is what issues the receipts of a server; nil where the configuration
// names no keys. One that names only those that are trusted hands them out.
func (a *app) serverIssuer(h *house) (*issuer, error) {
	keys, err := h.desk.config.Signing(a.env)
	if err != nil || len(keys.Trusted.List()) == 0 {
		return nil, err
	}
	return a.newIssuer(h.desk, h.reg, keys)
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
	if o.Head, err = i.head(ctx, tenant); err != nil {
		return signing.Envelope{}, fmt.Errorf("the newest head of the audit log: %w", err)
	}
	s, err := receipt.Of(rec, events, i.profile(rec), o)
	if err != nil {
		return signing.Envelope{}, err
	}
	return s.Sign(i.keys.Signer)
}

// head is the newest head that was signed by whoever signs them here; nil where
// there is none.
func (i *issuer) head(ctx context.Context, tenant string) (*receipt.Head, error) {
	if len(i.heads.List()) == 0 {
		return nil, nil
	}
	e, err := audit.NewestHead(ctx, i.ledger, tenant)
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

// asKey makes a key of what stands for a secret that is not looked at.
func asKey(env func(string) string) func(string) string {
	return func(name string) string {
		secret := env(name)
		if !isAnySecret(secret) {
			return secret
		}
		private, _, err := signing.Generate()
		if err != nil {
			return secret
		}
		return string(private)
	}
}

// examineKeys tries the keys of receipts, where there are to be any.
func (a *app) examineKeys(e *examination, c config.Config) {
	if c.Receipts.Line == 0 {
		return
	}
	keys, err := c.Signing(a.env)
	switch {
	case err != nil:
		e.fail("receipts", "Say in `receipts` where the private key is; `readback key new` makes one.", "%s", flat(err.Error()))
	case keys.Signer == nil:
		e.ok("receipts", "none are issued: no key signs them")
	default:
		e.ok("receipts", "signed by key %.16s…, %s trusted", keys.Signer.ID(), plural(len(keys.Trusted.List()), "key"))
	}
}
