package connectortest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// WriteOnlyHarness gives the suite access to a destination at which nothing can be read
// ([connectors.Profile.WriteOnly]). The suite tests that a send is made once, that its error says
// what is known and no more, and that copies under one key are recognised where the profile says
// so.
type WriteOnlyHarness struct {
	// Open returns a destination that took nothing, once for each check. It runs
	// in the check's bubble. Required.
	Open func(t *testing.T) *WriteOnlyFixture
	// Lacks declares, by fault, what the destination cannot have, and the reason.
	// Default nothing. Only the faults of a write count.
	Lacks map[fault.Kind]string
}

// WriteOnlyFixture is one open destination. All of it is required.
type WriteOnlyFixture struct {
	Connector connectors.Connector
	Profile   connectors.Profile
	// Intent returns a good intent of the first of the profile's write types, or
	// a create; one n always the same, two n two.
	Intent func(n int) intent.WriteIntent
	// Set switches a fault on for the next write, and only for that one.
	Set func(v fault.Kind) error
	// Sends returns how many writes reached the destination, Effects how many of
	// them it took for new.
	Sends, Effects func() int
}

// RunWriteOnly runs the suite.
func RunWriteOnly(t *testing.T, h WriteOnlyHarness) {
	if h.Open == nil {
		t.Fatal("harness: Open is required")
	}
	for name, do := range map[string]func(*writeOnlyCheck){
		"profile": writeOnlyProfile, "read": writeOnlyRead, "answered": writeOnlyAnswered, "concurrent": writeOnlyConcurrent, "copies": writeOnlyCopies,
	} {
		t.Run(name, func(t *testing.T) { h.run(t, do) })
	}
	for _, v := range writeOnlyFaults {
		t.Run(string(v.kind), func(t *testing.T) {
			if reason, ok := h.Lacks[v.kind]; ok {
				t.Logf("not checked, declared: no %s: %s", v.kind, reason)
				return
			}
			h.run(t, func(c *writeOnlyCheck) { writeOnlyFault(c, v) })
		})
	}
}

// writeOnlyFaults are the faults of a write, what a connector must return for each, and the resulting
// number of sends and effects.
var writeOnlyFaults = []writeOnlyCase{
	{fault.LostAnswer, connectors.FateUnknown, 1, 1},
	{fault.DroppedBefore, connectors.FateUnknown, 1, 0},
	{fault.BadGateway, connectors.FateUnknown, 1, 1},
	{fault.LateCommit, connectors.FateUnknown, 1, 1},
	{fault.PhantomSuccess, connectors.FateAnswered, 1, 0},
	{fault.Unreachable, connectors.FateNotSent, 0, 0},
	{fault.Refused, connectors.FateRefused, 1, 0},
	{fault.Throttled, connectors.FateThrottled, 1, 0},
}

type writeOnlyCase struct {
	kind           fault.Kind
	want           connectors.Fate
	sends, effects int
}

type writeOnlyCheck struct {
	*testing.T
	f *WriteOnlyFixture
}

func (h WriteOnlyHarness) run(t *testing.T, do func(*writeOnlyCheck)) {
	synctest.Test(t, func(t *testing.T) {
		f := h.Open(t)
		if f.Connector == nil || f.Intent == nil || f.Set == nil || f.Sends == nil || f.Effects == nil {
			t.Fatal("harness: the fixture is not whole")
		}
		do(&writeOnlyCheck{t, f})
	})
}

// request is a send of message n as the engine makes it.
func (c *writeOnlyCheck) request(n int) connectors.Request {
	c.Helper()
	in := c.f.Intent(n)
	if in.Workflow == "" {
		in.Workflow, in.Tool, in.Call = "connectortest", "connectortest", n
	}
	r := connectors.Request{Intent: in, Stamp: in.Stamp(), IdempotencyKey: intent.SendKey(in.StructuralKey(), 0)}
	if checker, ok := c.f.Connector.(connectors.Checker); ok {
		if err := checker.Check(in); err != nil {
			c.Fatalf("check: %v; nothing was wrong with it", err)
		}
	}
	if p, ok := c.f.Connector.(connectors.Preparer); ok {
		prepared, err := p.Prepare(c.Context(), r)
		if err != nil {
			c.Fatalf("prepare: %v; nothing was wrong with it", err)
		}
		r.Prepared = prepared
	}
	r.Attempt = 1
	return r
}

// counted compares what reached the destination with what should have.
func (c *writeOnlyCheck) counted(sends, effects int) {
	c.Helper()
	<-time.After(bubblePatience) // what is late has come
	synctest.Wait()
	if s, e := c.f.Sends(), c.f.Effects(); s != sends || e != effects {
		c.Errorf("%d sends and %d effects, want %d and %d", s, e, sends, effects)
	}
}

func writeOnlyProfile(c *writeOnlyCheck) {
	if !c.f.Profile.WriteOnly {
		c.Error("the profile does not say that it is write-only; run the other suite")
	}
	if err := c.f.Profile.Valid(); err != nil {
		c.Error(err)
	}
}

// writeOnlyRead: a read that finds nothing would be a lie.
func writeOnlyRead(c *writeOnlyCheck) {
	r := c.request(1)
	if _, err := c.f.Connector.Write(c.Context(), r); err != nil {
		c.Fatal(err)
	}
	if o, err := c.f.Connector.Read(c.Context(), connectors.Query{Intent: r.Intent, Stamp: r.Stamp}); err == nil {
		c.Errorf("a read of what cannot be read finds %d records and no error", len(o.Records))
	}
}

func writeOnlyAnswered(c *writeOnlyCheck) {
	for n := range 3 {
		if _, err := c.f.Connector.Write(c.Context(), c.request(n)); err != nil {
			c.Errorf("message %d: %v; nothing was wrong with it", n, err)
		}
	}
	c.counted(3, 3)
}

func writeOnlyConcurrent(c *writeOnlyCheck) {
	var wg sync.WaitGroup
	for n := range 16 {
		r := c.request(n)
		wg.Go(func() {
			if _, err := c.f.Connector.Write(c.Context(), r); err != nil {
				c.Errorf("message %d: %v; nothing was wrong with it", n, err)
			}
		})
	}
	wg.Wait()
	c.counted(16, 16)
}

// writeOnlyCopies: the destination treats copies as the profile says, also after a lost response.
func writeOnlyCopies(c *writeOnlyCheck) {
	r := c.request(1)
	if c.f.Profile.NativeWindow[r.Intent.Write] <= 0 {
		c.Log("the profile says that copies are not distinguished")
		return
	}
	if err := c.f.Set(fault.LostAnswer); err != nil {
		c.Fatal(err)
	}
	for attempt := range 3 {
		r.Attempt = attempt + 1
		if _, err := c.f.Connector.Write(c.Context(), r); attempt > 0 && err != nil {
			c.Errorf("copy %d: %v", attempt, err)
		}
	}
	c.counted(3, 1)
}

func writeOnlyFault(c *writeOnlyCheck, v writeOnlyCase) {
	if err := c.f.Set(v.kind); err != nil {
		c.Fatalf("harness: set %s: %v; a fault that cannot be is declared in Lacks", v.kind, err)
	}
	_, err := c.f.Connector.Write(c.Context(), c.request(1))
	if got := connectors.FateOf(err); got != v.want {
		c.Errorf("the write says %q (%v), want %q", got, err, v.want)
	}
	c.counted(v.sends, v.effects)
	if _, err := c.f.Connector.Write(c.Context(), c.request(2)); err != nil {
		c.Errorf("the next one: %v; nothing was wrong with it", err)
	}
}
