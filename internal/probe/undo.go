package probe

import (
	"context"
	"fmt"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// undo makes a write, takes it back by the connector's own inverse, and wants
// everything as it was.
func (r *run) undo(ctx context.Context, k check, w intent.WriteType) error {
	inverter, ok := r.c.(connectors.Inverter)
	if !ok {
		r.found(k, "the connector is no Inverter", Weaker)
		return nil
	}
	s, before, err := r.begin(ctx, w)
	if err != nil {
		return err
	}
	in, err := r.of(s, w)
	if err != nil {
		return err
	}
	if _, err := r.answered(ctx, s, write{in: in, before: &before}); err != nil {
		return err
	}
	after, err := r.until(ctx, in, r.done(in))
	if err != nil {
		return err
	}
	inverse, err := inverter.Invert(in, &before, after)
	if err == nil {
		inverse, err = r.inverse(s, in, inverse)
	}
	if err != nil {
		r.found(k, fmt.Sprintf("it has no inverse: %v", err), Weaker)
		return nil
	}
	if res, err := r.send(ctx, s, write{in: inverse, before: &after}); err != nil {
		return err
	} else if res.Fate == connectors.FateUnknown {
		return unmeasured("the inverse was not answered: %v", res.Err)
	} else if res.Fate != connectors.FateAnswered {
		r.found(k, fmt.Sprintf("the inverse was %s: %v", answerOf(res), res.Err), Weaker)
		return nil
	}
	return r.restored(ctx, k, s, inverse, before)
}

// begin makes what a write needs to be there.
func (r *run) begin(ctx context.Context, w intent.WriteType) (*sample, connectors.Observation, error) {
	if w == intent.Create || w == intent.Upsert {
		return r.sample(), *none(), nil
	}
	return r.made(ctx)
}

// done reports whether a read shows what a write wanted.
func (r *run) done(in intent.WriteIntent) func(connectors.Observation) bool {
	if in.Write == intent.Delete {
		return func(o connectors.Observation) bool { return len(o.Records) == 0 }
	}
	return r.as(in)
}

// inverse is an inverse with an origin of its own.
func (r *run) inverse(s *sample, of, inverse intent.WriteIntent) (intent.WriteIntent, error) {
	inverse.Tenant, inverse.Workflow, inverse.Step, inverse.Tool, inverse.Call = of.Tenant, of.Workflow, of.Step, of.Tool, of.Call
	inverse.Destination, inverse.Kind, inverse.Compensates = of.Destination, of.Kind, "probe-"+s.name
	if err := inverse.Validate(); err != nil {
		return inverse, fmt.Errorf("it could not be accepted: %w", err)
	}
	return inverse, nil
}

// restored compares what is there after the inverse with what was there before
// the write.
func (r *run) restored(ctx context.Context, k check, s *sample, inverse intent.WriteIntent, before connectors.Observation) error {
	back, err := r.until(ctx, inverse, r.done(inverse))
	if err != nil {
		back, err = r.settled(ctx, s, inverse)
	}
	switch {
	case err != nil:
		return err
	case len(back.Records) != len(before.Records):
		r.found(k, fmt.Sprintf("%d records before it and %d after its inverse", len(before.Records), len(back.Records)), Weaker)
		return nil
	}
	var odd []string
	for i, was := range before.Records {
		same := intent.WriteIntent{Expect: was.Fields, Ignore: r.p.Volatile}
		if inverse.Write == intent.Create { // another record, with an id and times of its own
			same = inverse
		}
		for _, m := range verify.Diff(same, r.p.Compare, back.Records[i].Fields) {
			odd = append(odd, m.Path)
		}
	}
	if len(odd) > 0 {
		r.found(k, "not as before: "+strings.Join(odd, ", "), Weaker)
		return nil
	}
	r.found(k, "everything is as before", OK)
	return nil
}
