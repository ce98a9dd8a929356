package rest_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// api is the destination as the suite of connectors needs it.
func (d destination) api(name string, f *fakerest.Fake) api {
	name, _, _ = strings.Cut(name, "/")
	a := api{
		fake: f, name: name, kind: d.kind, trap: d.trap, collection: d.collection, traits: d.traits, names: d.names,
		options: rest.Options{Parameters: d.parameters, Secrets: secrets(d.secrets)},
		intent:  d.intent, unlisted: "the declaration names no list of all records",
		record: func(o fakerest.Object) (connectors.Record, bool) {
			if o == nil {
				return connectors.Record{}, false
			}
			return d.record(o)
		},
	}
	seeds := 0
	a.put = func(fields intent.Fields, stamp string) error {
		if d.other == nil || stamp != "" {
			return errors.New("no other actor makes it")
		}
		seeds++
		w := d.intent(intent.Create, seeds)
		w.Expect = fields
		for member := range w.Key {
			w.Key[member] = fields[member]
		}
		d.other(f, w, seeds, true)
		return nil
	}
	a.alter = func(o fakerest.Object, _ intent.Fields) error {
		r, _ := d.record(o)
		for _, e := range slices.Backward(f.Effects()) {
			if now, ok := d.record(e.After); ok && e.Collection == d.collection && now.Ref == r.Ref && f.Edit(d.collection, e.ID, d.alter) {
				return nil
			}
		}
		return fmt.Errorf("no record %q", r.Ref)
	}
	return a
}

// intent is a good intent of a write type on the n-th record.
func (d destination) intent(w intent.WriteType, n int) intent.WriteIntent {
	in := d.create(n)
	in.Kind, in.Write = d.kind, w
	switch w {
	case intent.Update:
		in.Expect, in.Payload = maps.Clone(d.update), nil
	case intent.Delete:
		in.Expect, in.Payload = nil, nil
	}
	return in
}

// suite is the harness of the suite of connectors.
func (d destination) suite(t *testing.T, name string, open func() api) connectortest.Harness {
	_, p := open().connector(t)
	h := suite(open, p.Writes...)
	if !slices.ContainsFunc(p.Reads, func(r connectors.ReadPath) bool {
		return r.By == "stamp" && !slices.ContainsFunc(p.Reads, func(key connectors.ReadPath) bool { return key.By == "key" && key.Path == r.Path })
	}) {
		h.Lacks[connectortest.LacksFindStamp] = "what is read by a stamp is read by the key as well, if at all"
	}
	if d.renews {
		t.Log("not checked: a read that is answered with 401: it is made again after a new login")
		h.Variants[fault.UnreadableRead] = slices.DeleteFunc(slices.Clone(h.Variants[fault.UnreadableRead]), func(how string) bool { return how == "401" })
	}
	if d.patience > 0 {
		h.SendTimeout, h.Patience = d.patience, 10*d.patience
	}
	fixture := h.Open
	h.Open = func(t *testing.T) *connectortest.Fixture {
		f := fixture(t)
		<-time.After(time.Minute) // no read lags behind what the fake was opened with
		f.Near = func(n int) []intent.WriteIntent { return d.near(f, name, n) }
		return f
	}
	return h
}

// near are creates of other keys that nearly are that of the n-th record: those that the connector
// takes, and that are not the same to the API.
func (d destination) near(f *connectortest.Fixture, name string, n int) []intent.WriteIntent {
	member := d.member
	own := d.intent(intent.Create, n)
	for only := range own.Key {
		member = cmp.Or(member, only)
	}
	id := fmt.Sprint(own.Key[member])
	near := []string{strings.ToUpper(id), strings.ToLower(id), id[:len(id)-1], id + "0", "x" + id, id + "-", id + ".", id + "%", id + "_", id + "?", "*" + id, id + " ",
		strings.ReplaceAll(id, "-", "_"), strings.ReplaceAll(id, "-", ".")}
	near = slices.DeleteFunc(near, func(id string) bool { return f.Same(member, own.Key[member], id) })
	all := connectortest.Near(d.intent, member, near...)
	return slices.DeleteFunc(all, func(w intent.WriteIntent) bool {
		w.Destination = name
		return f.Connector.(*rest.Connector).Check(w) != nil
	})
}

// TestDestinationsConform runs the suite that every connector must pass on the destinations of the
// campaign.
func TestDestinationsConform(t *testing.T) {
	all := maps.Clone(destinations)
	for name := range traps {
		all[name] = trap(name)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d := all[name]
		if d.connect != nil {
			continue // its package runs the suite
		}
		t.Run(name, func(t *testing.T) {
			open := func() api { return d.api(name, d.open()) }
			if w := d.create(1).Write; w != "" {
				t.Logf("not checked: the suite begins with creates, and this kind has none but %ss", w)
				return
			}
			if d.blind {
				d.writeOnly(t, open)
				return
			}
			connectortest.Run(t, d.suite(t, name, open))
		})
	}
}

// writeOnly runs the suite of what cannot be read.
func (d destination) writeOnly(t *testing.T, open func() api) {
	lacks := map[fault.Kind]string{}
	for name, reason := range d.lacks {
		lacks[fault.Kind(name)] = reason
	}
	connectortest.RunWriteOnly(t, connectortest.WriteOnlyHarness{
		Lacks: lacks,
		Open: func(t *testing.T) *connectortest.WriteOnlyFixture {
			a := open()
			c, p := a.connector(t)
			return &connectortest.WriteOnlyFixture{
				Connector: c, Profile: p, Intent: func(n int) intent.WriteIntent { return d.intent(intent.Create, n) },
				Set:   func(k fault.Kind) error { return a.fake.Set(fault.Fault{Kind: k, Times: 1}) },
				Sends: a.sends, Effects: func() int {
					return len(slices.DeleteFunc(a.fake.Effects(), func(e fakerest.Effect) bool { return e.Collection != a.collection || e.Before != nil }))
				},
			}
		},
	})
}
