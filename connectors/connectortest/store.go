package connectortest

import (
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// storeSubjects cover destinations that accept and store something else.
func storeSubjects(h Harness) []subject {
	var all []subject
	for _, w := range h.Writes {
		if w != intent.Create && w != intent.Update {
			continue
		}
		all = slices.Concat(all,
			vicious(h, fault.DroppedField, w, func(c *check, arm func()) { droppedField(c, w, arm) }),
			vicious(h, fault.NormalisedField, w, func(c *check, arm func()) { normalisedField(c, w, arm) }),
		)
	}
	return slices.Concat(all,
		vicious(h, fault.DuplicateBehindOurBack, intent.Create, duplicate),
		vicious(h, fault.Rollback, intent.Create, rollback),
	)
}

// altered sends a write that gets stored otherwise and returns what a read
// shows of it, and the one field that is not as wanted.
func (c *check) altered(w intent.WriteType, arm func()) (intent.WriteIntent, *connectors.Observation, connectors.Record, string) {
	c.Helper()
	in, before, effects := c.prepared(w, 1)
	arm()
	_, _, err := c.sent(c.request(in, before))
	c.fate(err, "the destination answered yes", connectors.FateAnswered)
	c.effects(in.Key, effects+1)
	stored := c.f.Records(in.Key)
	if len(stored) != 1 {
		c.Fatalf("harness: the store has %d records, want 1", len(stored))
	}
	odd := c.differing(in.Expect, stored[0].Fields)
	if len(odd) != 1 {
		c.Fatalf("harness: the fault changed the fields %q, want exactly one", odd)
	}
	var o connectors.Observation
	c.until(func() string {
		if o = c.see(query(in), 1); len(c.differing(in.Expect, o.Records[0].Fields)) != 1 {
			return "the read does not show the one field as it is in the store"
		}
		return ""
	})
	c.likeStore(in, o)
	return in, before, o.Records[0], odd[0]
}

func droppedField(c *check, w intent.WriteType, arm func()) {
	_, before, got, name := c.altered(w, arm)
	was := any(absent{})
	if w == intent.Update {
		was = field(before.Records[0].Fields, name)
	}
	if now := field(got.Fields, name); !c.same(name, was, now) {
		c.Errorf("field %q was not stored and is read as %#v, want %#v", name, now, was)
	}
}

func normalisedField(c *check, w intent.WriteType, arm func()) {
	in, _, got, name := c.altered(w, arm)
	if now := field(got.Fields, name); now == (absent{}) {
		c.Errorf("field %q was stored in another form than %#v and is not read at all", name, in.Expect[name])
	}
}

// duplicate: both must be seen, since neither can be called the one.
func duplicate(c *check, arm func()) {
	in := c.intent(intent.Create, 1)
	before := c.before(in, 0)
	arm()
	c.write(in, before)
	c.until(func() string {
		if len(c.f.Records(in.Key)) != 2 {
			return "harness: there is no second record in the store"
		}
		return ""
	})
	c.effects(in.Key, 1)
	c.likeStore(in, c.see(query(in), 2))
}

// rollback: what was there is gone, and a later read shows it.
func rollback(c *check, arm func()) {
	in := c.intent(intent.Create, 1)
	before := c.before(in, 0)
	arm()
	receipt := c.write(in, before)
	c.until(func() string {
		if len(c.f.Records(in.Key)) != 0 {
			return "harness: the record has not gone from the store"
		}
		return ""
	})
	q := query(in)
	q.Ref = receipt.Ref
	c.see(q, 0)
}
