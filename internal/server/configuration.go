package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/rules"
	"github.com/readback-go/readback/ledger"
)

// GateRules loads the file of rules that the configuration names.
func GateRules(c config.Config) (*rules.Set, []rules.Warning, error) {
	set, warnings, err := rules.Load(c.Gate.Rules)
	if err != nil && !errors.Is(err, rules.ErrInvalid) {
		err = &config.InvalidError{Path: c.Path, Problems: []config.Problem{{Line: c.Gate.Line, Field: "gate.rules", Problem: err.Error()}}}
	}
	return set, warnings, err
}

// GateOptions are the configured options of the step gate, with its file of rules; what
// is not set has the gate's defaults. Warnings about rules are logged.
func (d *Instance) GateOptions() (*gate.Options, error) {
	g := d.Config.Gate
	o := &gate.Options{
		Risks: d.Config.Risks, Lease: g.Lease, MaxLease: g.MaxLease, Window: g.Window, Logger: d.Log,
		Approvals: gate.Approvals{Approvers: g.Approvals.Approvers, Within: g.Approvals.Within, OnTimeout: g.Approvals.OnTimeout},
	}
	if g.IgnoreOthers {
		o.AcrossWorkflows = gate.AcrossIgnore
	}
	if g.Rules == "" {
		return o, nil
	}
	set, warnings, err := GateRules(d.Config)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		d.Log.Warn("a rule of the gate is probably not what is meant", "file", w.Path, "line", w.Line, "rule", w.Rule, "why", w.Text)
	}
	o.Rules = set
	return o, nil
}

// Check checks a configuration before anything is opened: a start with a bad one
// leaves nothing behind.
func Check(c config.Config, env func(string) string) (*connectors.Registry, error) {
	reg, err := c.Registry(env)
	if err == nil {
		_, err = TelemetrySettings(c, env)
	}
	if err == nil {
		_, err = c.Signing(env)
	}
	if err == nil {
		_, err = c.HeadSigner(env)
	}
	if err != nil {
		return nil, err
	}
	if c.Gate.Rules != "" {
		if _, _, err := GateRules(c); err != nil {
			return nil, err
		}
	}
	return reg, nil
}

// LedgerTime bounds a check of the ledger.
const LedgerTime = 15 * time.Second

// SettingsKind is the kind of the documents that record with which configuration a
// process started or continued. Documents are in the audit chain.
const SettingsKind = "configuration"

// What happened to a configuration: the state of its document.
const (
	Started  = "started"
	Reloaded = "reloaded"
)

// ConfigurationEvent is the body of such a document. It names files, and no secret and no
// digest of one.
type ConfigurationEvent struct {
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

// RecordConfiguration records in the ledger, and so in the audit chain, with which
// configuration this process starts or continues. If that fails, the process must not use
// it.
func (d *Instance) RecordConfiguration(ctx context.Context, e ConfigurationEvent, c config.Config) error {
	var err error
	if e.Digest, err = c.Digest(); err != nil {
		return err
	}
	if e.Path = c.Path; c.Path != "" {
		if e.Path, err = filepath.Abs(c.Path); err != nil {
			return err
		}
	}
	v := Built()
	e.Version, e.Revision = v.Version, v.Revision
	for _, s := range config.Settings() {
		if d.Env.Get(s.Variable) != "" {
			e.Environment = append(e.Environment, s.Variable)
		}
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	id := "configuration-" + rand.Text() // its own cover: it is pruned with what it was in force for
	ctx, cancel := context.WithTimeout(ctx, LedgerTime)
	defer cancel()
	_, err = d.Ledger.Commit(ctx, ledger.Batch{Documents: []ledger.Document{{
		Tenant: d.Tenant, Kind: SettingsKind, ID: id, Collection: id, Subject: e.SHA256, State: e.Event, Done: true, Body: body,
	}}})
	if err != nil {
		return fmt.Errorf("the event that names the configuration cannot be recorded: %w", err)
	}
	d.Log.Info("configuration", "security", "configuration_"+e.Event, "event", e.Event, "sha256", e.SHA256)
	return nil
}
