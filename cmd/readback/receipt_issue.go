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

// receiptTries is how often a write that changes meanwhile is read for a receipt.
const receiptTries = 5

// issuer issues receipts for the writes of a ledger.
type issuer struct {
	ledger ledger.Ledger
	reg    *connectors.Registry
	keys   config.Signing
	vault  *redact.Vault
	heads  signing.Keys // the keys of signed heads; zero if there are none
}

// issuer issues receipts of the opened ledger. Without a key it fails.
func (a *app) issuer(d *opened) (*issuer, error) {
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

func (a *app) newIssuer(d *opened, reg *connectors.Registry, keys config.Signing) (*issuer, error) {
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

// serverIssuer issues the receipts of a server; nil where the configuration names no
// keys. With trusted keys alone it only lists them.
func (a *app) serverIssuer(h *services) (*issuer, error) {
	keys, err := h.app.config.Signing(a.env)
	if err != nil || len(keys.Trusted.List()) == 0 {
		return nil, err
	}
	return a.newIssuer(h.app, h.reg, keys)
}

// Keys are the public keys: the current one first, then earlier ones.
func (i *issuer) Keys() []signing.PublicKey { return i.keys.Trusted.List() }

// Issue signs a statement about a write of a tenant.
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
	return s.Sign(ctx, i.keys.Signer)
}

// head is the newest head that was signed with a key known here; nil where there is none.
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

// profile is the profile of a write's destination, empty if it is not configured any
// more.
func (i *issuer) profile(rec ledger.Record) connectors.Profile {
	if _, p, err := i.reg.Lookup(rec.Destination, rec.Kind); err == nil {
		return p
	}
	return connectors.Profile{Destination: rec.Destination, Kind: rec.Kind}
}

// asKey replaces the placeholder of an unread secret with a key.
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

// examineKeys checks the keys of receipts, if they are configured.
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
