package main

import (
	"context"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/internal/report"
)

// auditStanding is how the audit log stands; nil where none is configured and none
// is there. It keeps nothing else from being told.
func (d *desk) auditStanding(ctx context.Context) *report.Audit {
	a := &report.Audit{Configured: d.config.Audit.On(), Tenant: d.tenant}
	s, err := audit.StandingOf(ctx, d.ledger, d.tenant, maxUnsealed)
	if err != nil {
		if !a.Configured {
			return nil
		}
		a.Problem = err.Error()
		return a
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

// examineAudit says how the audit log stands, where there is one.
func examineAudit(e *examination, f report.Found) {
	if f.Audit == nil {
		return
	}
	bad := report.AuditMatters(f)
	for _, m := range bad {
		e.warn("audit log", m.Do, "%s", m.What)
	}
	if len(bad) == 0 {
		e.ok("audit log", "%s", f.Audit.Text(f.Survey.Now))
	}
}
