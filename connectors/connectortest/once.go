package connectortest

import (
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

func unique(p connectors.Profile, w intent.WriteType) bool { return slices.Contains(p.Unique, w) }

func native(p connectors.Profile, w intent.WriteType) bool { return p.NativeWindow[w] > 0 }

// onceSubjects are about the number of sends, and about repeats that the
// profile declares harmless.
func onceSubjects(h Harness) []subject {
	var all []subject
	for _, w := range h.Writes {
		all = append(all,
			subject{"once/" + string(w), []string{LacksSends}, func(c *check) { oneSend(c, w) }},
			subject{"repeat/" + string(w), nil, func(c *check) { harmlessRepeat(c, w) }},
		)
	}
	for _, v := range []fault.Kind{fault.LostAnswer, fault.DroppedBefore} {
		for _, w := range h.Writes {
			all = append(all, subject{"once/kept-connection/" + string(v) + "/" + string(w),
				[]string{LacksSends, string(v)}, func(c *check) { keptConnection(c, v, w) }})
		}
	}
	return all
}

func oneSend(c *check, w intent.WriteType) {
	in, before, _ := c.prepared(w, 1)
	_, sends, err := c.sent(c.request(in, before))
	c.fate(err, "nothing was wrong", connectors.FateAnswered)
	if sends != 1 {
		c.Errorf("%d sends reached the destination, want 1", sends)
	}
}

// keptConnection cuts a connection that has served before. In that case some clients send again
// by themselves: Go's net/http does, when it considers a request repeatable.
func keptConnection(c *check, v fault.Kind, w intent.WriteType) {
	in, before, _ := c.prepared(w, 1)
	warm := c.intent(intent.Create, 2)
	c.write(warm, c.before(warm, 0))
	c.set(v, "")
	_, sends, err := c.sent(c.request(in, before))
	c.fate(err, "the connection was cut", connectors.FateUnknown)
	if sends != 1 {
		c.Errorf("%d sends reached the destination for one call, want 1", sends)
	}
}

// harmlessRepeat sends one write twice where the profile says that this is harmless.
func harmlessRepeat(c *check, w intent.WriteType) {
	p := c.f.Profile
	if !unique(p, w) && !native(p, w) {
		c.Logf("the profile does not say that a second %s is harmless", w)
		return
	}
	in, before, effects := c.prepared(w, 1)
	r := c.request(in, before)
	c.write(in, before)
	c.effects(in.Key, effects+1)
	r.Attempt = 2
	_, err := c.f.Connector.Write(c.Context(), r)
	switch e, ok := asError(err); {
	case native(p, w) && !c.lacks(LacksReplay):
		c.fate(err, "the destination knows the key and gives the first answer again", connectors.FateAnswered)
	case native(p, w) && ok && e.Conflict && connectors.FateOf(err) == connectors.FateUnknown: // a record with our key as its id can only be ours
	case err != nil || native(p, w):
		conflicting(c, err)
	}
	if native(p, w) {
		c.effects(in.Key, effects+1)
	}
	o := c.see(query(in), left(w))
	c.likeStore(in, o)
}

// conflicting checks that a refusal reports that the record is not as the write expected.
func conflicting(c *check, err error) {
	c.Helper()
	if e, ok := asError(err); !ok || e.Fate != connectors.FateRefused || !e.Conflict {
		c.Errorf("the write says %v, want a refusal marked as a conflict", err)
	}
}
