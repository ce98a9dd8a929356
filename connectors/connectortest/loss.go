package connectortest

import (
	"context"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// lossSubjects cover responses that do not arrive, or that are not true.
func lossSubjects(h Harness) []subject {
	var all []subject
	for _, w := range h.Writes {
		all = slices.Concat(all,
			vicious(h, fault.LostAnswer, w, func(c *check, arm func()) { appliedUnheard(c, w, arm) }),
			vicious(h, fault.BadGateway, w, func(c *check, arm func()) { appliedUnheard(c, w, arm) }),
			vicious(h, fault.DroppedBefore, w, func(c *check, arm func()) { neverApplied(c, w, arm) }),
			vicious(h, fault.LateCommit, w, func(c *check, arm func()) { appliedLate(c, w, arm) }),
			vicious(h, fault.PhantomSuccess, w, func(c *check, arm func()) { phantom(c, w, arm) }),
		)
	}
	return all
}

// appliedUnheard: the write was applied and the response was lost. Only a read can show it.
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

// neverApplied: the request arrived and failed. To the caller that looks like a lost response,
// and must have the same fate.
func neverApplied(c *check, w intent.WriteType, arm func()) {
	in, before, effects := c.prepared(w, 1)
	arm()
	_, sends, err := c.sent(c.request(in, before))
	if sends == 0 {
		c.fate(err, "nothing was received", connectors.FateNotSent, connectors.FateUnknown)
	} else {
		c.fate(err, "the destination received it; its fate is unknown", connectors.FateUnknown)
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

// phantom: the destination accepts and has done nothing. The write may return success; the read
// must not.
func phantom(c *check, w intent.WriteType, arm func()) {
	in, before, effects := c.prepared(w, 1)
	arm()
	receipt, _, err := c.sent(c.request(in, before))
	c.fate(err, "the destination answered yes", connectors.FateAnswered)
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
