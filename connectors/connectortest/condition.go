package connectortest

import (
	"errors"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

func asError(err error) (*connectors.Error, bool) {
	var e *connectors.Error
	return e, errors.As(err, &e)
}

// conditionSubjects are about writes that depend on what was read.
func conditionSubjects(h Harness) []subject {
	var all []subject
	for _, w := range h.Writes {
		if w == intent.Create {
			continue
		}
		all = append(all,
			subject{"condition/holds/" + string(w), nil, func(c *check) { conditionHolds(c, w) }},
			subject{"condition/broken/" + string(w), []string{LacksChange}, func(c *check) { conditionBroken(c, w) }},
		)
		if w != intent.Update {
			continue
		}
		for _, s := range vicious(h, fault.DroppedField, w, conditionHoldsInPart) {
			s.name = "condition/" + s.name
			all = append(all, s)
		}
	}
	return all
}

// conditional puts a record there and returns a conditional write on it.
func (c *check) conditional(w intent.WriteType) (connectors.Request, bool) {
	c.Helper()
	if !slices.Contains(c.f.Profile.Conditional, w) {
		c.Logf("the profile does not say that %s can be conditional", w)
		return connectors.Request{}, false
	}
	made := c.intent(intent.Create, 1)
	c.write(made, c.before(made, 0))
	before := c.see(query(made), 1)
	if before.Records[0].Version == "" {
		c.Errorf("the profile says that %s can be conditional, and the record has no version", w)
	}
	r := c.request(c.intent(w, 1), &before)
	r.Conditional = true
	return r, true
}

func conditionHolds(c *check, w intent.WriteType) {
	r, ok := c.conditional(w)
	if !ok {
		return
	}
	_, err := c.f.Connector.Write(c.Context(), r)
	c.fate(err, "the record is as it was read", connectors.FateAnswered)
	c.effects(r.Intent.Key, 2)
}

// conditionHoldsInPart: the condition held and not all was stored. What shows
// of it is not as wanted, which is no proof that nothing was done.
func conditionHoldsInPart(c *check, arm func()) {
	r, ok := c.conditional(intent.Update)
	if !ok {
		return
	}
	arm()
	_, err := c.f.Connector.Write(c.Context(), r)
	c.fate(err, "the record was as it was read, and the change was made in part", connectors.FateAnswered, connectors.FateUnknown)
	c.effects(r.Intent.Key, 2)
}

func conditionBroken(c *check, w intent.WriteType) {
	r, ok := c.conditional(w)
	if !ok {
		return
	}
	c.f.Change(r.Intent.Key)
	changed := c.f.Records(r.Intent.Key)
	_, err := c.f.Connector.Write(c.Context(), r)
	conflicting(c, err)
	c.effects(r.Intent.Key, 1)
	now := c.f.Records(r.Intent.Key)
	if len(now) != 1 || len(changed) != 1 || now[0].Version != changed[0].Version {
		c.Errorf("the record is %v, want it as another actor left it, %v", now, changed)
	}
}
