package connectortest

import (
	"fmt"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// crowd is how many writers the concurrency check has: enough to meet on
// every shared variable, few enough for a real mail server.
const crowd = 8

// plainSubjects are about a destination without faults.
func plainSubjects(h Harness) []subject {
	all := []subject{
		{"absent", nil, absentRecord},
		{"stamp/create", nil, stampOnCreate},
		{"stamp/find", []string{LacksFindStamp}, foundByStamp},
		{"foreign", []string{LacksSeed}, foreignRecord},
		{"null", []string{LacksNullField}, nullIsNotAbsent},
		{"read-is-pure", nil, readIsPure},
		{"concurrent", nil, concurrent},
	}
	for _, w := range h.Writes {
		all = append(all, subject{"write/" + string(w), nil, func(c *check) { roundTrip(c, w) }})
		if w == intent.Update {
			all = append(all, subject{"stamp/update", []string{LacksStampUpdate}, stampOnUpdate})
		}
	}
	return all
}

func absentRecord(c *check) {
	in := c.intent(intent.Create, 1)
	c.write(in, c.before(in, 0))
	if o := c.read(query(c.intent(intent.Create, 2))); len(o.Records) != 0 {
		c.Errorf("a key under which nothing was written has %d records", len(o.Records))
	}
}

func roundTrip(c *check, w intent.WriteType) {
	in, before, effects := c.prepared(w, 1)
	receipt := c.write(in, before)
	c.effects(in.Key, effects+1)
	var o connectors.Observation
	c.until(func() string {
		o = c.read(query(in))
		if len(o.Records) != left(w) {
			return fmt.Sprintf("the read finds %d records, want %d", len(o.Records), left(w))
		}
		if w != intent.Delete && len(c.differing(in.Expect, o.Records[0].Fields)) > 0 && o.Strength == connectors.Weak {
			return "the read still shows another state"
		}
		return ""
	})
	c.likeStore(in, o)
	for _, r := range o.Records {
		c.asWanted(in, r)
		if receipt.Ref != "" && receipt.Ref != r.Ref {
			c.Errorf("the receipt is of %q, the record is %q", receipt.Ref, r.Ref)
		}
		if r.Ref == "" {
			c.Error("the record has no Ref; no read could return it")
		}
	}
	if w == intent.Update && len(o.Records) == 1 {
		c.untouched(in, before.Records[0].Fields, o.Records[0].Fields)
	}
	// A read that knows the ref must not find less.
	q := query(in)
	q.Ref = receipt.Ref
	c.see(q, left(w))
}

func stampOnCreate(c *check) {
	in := c.intent(intent.Create, 1)
	c.write(in, c.before(in, 0))
	want := ""
	if c.f.Profile.Stamped {
		want = in.Stamp()
	}
	if got := c.see(query(in), 1).Records[0].Stamp; got != want {
		c.Errorf("the record has the stamp %q, want %q as the profile says", got, want)
	}
}

func stampOnUpdate(c *check) {
	in, before, _ := c.prepared(intent.Update, 1)
	c.write(in, before)
	want := before.Records[0].Stamp
	if c.f.Profile.StampsUpdates {
		want = in.Stamp()
	}
	c.until(func() string {
		if got := c.see(query(in), 1).Records[0].Stamp; got != want {
			return fmt.Sprintf("the record has the stamp %q, want %q as the profile says", got, want)
		}
		return ""
	})
}

func foundByStamp(c *check) {
	if !c.f.Profile.Stamped {
		c.Log("the profile says that records bear no stamp")
		return
	}
	in := c.intent(intent.Create, 1)
	c.write(in, c.before(in, 0))
	other := query(c.intent(intent.Create, 2))
	other.Stamp = in.Stamp()
	o := c.see(other, 1)
	if o.Records[0].Stamp != in.Stamp() {
		c.Errorf("the read by stamp finds a record with the stamp %q, want %q", o.Records[0].Stamp, in.Stamp())
	}
}

func foreignRecord(c *check) {
	in := c.intent(intent.Create, 1)
	c.f.Seed(in)
	o := c.see(query(in), 1)
	c.likeStore(in, o)
	if o.Records[0].Stamp == in.Stamp() {
		c.Error("a record of another actor is shown with our stamp")
	}
}

func nullIsNotAbsent(c *check) {
	with, without := c.intent(intent.Create, 1), c.intent(intent.Create, 2)
	with.Expect[c.f.NullField] = nil
	delete(without.Expect, c.f.NullField)
	for _, in := range []intent.WriteIntent{with, without} {
		c.write(in, c.before(in, 0))
	}
	if v, ok := c.see(query(with), 1).Records[0].Fields[c.f.NullField]; !ok || v != nil {
		c.Errorf("field %q was written as null and is read as %#v (there: %v)", c.f.NullField, v, ok)
	}
	if v, ok := c.see(query(without), 1).Records[0].Fields[c.f.NullField]; ok {
		c.Errorf("field %q was not written and is read as %#v", c.f.NullField, v)
	}
}

func readIsPure(c *check) {
	there, not := c.intent(intent.Create, 1), c.intent(intent.Create, 2)
	c.write(there, c.before(there, 0))
	c.see(query(there), 1)
	state := func() []any {
		s := []any{c.f.Records(there.Key), c.f.Records(not.Key), c.f.Effects(there.Key), c.f.Effects(not.Key)}
		if c.f.Sends != nil {
			s = append(s, c.f.Sends())
		}
		return s
	}
	before := state()
	first := c.read(query(there))
	c.read(query(not))
	second := c.read(query(there))
	if d := gocmp.Diff(before, state()); d != "" {
		c.Errorf("reading changed the destination (-before +after):\n%s", d)
	}
	if d := gocmp.Diff(first.Records, second.Records); d != "" {
		c.Errorf("two reads of one state differ (-first +second):\n%s", d)
	}
}

func concurrent(c *check) {
	done := make(chan error, crowd)
	for n := range crowd {
		in := c.intent(intent.Create, n)
		go func() {
			none, err := c.f.Connector.Read(c.Context(), query(in))
			if err == nil && len(none.Records) > 0 {
				err = fmt.Errorf("record %d is there before it was written", n)
			}
			if err == nil {
				_, err = c.f.Connector.Write(c.Context(), c.request(in, &none))
			}
			done <- err
		}()
	}
	for range crowd {
		if err := <-done; err != nil {
			c.Errorf("one of %d at a time: %v", crowd, err)
		}
	}
	for n := range crowd {
		in := c.intent(intent.Create, n)
		c.effects(in.Key, 1)
		c.asWanted(in, c.see(query(in), 1).Records[0])
	}
}
