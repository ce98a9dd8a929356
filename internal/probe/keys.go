package probe

import (
	"context"
	"fmt"
	"sync"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// again sends a write that makes a record twice: with one key the same request,
// where the destination deduplicates by it, else with another key and another
// stamp, where the business key is unique. There must be one record.
func (r *run) again(ctx context.Context, k check, w intent.WriteType, native bool) error {
	s := r.sample()
	first, err := r.first(s, w, native)
	if err != nil {
		return err
	}
	if _, err := r.answered(ctx, s, first); err != nil {
		return err
	}
	second, err := r.second(s, first, native)
	if err != nil {
		return err
	}
	res, err := r.send(ctx, s, second)
	if err != nil {
		return err
	}
	return r.one(ctx, k, s, first.in, "the second was "+answerOf(res))
}

// atOnce sends both at the same time.
func (r *run) atOnce(ctx context.Context, k check, w intent.WriteType, native bool) error {
	s := r.sample()
	first, err := r.first(s, w, native)
	if err != nil {
		return err
	}
	second, err := r.second(s, first, native)
	if err != nil {
		return err
	}
	second.attempt = 1
	var results [2]verify.Result
	var errs [2]error
	var both sync.WaitGroup
	for i, each := range []write{first, second} {
		both.Go(func() { results[i], errs[i] = r.send(ctx, s, each) })
	}
	both.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return r.one(ctx, k, s, first.in, fmt.Sprintf("one was %s, the other %s", answerOf(results[0]), answerOf(results[1])))
}

func (r *run) first(s *sample, w intent.WriteType, native bool) (write, error) {
	in, err := r.of(s, w)
	first := write{in: in, before: none()}
	if native {
		first.key = "rbk-probe-" + s.name
	}
	return first, err
}

// second is the same write again under one key, or else another write of the
// same thing.
func (r *run) second(s *sample, first write, native bool) (write, error) {
	second := first
	second.attempt = 2
	if native {
		return second, nil
	}
	in, err := r.of(s, first.in.Write)
	second.in, second.attempt = in, 1
	return second, err
}

// one wants one record of a sample.
func (r *run) one(ctx context.Context, k check, s *sample, in intent.WriteIntent, how string) error {
	o, err := r.settled(ctx, s, in)
	if err != nil {
		return err
	}
	switch n := len(o.Records); {
	case n == 0:
		return unmeasured("no record is there; %s", how)
	case n > 1:
		r.found(k, fmt.Sprintf("%d records; %s", n, how), Weaker)
	default:
		r.found(k, "one record; "+how, OK)
	}
	return nil
}

// anotherBody uses the key of one record for another one, which must not come
// to be.
func (r *run) anotherBody(ctx context.Context, k check, w intent.WriteType) error {
	s, other := r.sample(), r.sample()
	first, err := r.first(s, w, true)
	if err != nil {
		return err
	}
	if _, err := r.answered(ctx, s, first); err != nil {
		return err
	}
	in, err := r.of(other, w)
	if err != nil {
		return err
	}
	again := in // of the same write, so with its stamp as well, which is what some APIs keep unique
	again.Tenant, again.Workflow, again.Step, again.Tool, again.Call = first.in.Tenant, first.in.Workflow, first.in.Step, first.in.Tool, first.in.Call
	res, err := r.send(ctx, other, write{in: again, before: none(), key: first.key})
	if err != nil {
		return err
	}
	o, err := r.settled(ctx, other, in)
	switch {
	case err != nil:
		return err
	case len(o.Records) > 0:
		r.found(k, "the second record was made as well; it was "+answerOf(res), Weaker)
	default:
		r.found(k, "the second record was not made; it was "+answerOf(res), OK)
	}
	return nil
}

// oldKey sends an update, another that takes it back, and the first again under
// its old key: it must not act a second time.
func (r *run) oldKey(ctx context.Context, k check) error {
	s, before, err := r.made(ctx)
	if err != nil {
		return err
	}
	there, err := r.of(s, intent.Update)
	if err != nil {
		return err
	}
	back, err := r.back(s, there)
	if err != nil {
		return err
	}
	once := write{in: there, before: &before, key: "rbk-probe-" + s.name}
	if _, err := r.answered(ctx, s, once); err != nil {
		return err
	}
	if before, err = r.until(ctx, there, r.as(there)); err != nil {
		return err
	}
	if _, err := r.answered(ctx, s, write{in: back, before: &before}); err != nil {
		return err
	}
	if _, err := r.until(ctx, back, r.as(back)); err != nil {
		return err
	}
	once.attempt = 2
	res, err := r.send(ctx, s, once)
	if err != nil {
		return err
	}
	o, err := r.settled(ctx, s, back)
	switch {
	case err != nil:
		return err
	case r.as(back)(o):
		r.found(k, "the old key did nothing; it was "+answerOf(res), OK)
	default:
		r.found(k, "the old key changed the record again; it was "+answerOf(res), Weaker)
	}
	return nil
}

// back is the update that undoes an update: what the create wrote in the fields
// that it names.
func (r *run) back(s *sample, update intent.WriteIntent) (intent.WriteIntent, error) {
	made, err := r.intent(s.name, intent.Create, 0)
	if err != nil {
		return made, err
	}
	back, err := r.of(s, intent.Update)
	if err != nil {
		return back, err
	}
	back.Expect = intent.Fields{}
	for name := range update.Expect {
		if v, ok := made.Expect[name]; ok {
			back.Expect[name] = v
		}
	}
	if len(verify.Diff(intent.WriteIntent{Expect: back.Expect}, r.p.Compare, update.Expect)) == 0 {
		return back, unmeasured("no field is in the samples of create and update with two values")
	}
	back.Absent, back.Payload = nil, nil
	return back, back.Validate()
}

// as reports whether a read shows one record as an intent wants it.
func (r *run) as(in intent.WriteIntent) func(connectors.Observation) bool {
	return func(o connectors.Observation) bool {
		return len(o.Records) == 1 && len(verify.Diff(in, r.p.Compare, o.Records[0].Fields)) == 0
	}
}

// repeat makes an update or a delete twice, the second time as another write:
// it must meet the same record, or none.
func (r *run) repeat(ctx context.Context, k check, w intent.WriteType) error {
	s, before, err := r.made(ctx)
	if err != nil {
		return err
	}
	left := map[intent.WriteType]int{intent.Update: 1}[w]
	how := ""
	for _, which := range []string{"first", "second"} {
		in, err := r.of(s, w)
		if err != nil {
			return err
		}
		res, err := r.send(ctx, s, write{in: in, before: &before})
		if err != nil {
			return err
		}
		how = "the second was " + answerOf(res)
		if which == "second" {
			break
		}
		if res.Fate != connectors.FateAnswered {
			return unmeasured("the %s was %s", w, answerOf(res))
		}
		if _, err := r.until(ctx, in, r.done(in)); err != nil {
			return err
		}
	}
	in, err := r.of(s, w)
	if err != nil {
		return err
	}
	o, err := r.settled(ctx, s, in)
	if err != nil {
		return err
	}
	result := OK
	if len(o.Records) != left || w == intent.Update && !r.as(in)(o) {
		result = Weaker
	}
	r.found(k, fmt.Sprintf("%d records after it; %s", len(o.Records), how), result)
	return nil
}

// answerOf describes the answer to a send, in a word or two.
func answerOf(res verify.Result) string {
	switch {
	case res.Fate == connectors.FateAnswered && res.Receipt.Replay:
		return "answered as a replay"
	case res.Fate == connectors.FateAnswered:
		return "answered with yes"
	case res.Conflict:
		return "refused as a conflict"
	case res.Fate == connectors.FateUnknown:
		return "not answered"
	}
	return string(res.Fate)
}
