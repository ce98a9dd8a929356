package gate

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// StepList is a workflow with a page of its steps, in the order of their first gate, including
// blocked steps that have no write. It is for callers in this process and not in the contract.
type StepList struct {
	WorkflowID   string    `json:"workflow_id"`
	WorkflowName string    `json:"workflow_name"`
	Status       Status    `json:"status"`
	StartedAt    time.Time `json:"started_at"`
	TraceID      string    `json:"trace_id,omitempty"`
	// Reason, EndedBy and EndedAt are set once it has ended.
	Reason  string      `json:"reason,omitempty"`
	EndedBy string      `json:"ended_by,omitempty"`
	EndedAt *time.Time  `json:"ended_at,omitempty"`
	Steps   []StepTrace `json:"steps"`
	Total   int         `json:"total"`
	Offset  int         `json:"offset"`
}

// More is the offset of the next page, 0 at the end.
func (l StepList) More() int {
	if next := l.Offset + len(l.Steps); len(l.Steps) > 0 && next < l.Total {
		return next
	}
	return 0
}

// Steps returns the decisions about the steps of a workflow, from offset on. The limit is 20 by
// default and 100 at most. It fails with an [Error] of [NotFound] if the tenant has no such
// workflow.
func (g *Gate) Steps(ctx context.Context, c Caller, workflowID string, limit, offset int) (StepList, error) {
	if err := firstOf(c.check(), checkIDs(workflowID, "-")); err != nil {
		return StepList{}, err
	}
	if limit < 0 || offset < 0 {
		return StepList{}, badRequest("limit and offset", "are %d and %d; want at least 0", limit, offset)
	}
	d, err := g.read(ctx, c.Tenant, workflowID, "")
	if err != nil {
		return StepList{}, failed(err)
	}
	opts, f := g.options(), d.flow
	l := opts.list(c.Tenant, d.wf, f)
	l.Offset = offset
	q := ledger.DocumentQuery{Tenant: c.Tenant, Kind: kindStep, Collection: workflowID}
	limit = min(cmp.Or(limit, defaultList), maxList)
	l.Total, err = g.page(ctx, q, offset, limit, func(p ledger.Document, s step) error {
		l.Steps = append(l.Steps, opts.trace(c.Tenant, workflowID, f, s, p.Now))
		return nil
	})
	if err != nil {
		return StepList{}, failed(err)
	}
	return l, nil
}

// list is a workflow without its steps, redacted.
func (o *Options) list(tenant string, wf ledger.Document, f flow) StepList {
	l := StepList{WorkflowID: wf.ID, WorkflowName: f.Name, Status: f.Status, StartedAt: wf.Created, TraceID: f.TraceID,
		Reason: f.Reason, EndedBy: f.EndedBy, EndedAt: f.EndedAt, Steps: []StepTrace{}}
	o.clean(tenant, &l)
	l.Reason = redact.ShownText(l.Reason)
	return l
}

// page visits at most limit steps from offset on, and returns how many there are in all.
func (g *Gate) page(ctx context.Context, q ledger.DocumentQuery, offset, limit int, visit func(ledger.Document, step) error) (total int, err error) {
	for left := limit; left > 0; {
		q.Offset, q.Limit = offset, min(left, stepsAtOnce)
		documents, all, err := g.store.FindDocuments(ctx, q)
		if err != nil {
			return all, err
		}
		for _, p := range documents {
			s, err := readStep(p)
			if err == nil {
				err = visit(p, s)
			}
			if err != nil {
				return all, err
			}
		}
		total, offset, left = all, offset+len(documents), left-len(documents)
		if len(documents) == 0 || offset >= total {
			break
		}
	}
	return total, nil
}

// Undone returns steps that asked for a business operation and are not completed (blocked, held
// or released), newest first. Steps are not indexed by operation, so only the tenant's newest
// 1000 uncompleted steps are searched; more reports that there are others, or more than 100 of
// these. Find steps that are completed, or hold the operation, by its writes.
func (g *Gate) Undone(ctx context.Context, c Caller, tool, key string) (found []StepTrace, more bool, err error) {
	if err := firstOf(c.check(), text(maxKey, "idempotency_key", key)); err != nil {
		return nil, false, err
	}
	type one struct {
		at time.Time
		in string
		s  step
	}
	var all []one
	q := ledger.DocumentQuery{Tenant: c.Tenant, Kind: kindStep, States: []string{stateGated, statePending}}
	total, err := g.page(ctx, q, 0, maxUndone, func(p ledger.Document, s step) error {
		switch {
		case key == "" || s.Key != key || !s.asksFor(tool):
		case len(all) == maxList:
			more = true
		default:
			all = append(all, one{p.Now, p.Collection, s})
		}
		return nil
	})
	if err != nil {
		return nil, false, failed(err)
	}
	flows := map[string]flow{}
	for _, o := range all {
		f, there := flows[o.in]
		if !there {
			d, err := g.read(ctx, c.Tenant, o.in, "")
			if refused := (*Error)(nil); err != nil && !(errors.As(err, &refused) && refused.Code == NotFound) { // pruned meanwhile
				return nil, false, failed(err)
			}
			f, flows[o.in] = d.flow, d.flow
		}
		found = append(found, g.options().trace(c.Tenant, o.in, f, o.s, o.at))
	}
	return found, more || total > maxUndone, nil
}

// asksFor reports whether the step asks, or once asked, for an operation of a tool.
func (s step) asksFor(tool string) bool {
	if s.OperationTool == tool || s.tool() == tool {
		return true
	}
	for _, one := range s.Gated {
		if one.Facts.Tool == tool {
			return true
		}
	}
	return false
}
