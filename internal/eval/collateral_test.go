package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// roomed is a destination whose orders are in rooms, one list for each, and whose lists may show
// other fields than reads.
type roomed struct {
	*orders.Connector
	hide string // a field that lists do not show
	lose string // a field that reads do not show
}

func (r roomed) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	within := s.Within
	s.Within, s.Each = nil, nil // it is changed as a whole
	l, err := r.Connector.List(ctx, s)
	all := l.Records
	l.Records = nil
	for _, one := range all {
		if room, _ := within["room"].(string); room == "" || strings.HasPrefix(one.Fields["order_id"].(string), room) {
			delete(one.Fields, r.hide)
			l.Records = append(l.Records, one)
		}
	}
	return l, err
}

func (r roomed) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	o, err := r.Connector.Read(ctx, q)
	for _, one := range o.Records {
		delete(one.Fields, r.lose)
	}
	return o, err
}

// collateralOver takes a snapshot, lets something happen, and evaluates.
func (s *stage) collateralOver(c roomed, checks string, run func()) eval.Report {
	s.Helper()
	c.Connector = s.world.Connector()
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		s.Fatal(err)
	}
	f, err := eval.LoadBefore(s.write("checks.yaml", checks))
	if err != nil {
		s.Fatal(err)
	}
	var out bytes.Buffer
	if err := eval.Snapshot(s.Context(), f, &reg, &out); err != nil {
		s.Fatal(err)
	}
	s.write("before.jsonl", out.String())
	<-time.After(time.Minute)
	run()
	r, err := eval.Run(s.Context(), s.load(checks), &reg, eval.Options{})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

const oneOrder = head + "run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}, expect: {amount_cents: 200}}]}\n"

// TestCollateralInRooms: what one list does not show is not gone where another list
// of the same place, or its own read, shows it.
func TestCollateralInRooms(t *testing.T) {
	const scopes = `checks: {collateral: {snapshot: before.jsonl, scopes: [{destination: orders, kind: order, within: {room: A}}, {destination: orders, kind: order, within: {room: B}}]}}`
	for name, c := range map[string]struct {
		checks string
		run    func(s *stage)
		want   string
		reason string
	}{
		"nothing":         {oneOrder + scopes, func(*stage) {}, "collateral pass", "each is in its room"},
		"one gone":        {oneOrder + scopes, func(s *stage) { s.remove("B-1") }, "collateral fail", "no room shows it"},
		"another changed": {oneOrder + scopes, func(s *stage) { s.edit("B-1", intent.Fields{"note": "x"}) }, "collateral fail", "that was not declared"},
		"ours alone": {oneOrder + `checks: {collateral: {snapshot: before.jsonl, scopes: [{destination: orders, kind: order, of: ours}]}}`,
			func(*stage) {}, "collateral pass", "it was read for what is declared, and is in no list of ours"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				s.there("A-1", 100, "")
				s.there("B-1", 100, "")
				if r := s.collateralOver(roomed{}, c.checks, func() { c.run(s) }); results(r) != c.want {
					t.Errorf("%s, want %s: %s\n%s", results(r), c.want, c.reason, r.Text())
				}
			})
		})
	}
}

func (s *stage) edit(id string, fields intent.Fields) {
	s.Helper()
	if _, err := s.world.Edit(s.world.Records(id)[0].ID, fields); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) remove(id string) {
	s.Helper()
	if err := s.world.Remove(s.world.Records(id)[0].ID); err != nil {
		s.Fatal(err)
	}
}

// TestCollateralThatIsUndone: a field that a list showed before and that is gone has changed;
// if the read shows other fields than the list, that is unknown.
func TestCollateralThatIsUndone(t *testing.T) {
	const scopes = `checks: {collateral: {snapshot: before.jsonl, scopes: [{destination: orders, kind: order}]}}`
	const workflow = head + "workflow: {name: wf, writes: writes.json}\n"
	for name, c := range map[string]struct {
		place  roomed
		checks string
		run    func(s *stage)
		want   string
		reason string
	}{
		"as it was":             {roomed{}, workflow + scopes, func(*stage) {}, "collateral pass", "only the amount changed"},
		"the note was removed":  {roomed{}, workflow + scopes, func(s *stage) { s.edit("A-1", intent.Fields{"note": nil}) }, "collateral fail", "that was not declared"},
		"reads show more":       {roomed{hide: "status"}, workflow + scopes, func(*stage) {}, "collateral pass", "lists show fewer fields"},
		"reads show fewer":      {roomed{lose: "note"}, workflow + scopes, func(*stage) {}, "collateral pass", "the list shows it as it was"},
		"reads show fewer, but": {roomed{lose: "note"}, workflow + scopes, func(s *stage) { s.edit("A-1", intent.Fields{"note": "y"}) }, "collateral fail", "the list shows the change"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				s.there("A-1", 100, "")
				s.edit("A-1", intent.Fields{"note": "x"})
				update := declared(intent.Update, "A-1", 0)
				update.Expect = intent.Fields{"amount_cents": json.Number("200")}
				s.write("writes.json", exportLine(t, update, "settled", "verified", 0))
				r := s.collateralOver(c.place, c.checks, func() {
					s.edit("A-1", intent.Fields{"amount_cents": json.Number("200")})
					c.run(s)
				})
				if results(r) != c.want {
					t.Errorf("%s, want %s: %s\n%s", results(r), c.want, c.reason, r.Text())
				}
			})
		})
	}
}

// TestUpsertOfUnknownState: an upsert of a record that no list before the run can
// have shown may have changed anything.
func TestUpsertOfUnknownState(t *testing.T) {
	for scopes, want := range map[string]string{
		"": "collateral not-checked", ", scopes: [{destination: orders, kind: order}]": "collateral pass",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			s.there("B-1", 100, "")
			s.write("writes.json", exportLine(t, declared(intent.Upsert, "A-1", 0), "settled", "verified", 0))
			r := s.collateralOver(roomed{}, head+"workflow: {name: wf, writes: writes.json}\nchecks: {collateral: {snapshot: before.jsonl"+scopes+"}}\n", func() { s.there("A-1", 100, "") })
			if results(r) != want {
				t.Errorf("scopes %q: %s, want %s\n%s", scopes, results(r), want, r.Text())
			}
		})
	}
}
