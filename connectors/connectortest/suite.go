package connectortest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	// Defaults of a harness. In a bubble time is free, so patience outlasts any lag; in real time
	// it outlasts a slow machine.
	bubblePatience    = time.Minute
	realPatience      = 10 * time.Second
	bubbleSendTimeout = time.Second
	realSendTimeout   = 200 * time.Millisecond
	// pause is the time between two reads of something that must come.
	pause = 20 * time.Millisecond
)

// subject is one check, as it is in a table.
type subject struct {
	name  string
	needs []string // faults and Lacks constants without which it makes no sense
	do    func(c *check)
}

// subjects puts all tables together, the checks of faults once for each variant.
func subjects(h Harness) []subject {
	return slices.Concat(
		plainSubjects(h), exactSubjects(), refusalSubjects(), onceSubjects(h),
		conditionSubjects(h), inverseSubjects(h), patienceSubjects(), bulkSubjects(),
		lossSubjects(h), storeSubjects(h), readSubjects(h), listSubjects(h), independentSubjects(),
	)
}

// vicious is the subject of a fault on a write type, for each variant.
func vicious(h Harness, v fault.Kind, w intent.WriteType, do func(c *check, arm func())) []subject {
	variants := h.Variants[v]
	if len(variants) == 0 {
		variants = []string{""}
	}
	var all []subject
	for _, variant := range variants {
		name := fmt.Sprintf("%s/%s", v, cmp.Or(w, "read"))
		if variant != "" {
			name += "/" + variant
		}
		all = append(all, subject{name, []string{string(v)}, func(c *check) {
			do(c, func() { c.set(v, variant) })
		}})
	}
	return all
}

func (h *Harness) defaults(t *testing.T) {
	t.Helper()
	if h.Open == nil || !slices.Contains(h.Writes, intent.Create) {
		t.Fatal("harness: Open and Writes are required, and create must be among Writes")
	}
	known := []string{LacksNear, LacksSeed, LacksChange, LacksSends, LacksNullField, LacksFindStamp, LacksElsewhere,
		LacksReplay, LacksRetryAfter, LacksRemoval, LacksStampUpdate}
	for _, v := range Kinds() {
		known = append(known, string(v))
	}
	for name, reason := range h.Lacks {
		if !slices.Contains(known, name) || reason == "" {
			t.Fatalf("harness: Lacks: %q (%q): want a reason for one of %q", name, reason, known)
		}
	}
	if h.RealTime {
		h.Patience = cmp.Or(h.Patience, realPatience)
		h.SendTimeout = cmp.Or(h.SendTimeout, realSendTimeout)
	}
	h.Patience = cmp.Or(h.Patience, bubblePatience)
	h.SendTimeout = cmp.Or(h.SendTimeout, bubbleSendTimeout)
}

func (h Harness) run(t *testing.T, s subject) {
	for _, need := range s.needs {
		if reason, ok := h.Lacks[need]; ok {
			t.Logf("not checked, declared: no %s: %s", need, reason)
			return
		}
	}
	do := func(t *testing.T) {
		c := &check{T: t, h: h, f: h.Open(t), run: rand.Text()}
		c.whole(s.needs)
		s.do(c)
	}
	if h.RealTime {
		do(t)
		return
	}
	synctest.Test(t, do)
}

// check is one check under way.
type check struct {
	*testing.T
	h   Harness
	f   *Fixture
	run string // makes origins, and so stamps, of this run alone
}

// whole refuses a fixture that lacks what it does not declare to lack.
func (c *check) whole(needs []string) {
	c.Helper()
	f := c.f
	given := map[string]bool{
		LacksNear: f.Near != nil, LacksSeed: f.Seed != nil, LacksChange: f.Change != nil,
		LacksSends: f.Sends != nil, LacksNullField: f.NullField != "",
	}
	for _, need := range needs {
		if ok, part := given[need]; part && !ok {
			c.Fatalf("harness: the fixture has no %s; give it or declare it in Lacks", need)
		}
	}
	if f.Connector == nil || f.Intent == nil || f.Records == nil || f.Effects == nil {
		c.Fatal("harness: Connector, Intent, Records and Effects are required")
	}
}

// lacks reports whether the destination does not do something, and logs why.
func (c *check) lacks(name string) bool {
	reason, ok := c.h.Lacks[name]
	if ok {
		c.Logf("declared: no %s: %s", name, reason)
	}
	return ok
}

func (c *check) set(v fault.Kind, variant string) {
	c.Helper()
	if c.f.Set == nil {
		c.Fatalf("harness: the fixture has no Set; give it or declare every fault in Lacks")
	}
	if err := c.f.Set(v, variant); err != nil {
		c.Fatalf("harness: set %s %q: %v; a fault that cannot be is declared in Lacks", v, variant, err)
	}
}

// intent is a good intent with an origin.
func (c *check) intent(w intent.WriteType, n int) intent.WriteIntent {
	in := c.f.Intent(w, n)
	in.Tenant = cmp.Or(in.Tenant, "connectortest")
	in.Destination = cmp.Or(in.Destination, c.f.Profile.Destination, "under-test")
	if in.Workflow == "" {
		in.Workflow, in.Tool, in.Call = c.run, "connectortest-"+string(w), n
	}
	return in
}

// request is a first send, prepared as the engine does it.
func (c *check) request(in intent.WriteIntent, before *connectors.Observation) connectors.Request {
	c.Helper()
	if checker, ok := c.f.Connector.(connectors.Checker); ok {
		if err := checker.Check(in); err != nil {
			c.Fatalf("check %s: %v; nothing was wrong with it", in.Write, err)
		}
	}
	r, err := c.prepare(in, before)
	if err != nil {
		c.Fatalf("prepare %s: %v; nothing was wrong with it", in.Write, err)
	}
	return r
}

func (c *check) prepare(in intent.WriteIntent, before *connectors.Observation) (r connectors.Request, err error) {
	r = connectors.Request{
		FirstSent: time.Now(),
		Intent:    in, Stamp: in.Stamp(), IdempotencyKey: intent.SendKey(in.StructuralKey(), 1),
	}
	if p, ok := c.f.Connector.(connectors.Preparer); ok {
		r.Prepared, err = p.Prepare(c.Context(), r)
	}
	r.Attempt, r.Before = 1, before
	if r.Prepared == nil {
		kept := &r.Prepared
		r.Keep = func(_ context.Context, prepared []byte) error { *kept = prepared; return nil }
	}
	return r, err
}

func query(in intent.WriteIntent) connectors.Query {
	return connectors.Query{Intent: in, Stamp: in.Stamp()}
}

// write sends and must succeed.
func (c *check) write(in intent.WriteIntent, before *connectors.Observation) connectors.Receipt {
	c.Helper()
	r, err := c.f.Connector.Write(c.Context(), c.request(in, before))
	if err != nil {
		c.Fatalf("write %s: %v; nothing was wrong with it", in.Write, err)
	}
	return r
}

// read reads and must succeed.
func (c *check) read(q connectors.Query) connectors.Observation {
	c.Helper()
	began := time.Now()
	o, err := c.f.Connector.Read(c.Context(), q)
	if err != nil {
		c.Fatalf("read: %v; nothing was wrong with the destination", err)
	}
	if o.At.Before(began) || o.At.After(time.Now()) {
		c.Errorf("the observation is of %v, want the time at which the read began, %v", o.At, began)
	}
	c.entitled(o)
	return o
}

// see reads until there are so many records: reads may lag.
func (c *check) see(q connectors.Query, records int) connectors.Observation {
	c.Helper()
	var o connectors.Observation
	c.until(func() string {
		o = c.read(q)
		if len(o.Records) != records {
			return fmt.Sprintf("the read finds %d records, want %d", len(o.Records), records)
		}
		return ""
	})
	return o
}

// until waits for something that must come.
func (c *check) until(missing func() string) {
	c.Helper()
	end := time.Now().Add(c.h.Patience)
	for {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(end) {
			c.Fatalf("after %v still: %s", c.h.Patience, what)
		}
		<-time.After(pause)
	}
}

// effects waits for the number of effects under a key and sees that no more
// come at once.
func (c *check) effects(key intent.Fields, want int) {
	c.Helper()
	c.until(func() string {
		if got := c.f.Effects(key); got < want {
			return fmt.Sprintf("the destination has %d effects, want %d", got, want)
		}
		return ""
	})
	if got := c.f.Effects(key); got != want {
		c.Errorf("the destination has %d effects, want %d", got, want)
	}
}

// sent runs a write and returns how many sends the destination counted, -1 if
// it cannot count.
func (c *check) sent(r connectors.Request) (connectors.Receipt, int, error) {
	if c.f.Sends == nil {
		receipt, err := c.f.Connector.Write(c.Context(), r)
		return receipt, -1, err
	}
	before := c.f.Sends()
	receipt, err := c.f.Connector.Write(c.Context(), r)
	return receipt, c.f.Sends() - before, err
}

// fate compares the fate of an error with what was the case.
func (c *check) fate(err error, why string, want ...connectors.Fate) {
	c.Helper()
	if got := connectors.FateOf(err); !slices.Contains(want, got) {
		c.Errorf("the write says %q (%v), want %q: %s", got, err, want, why)
	}
}

// prepared makes what a write type needs to be there, and returns the intent,
// what a read shows before, and how many effects the destination has then.
func (c *check) prepared(w intent.WriteType, n int) (intent.WriteIntent, *connectors.Observation, int) {
	c.Helper()
	if w == intent.Update || w == intent.Delete {
		in := c.intent(intent.Create, n)
		c.write(in, c.before(in, 0))
		before := c.see(query(in), 1)
		return c.intent(w, n), &before, c.f.Effects(in.Key)
	}
	in := c.intent(w, n)
	return in, c.before(in, 0), c.f.Effects(in.Key)
}

func (c *check) before(in intent.WriteIntent, records int) *connectors.Observation {
	c.Helper()
	o := c.see(query(in), records)
	return &o
}

// left is how many records a write leaves under its key.
func left(w intent.WriteType) int {
	if w == intent.Delete {
		return 0
	}
	return 1
}
