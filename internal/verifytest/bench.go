package verifytest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/verify"
)

const (
	// pause is the time between two checks for an expected event.
	pause = 20 * time.Millisecond
	// calm is the time in a bubble between two writes where a replica must show the first:
	// longer than any lag.
	calm = 10 * time.Minute
)

// bench is one running scenario.
type bench struct {
	*testing.T
	suite    connectortest.Harness
	f        *connectortest.Fixture
	scenario scenario
	verifier verifier
	report   *report
	run      string // makes origins, and so stamps, unique to this run
}

func newBench(t *testing.T, suite connectortest.Harness, s scenario, v verifier, r *report) *bench {
	return &bench{T: t, suite: suite, f: suite.Open(t), scenario: s, verifier: v, report: r, run: rand.Text()}
}

// intent returns a good intent on record n, with an origin.
func (b *bench) intent(w intent.WriteType, n int) intent.WriteIntent {
	in := b.f.Intent(w, n)
	in.Tenant = cmp.Or(in.Tenant, "verifytest")
	in.Destination = cmp.Or(in.Destination, b.f.Profile.Destination, "under-audit")
	if in.Workflow == "" {
		in.Workflow, in.Tool, in.Call = b.run, "verifytest-"+string(w), n
	}
	return in
}

// by returns an intent with the origin, and so the stamp, of another.
func by(owner, in intent.WriteIntent) intent.WriteIntent {
	in.Tenant, in.Workflow, in.Step, in.Tool, in.Call = owner.Tenant, owner.Workflow, owner.Step, owner.Tool, owner.Call
	return in
}

// anothers returns the same intent of another tenant.
func anothers(in intent.WriteIntent) intent.WriteIntent {
	in.Tenant = "another-tenant"
	return in
}

// write sends as the engine does, each time with its own key so that a destination that
// deduplicates does not. A refused write makes no state: its error says why.
func (b *bench) write(in intent.WriteIntent, before *connectors.Observation) error {
	r := connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1, FirstSent: time.Now(), IdempotencyKey: rand.Text()}
	prepared, err := verify.Prepare(b.Context(), b.f.Connector, b.f.Profile, r)
	if err != nil {
		return err
	}
	r.Before, r.Prepared = before, prepared
	r.Keep = func(context.Context, []byte) error { return nil } // it is sent once
	return verify.Send(b.Context(), b.f.Connector, b.f.Profile, r).Err
}

// must writes and fails the test if the destination refuses.
func (b *bench) must(in intent.WriteIntent, before *connectors.Observation) {
	b.Helper()
	if err := b.write(in, before); err != nil {
		b.Fatalf("write %s: %v; nothing was wrong with it", in.Write, err)
	}
}

// seed creates a record, through the connector or, where that cannot write it, through the
// fixture. It reports whether the record is there.
func (b *bench) seed(in intent.WriteIntent, stamp string) bool {
	b.Helper()
	there := len(b.f.Records(in.Key))
	err := errors.New("a record without a stamp is not written by the connector")
	if stamp == in.Stamp() {
		if err = b.write(in, &connectors.Observation{Strength: connectors.Strong, At: time.Now()}); err == nil {
			return b.grew(in, there)
		}
	}
	if b.f.Put == nil {
		b.unseeded(err)
		return false
	}
	if err := b.f.Put(together(in), stamp); err != nil {
		b.unseeded(err)
		return false
	}
	return b.grew(in, there)
}

// grew waits for one more record under a key.
func (b *bench) grew(in intent.WriteIntent, there int) bool {
	b.Helper()
	if b.until(func() bool { return len(b.f.Records(in.Key)) > there }) {
		return true
	}
	b.unseeded(fmt.Errorf("the destination took the write and has no further record under the key"))
	return false
}

// together returns everything that a create would store.
func together(in intent.WriteIntent) intent.Fields {
	all := intent.Fields{}
	for _, part := range []intent.Fields{in.Payload, in.Expect, in.Key} {
		for name, v := range part {
			all[name] = v
		}
	}
	return all
}

func (b *bench) unseeded(err error) {
	b.report.unseeded = append(b.report.unseeded, fmt.Sprintf("%s: %v", b.scenario, err))
}

// set switches a fault on, and reports one that cannot be.
func (b *bench) set(v fault.Kind, variant string) bool {
	if b.f.Set == nil {
		b.unseeded(fmt.Errorf("the fixture has no Set for %s", v))
		return false
	}
	if err := b.f.Set(v, variant); err != nil {
		b.unseeded(err)
		return false
	}
	return true
}

func query(in intent.WriteIntent) connectors.Query {
	return connectors.Query{Intent: in, Stamp: in.Stamp()}
}

// see reads until there are so many records.
func (b *bench) see(in intent.WriteIntent, records int) connectors.Observation {
	b.Helper()
	var o connectors.Observation
	var err error
	if !b.until(func() bool {
		o, err = verify.Read(b.Context(), b.f.Connector, b.f.Profile, query(in))
		return err == nil && len(o.Records) == records
	}) {
		b.Fatalf("after %v the read finds %d records (%v), want %d", b.suite.Patience, len(o.Records), err, records)
	}
	return o
}

// until waits for a condition, and reports whether it was met.
func (b *bench) until(there func() bool) bool {
	for end := time.Now().Add(b.suite.Patience); ; <-time.After(pause) {
		if there() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// calm lets replicas catch up, where time is free.
func (b *bench) calm() {
	if !b.suite.RealTime {
		<-time.After(calm)
	}
}

// prepared creates what a write type needs, and returns the intent and the read before it. An
// upsert is prepared to change an existing record.
func (b *bench) prepared(w intent.WriteType, n int) (intent.WriteIntent, *connectors.Observation) {
	b.Helper()
	in := b.intent(w, n)
	if w == intent.Create {
		none := b.see(in, 0)
		return in, &none
	}
	made := b.intent(intent.Create, n)
	none := b.see(made, 0)
	b.must(made, &none)
	b.shows(made)
	b.calm() // so that the destination's own dates change
	before := b.see(in, 1)
	return in, &before
}

// shows reads until the read shows the records under the key as the store has them.
func (b *bench) shows(in intent.WriteIntent) connectors.Observation {
	b.Helper()
	var o connectors.Observation
	var err error
	if !b.until(func() bool {
		o, err = verify.Read(b.Context(), b.f.Connector, b.f.Profile, query(in))
		return err == nil && b.likeStore(in, o)
	}) {
		b.Fatalf("after %v the read shows %s (%v), and the store has %s", b.suite.Patience, shown(o), err, shown(connectors.Observation{Records: b.f.Records(in.Key)}))
	}
	return o
}

// likeStore reports whether a read shows the records under the key as the store has them. Of
// fields that only one side knows, only those that a create writes count.
func (b *bench) likeStore(in intent.WriteIntent, o connectors.Observation) bool {
	written := b.f.Intent(intent.Create, 1)
	stored := b.f.Records(in.Key)
	for _, s := range stored {
		i := slices.IndexFunc(o.Records, func(r connectors.Record) bool { return r.Ref == s.Ref })
		if i < 0 {
			return false
		}
		read := o.Records[i].Fields
		count := func(name string) bool {
			_, w := written.Expect[name]
			_, r := read[name]
			_, t := s.Fields[name]
			return w || r && t
		}
		if len(b.f.Changed(intent.WriteIntent{}, only(s.Fields, count), only(read, count))) > 0 {
			return false
		}
	}
	under := 0
	for _, r := range o.Records {
		if len(b.f.Differing(in.Key, r.Fields)) == 0 {
			under++
		}
	}
	return under == len(stored)
}

func only(f intent.Fields, count func(name string) bool) intent.Fields {
	some := intent.Fields{}
	for name, v := range f {
		if count(name) {
			some[name] = v
		}
	}
	return some
}
