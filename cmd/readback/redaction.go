package main

import (
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/sealed"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/saga"
)

// unlock fetches the redaction keys. A command that only reads continues without them:
// what it shows needs none, and it reports what it cannot open.
func (a *app) unlock(c config.Config) (*redact.Vault, error) {
	v, err := c.Vault(a.env)
	if v != nil {
		a.vault.Store(v)
	}
	return v, err
}

// scrub redacts a text of a log, or of an error: values that match a pattern of the
// configuration, and secrets.
func (a *app) scrub(text string) string {
	text = config.Scrub(text)
	if v := a.vault.Load(); v != nil {
		text = v.Scope("", "").Text(text)
	}
	return text
}

// text redacts a sentence about something of a tenant, so that it may be stored.
func (d *opened) text(tenant, sentence string) string {
	return d.vault.Scope(tenant, "").Text(sentence)
}

// documents is the ledger as the gate and sagas see it. clean redacts what they return,
// nil where nothing is sensitive.
func (d *opened) documents(reg *connectors.Registry) (store gate.Store, clean *sealed.Store) {
	if d.vault == nil {
		return d.ledger, nil
	}
	clean = sealed.New(d.ledger, d.vault, reg)
	return clean, clean
}

// redacting is the options of the gate with a redactor, which may be nil.
func redacting(o *gate.Options, clean *sealed.Store) *gate.Options {
	if clean != nil {
		o.Redaction = clean
	}
	return o
}

func redactingSagas(o *saga.Options, clean *sealed.Store) *saga.Options {
	if clean != nil {
		o.Redaction = clean
	}
	return o
}
