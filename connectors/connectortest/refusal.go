package connectortest

import (
	"errors"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// refusalSubjects are about what was certainly not applied, and about intents
// that the connector cannot serve.
func refusalSubjects() []subject {
	return []subject{
		{"refusal/kind", nil, unknownKind},
		{"refusal/key", nil, unusableKey},
		{"refusal/no-record-before", nil, noRecordBefore},
		{string(fault.Unreachable), []string{string(fault.Unreachable)}, unreachable},
		{string(fault.Refused), []string{string(fault.Refused)}, refused},
		{string(fault.Throttled), []string{string(fault.Throttled)}, throttled},
	}
}

// impossible checks an intent that must be turned down before anything is sent.
func impossible(c *check, in intent.WriteIntent, word string) {
	c.Helper()
	if checker, ok := c.f.Connector.(connectors.Checker); ok {
		if err := checker.Check(in); err == nil || !strings.Contains(err.Error(), word) {
			c.Errorf("the check before anything is recorded says %v; want %q named", err, word)
		}
	}
	sends := 0
	r, err := c.prepare(in, &connectors.Observation{})
	if err == nil { // else the engine would send nothing
		_, sends, err = c.sent(r)
		c.fate(err, "the intent cannot be served, so nothing may leave us", connectors.FateNotSent)
	}
	if sends > 0 {
		c.Errorf("%d sends reached the destination", sends)
	}
	if err != nil && !strings.Contains(err.Error(), word) {
		c.Errorf("the error of the write does not name %q: %v", word, err)
	}
	o, err := c.f.Connector.Read(c.Context(), query(in))
	if err == nil {
		c.Errorf("a read that cannot be made says that there are %d records", len(o.Records))
	} else if !strings.Contains(err.Error(), word) {
		c.Errorf("the error of the read does not name %q: %v", word, err)
	}
}

func unknownKind(c *check) {
	in := c.intent(intent.Create, 1)
	in.Kind = "no-such-kind"
	impossible(c, in, "kind")
}

func unusableKey(c *check) {
	in := c.intent(intent.Create, 1)
	in.Key = intent.Fields{"no_such_field": "x"}
	in.Expect = intent.Fields{"no_such_field": "x"}
	impossible(c, in, "no_such_field")
}

// noRecordBefore: an update or a delete of a record that was not found cannot become a write to
// another one.
func noRecordBefore(c *check) {
	changes := slices.DeleteFunc(slices.Clone(c.h.Writes), func(w intent.WriteType) bool {
		return w != intent.Update && w != intent.Delete
	})
	if len(changes) == 0 {
		c.Log("the destination has neither update nor delete")
		return
	}
	other := c.intent(intent.Create, 2)
	c.write(other, c.before(other, 0))
	c.effects(other.Key, 1)
	for _, w := range changes {
		in := c.intent(w, 1)
		_, err := c.f.Connector.Write(c.Context(), c.request(in, &connectors.Observation{}))
		if fate := connectors.FateOf(err); fate != connectors.FateNotSent && fate != connectors.FateRefused {
			c.Errorf("%s of what is not there says %q (%v), want not sent or refused", w, fate, err)
		}
		c.effects(in.Key, 0)
		c.effects(other.Key, 1)
	}
}

func unreachable(c *check) {
	in := c.intent(intent.Create, 1)
	before := c.before(in, 0)
	c.set(fault.Unreachable, "")
	_, sends, err := c.sent(c.request(in, before))
	c.fate(err, "no connection could be had, which is proof", connectors.FateNotSent)
	if sends > 0 {
		c.Errorf("%d sends reached the destination", sends)
	}
	c.effects(in.Key, 0)
	c.write(in, before) // and it must work again
}

func refused(c *check) {
	in := c.intent(intent.Create, 1)
	before := c.before(in, 0)
	c.set(fault.Refused, "")
	receipt, sends, err := c.sent(c.request(in, before))
	c.fate(err, "the destination refused", connectors.FateRefused)
	if receipt.Reply.Code == "" && receipt.Reply.Message == "" {
		c.Error("the receipt does not hold why the destination refused, in its own words")
	}
	if sends > 1 {
		c.Errorf("%d sends reached the destination, want 1", sends)
	}
	c.effects(in.Key, 0)
}

func throttled(c *check) {
	in := c.intent(intent.Create, 1)
	before := c.before(in, 0)
	c.set(fault.Throttled, "")
	_, sends, err := c.sent(c.request(in, before))
	c.fate(err, "the destination throttled", connectors.FateThrottled)
	var e *connectors.Error
	if errors.As(err, &e) && e.RetryAfter <= 0 && !c.lacks(LacksRetryAfter) {
		c.Error("the destination answered how long to wait; the error does not contain it")
	}
	if sends > 1 {
		c.Errorf("%d sends reached the destination, want 1", sends)
	}
	c.effects(in.Key, 0)
}
