package main

import (
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/sealed"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/workflow"
	"github.com/readback-go/readback/workflow/saga"
)

// unlock fetches the keys of what is sealed. A command that only looks goes on
// without them: what it shows needs none, and what it cannot open it says.
func (a *app) unlock(c config.Config) (*redact.Vault, error) {
	v, err := c.Vault(a.env)
	if v != nil {
		a.vault.Store(v)
	}
	return v, err
}

// scrub takes out of a text of a log, or of an error, what is sensitive wherever
// it stands: what looks like a pattern of the configuration, and secrets.
func (a *app) scrub(text string) string {
	text = config.Scrub(text)
	if v := a.vault.Load(); v != nil {
		text = v.Scope("", "").Text(text)
	}
	return text
}

// text is a sentence of somebody about something of a tenant, as it may be kept.
func (d *desk) text(tenant, sentence string) string {
	return d.vault.Scope(tenant, "").Text(sentence)
}

// papers is the ledger as the gate and sagas see it; clean takes out of what they
// tell what is sensitive, nil where nothing is. It is false for a ledger that
// keeps no papers.
func (d *desk) papers(reg *connectors.Registry) (store workflow.Store, clean *sealed.Store, ok bool) {
	if store, ok = d.ledger.(workflow.Store); !ok || d.vault == nil {
		return store, nil, ok
	}
	clean = sealed.New(store, d.vault, reg)
	return clean, clean, true
}

// redacting is the options of the gate with what keeps it from telling, which may
// be nil.
func redacting(o *workflow.Options, clean *sealed.Store) *workflow.Options {
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
