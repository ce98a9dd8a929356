package connectortest

import (
	"context"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// lossSubjects are about answers that do not come, or that are not true.
func lossSubjects(h Harness) []subject {
	var all []subject
	for _, w := range h.Writes {
		all = slices.Concat(all,
			vicious(h, LostAnswer, w, func(c *check, arm func()) { appliedUnheard(c, w, arm) }),
			vicious(h, BadGateway, w, func(c *check, arm func()) { appliedUnheard(c, w, arm) }),
			vicious(h, DroppedBefore, w, func(c *check, arm func()) { neverApplied(c, w, arm) }),
			vicious(h, LateCommit, w, func(c *check, arm func()) { appliedLate(c, w, arm) }),
			vicious(h, PhantomSuccess, w, func(c *check, arm func()) { phantom(c, w, arm) }),
		)
	}
	return all
}

// appliedUnheard: the write was applied and nobody heard. Only a read can tell.
func appliedUnheard(c *check, w intent.WriteType, arm func()) {
	in, before, effects := c.prepared(w, 1)
	arm()
	_, sends, err := c.sent(c.request(in, before))
	c.fate(err, "it was applied, and the answer does not say so", connectors.FateUnknown)
	if sends > 1 {
		c.Errorf("%d sends reached the destination, want 1", sends)
	}
	c.effects(in.Key, effects+1)
	c.likeStore(in, c.settled(in, w))
}

// neverApplied: the request arrived and came to nothing. From here that looks
// like a lost answer, and must be called the same.
func neverApplied(c *check, w intent.WriteType, arm func()) {
	in, before, effects := c.prepared(w, 1)
	arm()
	_, sends, err := c.sent(c.request(in, before))
	if sends == 0 {
		c.fate(err, "nothing was received", connectors.FateNotSent, connectors.FateUnknown)
	} else {
		c.fate(err, "the destination received it; what became of it nobody knows", connectors.FateUnknown)
	}
	if sends > 1 {
		c.Errorf("%d sends reached the destination, want 1", sends)
	}
	c.effects(in.Key, effects)
	c.likeStore(in, c.see(query(in), len(before.Records)))
}

func appliedLate(c *check, w intent.WriteType, arm func()) {
	in, before, effects := c.prepared(w, 1)
	arm()
	err := c.impatient(func(ctx context.Context) error {
		_, err := c.f.Connector.Write(ctx, c.request(in, before))
		return err
	})
	c.fate(err, "no answer came in time", connectors.FateUnknown)
	if got := c.f.Effects(in.Key); got != effects && !c.h.RealTime {
		c.Errorf("harness: the late commit was not late: %d effects when the client gave up", got-effects)
	}
	c.effects(in.Key, effects+1)
	c.likeStore(in, c.settled(in, w))
}

// phantom: the destination says yes and has done nothing. The write may
// believe it; the read must not have heard of it.
func phantom(c *check, w intent.WriteType, arm func()) {
	in, before, effects := c.prepared(w, 1)
	arm()
	receipt, _, err := c.sent(c.request(in, before))
	c.fate(err, "the destination said yes", connectors.FateAnswered)
	q := query(in)
	q.Ref = receipt.Ref
	o := c.see(q, len(before.Records))
	for i, r := range o.Records {
		for name, was := range before.Records[i].Fields {
			if now := field(r.Fields, name); !c.same(name, was, now) {
				c.Errorf("the read shows field %q as %#v, which was never stored; want %#v", name, now, was)
			}
		}
	}
	c.effects(in.Key, effects)
}
