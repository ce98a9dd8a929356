package rest_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/verifytest"
	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/verify"
)

// api is a declaration on the fake of its API.
type api struct {
	fake       *fakerest.Fake
	name, kind string
	trap       bool   // the declaration is test data, not a shipped one
	collection string // of the fake
	list       string // the path of the lookup, to which the faults of reads apply
	lookups    int    // how many requests of that path one read makes; default 1
	options    rest.Options

	// intent and near are those of a fixture.
	intent func(w intent.WriteType, n int) intent.WriteIntent
	near   func(n int) []intent.WriteIntent
	// record is the stored record, as the declaration should show it; false: it should not be
	// found.
	record func(o fakerest.Object) (connectors.Record, bool)
	// put stores a record as another actor would, alter changes one.
	put   func(fields intent.Fields, stamp string) error
	alter func(o fakerest.Object, fields intent.Fields) error
	traits
	// unlisted is why there is no list of all records.
	unlisted string
	// change is another actor's change, besides what the intents name.
	change intent.Fields
	// names are those of the account, by the fake's; see renamed.
	names map[string]string
}

// traits are what the suite of connectors must know of an API.
type traits struct {
	// first is the path of the first of two calls that are one write: it meets no fault.
	first string
	// spoils is the member of an object, with dots, that is not stored, or stored otherwise, and refusal
	// the form of a refusal that says so. Default the fake's.
	spoils, refusal string
	// renews means that a read which is answered with 401 is made again after a new login.
	renews bool
	// lacks is what the API cannot have or does not do, and why.
	lacks map[string]string
}

func secrets(of map[string]string) map[string]func(context.Context) (string, error) {
	all := map[string]func(context.Context) (string, error){}
	for name, value := range of {
		all[name] = func(context.Context) (string, error) { return value, nil }
	}
	return all
}

// loadedOnce are the declarations that tests have loaded: thousands of lives
// need the same few.
var loadedOnce sync.Map

func loadOnce(t *testing.T, name string, load func() (*rest.Declaration, error)) *rest.Declaration {
	t.Helper()
	if d, ok := loadedOnce.Load(name); ok {
		return d.(*rest.Declaration)
	}
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	loadedOnce.Store(name, d)
	return d
}

// declaration loads a shipped declaration, or test data where it is a trap.
func declaration(t *testing.T, name string, trap bool) *rest.Declaration {
	t.Helper()
	if !trap {
		return shippedDeclaration(t, name)
	}
	return loadOnce(t, "trap "+name, func() (*rest.Declaration, error) {
		text, err := os.ReadFile(filepath.Join("testdata", "traps", name+".yaml"))
		if err != nil {
			return nil, err
		}
		return rest.Load(text, name+".yaml")
	})
}

func shippedDeclaration(t *testing.T, name string) *rest.Declaration {
	t.Helper()
	return loadOnce(t, name, func() (*rest.Declaration, error) { return rest.ShippedDeclaration(name) })
}

// connector loads the declaration and connects it with the fake.
func (a api) connector(t *testing.T) (*rest.Connector, connectors.Profile) {
	t.Helper()
	d := declaration(t, a.name, a.trap)
	o := a.options
	o.Transport = renamed{a.names, a.fake.Transport()}
	c, err := rest.New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := c.Profiles()[a.kind]
	if !ok {
		t.Fatalf("the declaration %s has no kind %s", a.name, a.kind)
	}
	return c, p
}

// under lists the records under a key.
func (a api) under(key intent.Fields) []connectors.Record {
	var found []connectors.Record
	for _, o := range a.fake.Now(a.collection) {
		if r, ok := a.record(o); ok && has(r.Fields, key) {
			found = append(found, r)
		}
	}
	return found
}

func has(f, key intent.Fields) bool {
	for name, want := range key {
		if fmt.Sprint(f[name]) != fmt.Sprint(want) {
			return false
		}
	}
	return true
}

func (a api) effects(key intent.Fields) int {
	n := 0
	for _, e := range a.fake.Effects() {
		before, was := a.record(e.Before)
		after, is := a.record(e.After)
		if e.By == fault.ByRequest && e.Collection == a.collection && (was && has(before.Fields, key) || is && has(after.Fields, key)) {
			n++
		}
	}
	return n
}

// object is the one record under a key, as the API has it.
func (a api) object(key intent.Fields) fakerest.Object {
	for _, o := range a.fake.Now(a.collection) {
		if r, ok := a.record(o); ok && has(r.Fields, key) {
			return o
		}
	}
	return nil
}

func (a api) fixture(t *testing.T) *connectortest.Fixture {
	c, p := a.connector(t)
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	return &connectortest.Fixture{
		Connector: c, Profile: p, Intent: a.intent, Near: a.near, Unlisted: a.unlisted,
		Set: func(v fault.Kind, how string) error {
			f := fault.Fault{Kind: v, Times: 1, How: how}
			switch v {
			case fault.DroppedField, fault.NormalisedField:
				f.Field = a.spoils
			case fault.Refused:
				f.How = a.refusal
			}
			if v == fault.LaggingRead || v == fault.UnreadableRead || v == fault.HangingRead {
				f.Key = a.list
			}
			if v == fault.LaggingRead {
				f.Times = max(a.lookups, 1) // all of them come from the same replica
			}
			if a.first != "" {
				f.Match = func(r fault.Request) bool { return r.Key != a.first }
			}
			return a.fake.Set(f)
		},
		Seed:   func(in intent.WriteIntent) { must(a.put(merged(in), "")) },
		Change: func(key intent.Fields) { must(a.alter(a.object(key), a.change)) },
		Put:    a.put,
		Alter: func(key, fields intent.Fields) error {
			o := a.object(key)
			if o == nil {
				return fmt.Errorf("no record under %v", key)
			}
			return a.alter(o, fields)
		},
		Records: a.under, Effects: a.effects,
		Sends: a.sends,
		Same:  sameAs(p),
	}
}

// sends is how many writes arrived: two calls that are one write count once.
func (a api) sends() (n int) {
	for _, call := range a.fake.Calls() {
		if call.Write && call.Path != a.first {
			n++
		}
	}
	return n
}

func merged(in intent.WriteIntent) intent.Fields {
	all := intent.Fields{}
	for _, part := range []intent.Fields{in.Payload, in.Expect, in.Key} {
		for name, v := range part {
			all[name] = v
		}
	}
	return all
}

// sameAs compares as the profile does; missing, null and empty are equal for these APIs, which
// always show every field.
func sameAs(p connectors.Profile) func(string, any, any) bool {
	return func(field string, want, got any) bool {
		if nothing(want) || nothing(got) {
			return nothing(want) && nothing(got)
		}
		w := intent.WriteIntent{Expect: intent.Fields{field: want}}
		return len(verify.Diff(w, p.Compare, intent.Fields{field: got})) == 0
	}
}

func nothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case bool, map[string]any, fmt.Stringer:
		return false
	}
	return true // the suite's own word for a field that is not there
}

// suite is the harness of the conformance suite.
func suite(open func() api, writes ...intent.WriteType) connectortest.Harness {
	lacks := map[string]string{
		connectortest.LacksNullField: "the API shows every field, null where it was not written",
	}
	for name, reason := range open().lacks {
		lacks[name] = reason
	}
	return connectortest.Harness{
		Writes: writes,
		Open:   func(t *testing.T) *connectortest.Fixture { return open().fixture(t) },
		Lacks:  lacks,
		Variants: map[fault.Kind][]string{
			fault.UnreadableRead: fakerest.Forms[fault.UnreadableRead], fault.BadGateway: fakerest.Forms[fault.BadGateway],
		},
	}
}

// answer runs one write against a misbehaving fake, and returns the result.
func (a api) send(t *testing.T, c connectors.Connector, in intent.WriteIntent, attempt int) (connectors.Receipt, error) {
	t.Helper()
	in = whole(a, in)
	r := connectors.Request{
		Intent: in, Stamp: in.Stamp(), Attempt: attempt,
		IdempotencyKey: intent.SendKey(in.StructuralKey(), 1), Before: &connectors.Observation{},
	}
	if in.Write != intent.Create {
		o, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
		if err != nil {
			t.Fatal(err)
		}
		r.Before = &o
	}
	return c.Write(t.Context(), r)
}

// whole gives an intent an origin.
func whole(a api, in intent.WriteIntent) intent.WriteIntent {
	in.Tenant, in.Workflow, in.Tool = "acme", "wf-1", cmp.Or(in.Tool, "tool-"+string(in.Write))
	in.Destination = cmp.Or(in.Destination, a.name)
	in.Kind = a.kind
	return in
}

func (a api) query(in intent.WriteIntent, ref string) connectors.Query {
	in = whole(a, in)
	return connectors.Query{Intent: in, Stamp: in.Stamp(), Ref: ref}
}

// declared checks every shipped declaration: it loads, each topic of its sheet has a source, and
// it can be probed.
func declared(t *testing.T, a api) {
	t.Helper()
	c, _ := a.connector(t)
	if err := c.Probe(t.Context()); err != nil {
		t.Errorf("the probe fails on a destination that is well: %v", err)
	}
	i := slices.IndexFunc(rest.Sheets(), func(s connectors.Sheet) bool {
		return s.Profile.Kind == a.kind && s.Name == a.name || s.Name == a.name+"-"+a.kind
	})
	if i < 0 {
		t.Fatalf("no sheet of %s", a.name)
	}
	about := map[connectors.Topic]bool{}
	for _, claim := range rest.Sheets()[i].Claims {
		about[claim.About] = true
		if claim.Source == "" || claim.Says == "" {
			t.Errorf("a claim about %s without words or source", claim.About)
		}
	}
	for _, topic := range connectors.Topics() {
		if !about[topic] {
			t.Errorf("no claim about %s", topic)
		}
	}
}

// audit has the verifier judge wrong states and legitimate differences.
func audit(t *testing.T, h connectortest.Harness, legitimate ...verifytest.Difference) {
	t.Helper()
	verifytest.Audit(t, verifytest.Harness{Suite: h, Legitimate: legitimate})
}

// judge reads a write back and judges what is seen, as of the time when the
// settle time has passed.
func (a api) judge(t *testing.T, c connectors.Connector, p connectors.Profile, in intent.WriteIntent) verify.Judgement {
	t.Helper()
	o, err := c.Read(t.Context(), a.query(in, ""))
	if err != nil {
		t.Fatal(err)
	}
	settle, _ := p.Settle.Declared()
	in = whole(a, in)
	return verify.Judge(verify.Case{
		Intent: in, Profile: p, Stamp: in.Stamp(), Before: &connectors.Observation{}, Seen: o, Since: settle + time.Second,
	})
}
