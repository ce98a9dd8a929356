package probe

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// conditional makes a write on the condition that a record is unchanged since the read: once
// while that holds, and once after another actor's change in between. The first must be accepted,
// the second refused without effect.
func (r *run) conditional(ctx context.Context, k check, w intent.WriteType) error {
	held, why, err := r.holds(ctx, w)
	if err != nil {
		return err
	}
	if !held {
		r.found(k, why, Weaker)
		return nil
	}
	s, stale, err := r.made(ctx)
	if err != nil {
		return err
	}
	between, err := r.of(s, intent.Update)
	if err != nil {
		return err
	}
	if _, err := r.answered(ctx, s, write{in: between, before: &stale}); err != nil {
		return err
	}
	if _, err := r.until(ctx, between, r.as(between)); err != nil {
		return err
	}
	in, err := r.late(s, w, between)
	if err != nil {
		return err
	}
	res, err := r.send(ctx, s, write{in: in, before: &stale, conditional: true})
	if err != nil {
		return err
	}
	o, err := r.settled(ctx, s, between)
	switch {
	case err != nil:
		return err
	case res.Fate == connectors.FateAnswered || !r.as(between)(o):
		r.found(k, fmt.Sprintf("it was %s although the record had changed, and %d records are there", answerOf(res), len(o.Records)), Weaker)
	case res.Fate == connectors.FateUnknown:
		return unmeasured("the %s on a changed record was not answered: %v", w, res.Err)
	default:
		r.found(k, "taken where nothing had changed, refused where something had", OK)
	}
	return nil
}

// late is the write that comes too late: it would take back what came between.
func (r *run) late(s *sample, w intent.WriteType, between intent.WriteIntent) (intent.WriteIntent, error) {
	if w == intent.Update {
		return r.back(s, between)
	}
	return r.of(s, w)
}

// holds makes the write while its condition holds.
func (r *run) holds(ctx context.Context, w intent.WriteType) (held bool, why string, err error) {
	s, before, err := r.made(ctx)
	if err != nil {
		return false, "", err
	}
	if before.Records[0].Version == "" {
		return false, "the record shows no version", nil
	}
	in, err := r.of(s, w)
	if err != nil {
		return false, "", err
	}
	res, err := r.send(ctx, s, write{in: in, before: &before, conditional: true})
	switch {
	case err != nil:
		return false, "", err
	case res.Fate == connectors.FateUnknown:
		return false, "", unmeasured("the %s was not answered: %v", w, res.Err)
	case res.Fate != connectors.FateAnswered:
		return false, fmt.Sprintf("it was %s although nothing had changed: %v", answerOf(res), res.Err), nil
	}
	return true, "", nil
}
