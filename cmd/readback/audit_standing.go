package main

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/signing"
)

// maxUnsealed bounds how many unsealed commits are read: they are read with their
// evidence, and a sealer that runs each second leaves fewer.
const maxUnsealed = 100

// ahead are the signed heads that the ledger does not reach and no operator has
// acknowledged: it is an older copy. Only heads in files can be read here.
func (d *opened) ahead(ctx context.Context) ([]audit.Ahead, error) {
	files := d.config.HeadFiles()
	if len(files) == 0 {
		return nil, nil
	}
	signer, err := d.config.HeadSigner(d.env)
	if err != nil || signer == nil {
		return nil, err
	}
	keys, err := signing.ReadKeys(signer.Public())
	if err != nil {
		return nil, err
	}
	return audit.HeadsAhead(ctx, d.ledger, keys, files...)
}

// holdOlder stops all sends if the ledger is an older copy, before any work is claimed:
// what was sent since the copy is at the destinations, and would be sent again. It does
// so once for each head; releasing the stop acknowledges it.
func (d *opened) holdOlder(ctx context.Context) error {
	ahead, err := d.ahead(ctx)
	if err != nil {
		d.log.Warn("the ledger is not compared with all signed heads that are kept: whether it is an older copy is not known", "error", err)
	}
	if len(ahead) == 0 {
		return nil
	}
	reason := ahead[0].What
	if n := len(ahead) - 1; n > 0 {
		reason += fmt.Sprintf(" (and %d more)", n)
	}
	d.log.Error("all sends are stopped: the ledger is older than a signed head", "head", reason)
	if err := guards.Stop(ctx, d.ledger, guards.Scope{}, "readback", reason); err != nil {
		return fmt.Errorf("the ledger is older than a signed head, and its sends could not be stopped: %w", err)
	}
	return audit.RememberAhead(ctx, d.ledger, ahead)
}

// auditStanding is the state of the audit log; nil where none is configured and none
// exists. An error in it does not fail the status.
func (d *opened) auditStanding(ctx context.Context) *report.Audit {
	a := &report.Audit{Configured: d.config.Audit.On(), Tenant: d.tenant}
	s, err := audit.StatusOf(ctx, d.ledger, d.tenant, maxUnsealed)
	if err != nil {
		if !a.Configured {
			return nil
		}
		a.Problem = err.Error()
		return a
	}
	ahead, err := d.ahead(ctx)
	if err != nil {
		a.NotCompared = err.Error()
	}
	for _, each := range ahead {
		a.Ahead = append(a.Ahead, each.What)
	}
	if !a.Configured && s.Unsealed == 0 && !s.Chained {
		return nil
	}
	a.Unsealed, a.More, a.Unread, a.Oldest, a.Sealer, a.Chained = s.Unsealed, s.More, s.Unread, s.Oldest, s.Sealer, s.Chained
	a.HeadAt, a.HeadKey = s.Head.At, s.Key
	if s.BadHead != nil {
		a.BadHead = s.BadHead.Error()
	}
	return a
}

// examineAudit checks the state of the audit log, where there is one.
func examineAudit(e *examination, f report.Found) {
	if f.Audit == nil {
		return
	}
	bad := report.AuditMatters(f)
	for i, m := range bad {
		if i < len(f.Audit.Ahead) {
			e.fail("audit log", m.Do, "%s", m.What)
			continue
		}
		e.warn("audit log", m.Do, "%s", m.What)
	}
	if len(bad) == 0 {
		e.ok("audit log", "%s", f.Audit.Text(f.QueueStats.Now))
	}
}
