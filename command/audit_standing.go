package command

import (
	"context"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
)

// maxUnsealed bounds how many unsealed commits are read: they are read with their
// evidence, and a sealer that runs each second leaves fewer.
const maxUnsealed = 100

// auditStatus is the state of the audit log; nil where none is configured and none
// exists. An error in it does not fail the status.
func auditStatus(ctx context.Context, d *server.Instance) *report.Audit {
	a := &report.Audit{Configured: d.Config.Audit.On(), Tenant: d.Tenant}
	s, err := audit.StatusOf(ctx, d.Ledger, d.Tenant, maxUnsealed)
	if err != nil {
		if !a.Configured {
			return nil
		}
		a.Problem = err.Error()
		return a
	}
	ahead, err := d.Ahead(ctx)
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
