package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/ledger"
)

// settingsKind is the kind of the documents that record with which configuration a
// process started or continued. Documents are in the audit chain.
const settingsKind = "configuration"

// What happened to a configuration: the state of its document.
const (
	settingsStarted  = "started"
	settingsReloaded = "reloaded"
)

// settingsEvent is the body of such a document. It names files, and no secret and no
// digest of one.
type settingsEvent struct {
	Event    string `json:"event"`
	Command  string `json:"command"` // serve, work or mcp
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Path     string `json:"path,omitempty"`
	config.Digest
	// Environment are the variables that are settings, by name.
	Environment []string `json:"environment,omitempty"`
	// Changed are the settings that differ after a reload.
	Changed []string `json:"changed,omitempty"`
}

// recordSettings records in the ledger, and so in the audit chain, with which
// configuration this process starts or continues. If that fails, the process must not use
// it.
func (a *app) recordSettings(ctx context.Context, d *opened, e settingsEvent, c config.Config) error {
	var err error
	if e.Digest, err = c.Digest(); err != nil {
		return err
	}
	if e.Path = c.Path; c.Path != "" {
		if e.Path, err = filepath.Abs(c.Path); err != nil {
			return err
		}
	}
	v := built()
	e.Version, e.Revision = v.Version, v.Revision
	for _, s := range config.Settings() {
		if a.env(s.Variable) != "" {
			e.Environment = append(e.Environment, s.Variable)
		}
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	id := "configuration-" + rand.Text() // its own cover: it is pruned with what it was in force for
	ctx, cancel := context.WithTimeout(ctx, ledgerTime)
	defer cancel()
	_, err = d.ledger.Commit(ctx, ledger.Batch{Documents: []ledger.Document{{
		Tenant: d.tenant, Kind: settingsKind, ID: id, Collection: id, Subject: e.SHA256, State: e.Event, Done: true, Body: body,
	}}})
	if err != nil {
		return fmt.Errorf("the event that names the configuration cannot be recorded: %w", err)
	}
	d.log.Info("configuration", "security", "configuration_"+e.Event, "event", e.Event, "sha256", e.SHA256)
	return nil
}
