package connectortest

import (
	"maps"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// inverseSubjects are about undoing, where the connector can.
func inverseSubjects(h Harness) []subject {
	var all []subject
	for _, w := range h.Writes {
		if w == intent.Update {
			all = append(all, subject{"invert/unknown-before", nil, invertWriteOnly})
		}
		all = append(all, subject{"invert/" + string(w), nil, func(c *check) { invert(c, w) }})
	}
	return all
}

func (c *check) inverter() (connectors.Inverter, bool) {
	i, ok := c.f.Connector.(connectors.Inverter)
	if !ok {
		c.Log("the connector is no Inverter")
	}
	return i, ok
}

// invert undoes a write and checks that everything is as before. An error of Invert is valid: not
// every write can be undone.
func invert(c *check, w intent.WriteType) {
	inverter, ok := c.inverter()
	if !ok {
		return
	}
	in, before, effects := c.prepared(w, 1)
	c.write(in, before)
	after := c.settled(in, w)
	undo, err := inverter.Invert(in, before, after)
	if err != nil {
		c.Logf("the connector says that %s cannot be undone: %v", w, err)
		return
	}
	if undo.Write == "" || undo.Kind != in.Kind || undo.Destination != in.Destination {
		c.Errorf("the inverse writes %q on %q at %q, want a write on the same kind and destination", undo.Write, undo.Kind, undo.Destination)
	}
	c.guarded(undo, after)
	undo.Tenant, undo.Workflow, undo.Step, undo.Tool, undo.Call = in.Tenant, in.Workflow, in.Step, in.Tool, in.Call
	undo.Compensates = "connectortest"
	if err := undo.Validate(); err != nil {
		c.Errorf("the inverse is no intent that could be accepted: %v", err)
	}
	c.write(undo, &after)
	c.effects(in.Key, effects+2)
	back := c.settled(undo, undo.Write)
	if w == intent.Create && c.lacks(LacksRemoval) {
		c.asWanted(undo, back.Records[0])
		return
	}
	if len(back.Records) != len(before.Records) {
		c.Fatalf("after the inverse there are %d records, before the write there were %d", len(back.Records), len(before.Records))
	}
	for i, was := range before.Records {
		c.asBefore(was.Fields, back.Records[i].Fields)
	}
}

// settled reads until the write shows.
func (c *check) settled(in intent.WriteIntent, w intent.WriteType) connectors.Observation {
	c.Helper()
	var o connectors.Observation
	c.until(func() string {
		o = c.see(query(in), left(w))
		if w != intent.Delete && len(c.differing(in.Expect, o.Records[0].Fields)) > 0 {
			return "the read shows another state than was written"
		}
		for _, path := range in.Absent {
			if _, ok := intent.Lookup(o.Records[0].Fields, path); ok {
				return "the read shows a field that was to go"
			}
		}
		return ""
	})
	return o
}

// guarded checks that the inverse requires what is there now, so that it cannot overwrite a later
// change of another actor.
func (c *check) guarded(undo intent.WriteIntent, after connectors.Observation) {
	c.Helper()
	if undo.Write == intent.Create {
		return
	}
	if len(undo.Require) == 0 {
		c.Errorf("the inverse requires nothing; it would overwrite what another actor changed since")
	}
	for _, r := range after.Records {
		for _, name := range c.differing(undo.Require, r.Fields) {
			c.Errorf("the inverse requires %q to be %#v, and it is %#v after the write", name, undo.Require[name], field(r.Fields, name))
		}
	}
}

// asBefore compares all fields but those that the destination changes by
// itself.
func (c *check) asBefore(was, is intent.Fields) {
	c.Helper()
	was, is = maps.Clone(was), maps.Clone(is)
	for _, path := range c.f.Profile.Volatile {
		name := intent.Pointer(path).LastToken()
		delete(was, name)
		delete(is, name)
	}
	for name := range was {
		if now := field(is, name); !c.same(name, was[name], now) {
			c.Errorf("after the inverse the field %q is %#v, want %#v as before", name, now, was[name])
		}
	}
	for name := range is {
		if _, ok := was[name]; !ok {
			c.Errorf("after the inverse there is the field %q, which was not there before", name)
		}
	}
}

// invertWriteOnly: without a read before, the connector cannot know what to bring back.
func invertWriteOnly(c *check) {
	inverter, ok := c.inverter()
	if !ok {
		return
	}
	in := c.intent(intent.Create, 1)
	c.write(in, c.before(in, 0))
	after := c.settled(in, intent.Create)
	update := c.intent(intent.Update, 1)
	if undo, err := inverter.Invert(update, nil, after); err == nil {
		c.Errorf("without a read before it, an update is inverted to %v; want an error", undo)
	}
}
