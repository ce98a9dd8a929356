package eval_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
)

const collateralChecks = head + `run:
  effects:
    - {destination: orders, kind: order, key: {order_id: A-1}, expect: {amount_cents: 200}}
    - {destination: orders, kind: order, key: {order_id: A-3}, count: 0}
checks:
  collateral:
    snapshot: before.jsonl
    scopes: [{destination: orders, kind: order}]
`

// snapshot is made before there are outcomes, or a snapshot.
func (s *stage) snapshot(out *bytes.Buffer) error {
	s.Helper()
	f, err := eval.LoadBefore(s.write("checks.yaml", collateralChecks+"outcomes: outcomes.jsonl\nrates: {writes: writes.json}\nopinions: [o.jsonl]\n"))
	if err != nil {
		s.Fatal(err)
	}
	return eval.Snapshot(s.Context(), f, s.registry(), out)
}

func TestCollateral(t *testing.T) {
	edit := func(fields intent.Fields) func(*stage, map[string]orders.Order) {
		return func(s *stage, was map[string]orders.Order) {
			if _, err := s.world.Edit(was["A-1"].ID, fields); err != nil {
				s.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		run    func(*stage, map[string]orders.Order)
		want   string
		says   []string
		reason string
	}{
		"only what was asked for": {edit(intent.Fields{"amount_cents": json.Number("200")}), "collateral pass", nil, "updated_at changes by itself"},
		"another field too": {edit(intent.Fields{"amount_cents": json.Number("200"), "note": "gone"}), "collateral fail",
			[]string{`{"order_id":"A-1"}: /note`}, "the note was not declared"},
		"another record": {func(s *stage, was map[string]orders.Order) {
			edit(intent.Fields{"amount_cents": json.Number("200")})(s, was)
			if _, err := s.world.Edit(was["A-2"].ID, intent.Fields{"amount_cents": json.Number("7")}); err != nil {
				s.Fatal(err)
			}
		}, "collateral fail", []string{"orders/order ord_000002: /amount_cents is 7, want 100"}, "that was not declared"},
		"a record is gone": {func(s *stage, was map[string]orders.Order) {
			edit(intent.Fields{"amount_cents": json.Number("200")})(s, was)
			if err := s.world.Remove(was["A-2"].ID); err != nil {
				s.Fatal(err)
			}
		}, "collateral fail", []string{"it was there before, and is gone"}, "that was not declared"},
		"a record is gone, as declared": {func(s *stage, was map[string]orders.Order) {
			if err := s.world.Remove(was["A-3"].ID); err != nil {
				s.Fatal(err)
			}
		}, "collateral pass", nil, "that one was to go"},
		"lists fail": {func(s *stage, _ map[string]orders.Order) {
			if err := s.world.Set(orders.Fault{Kind: orders.UnreadableRead, Skip: 2}); err != nil {
				s.Fatal(err)
			}
		}, "collateral not-checked", nil, "what is gone is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				was := map[string]orders.Order{}
				for _, id := range []string{"A-1", "A-2", "A-3"} {
					was[id] = s.there(id, 100, "")
				}
				var out bytes.Buffer
				if err := s.snapshot(&out); err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(out.String(), "\n"); n != 4 {
					t.Errorf("the snapshot has %d lines, want a head and 3 records:\n%s", n, &out)
				}
				s.write("before.jsonl", out.String())
				<-time.After(time.Minute)
				c.run(s, was)
				r := s.eval(collateralChecks)
				if results(r) != c.want {
					t.Errorf("%s, want %s: %s\n%s", results(r), c.want, c.reason, r.Text())
				}
				says(t, r, c.says...)
			})
		})
	}
}

// TestUnchanged: without a snapshot an effect may declare the unchanged fields.
func TestUnchanged(t *testing.T) {
	for status, want := range map[string]string{"open": "collateral pass", "closed": "collateral fail"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			o := s.there("A-1", 100, "")
			if _, err := s.world.Edit(o.ID, intent.Fields{"status": status}); err != nil {
				t.Fatal(err)
			}
			r := s.eval(head + "run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}, unchanged: {status: open}}]}\nchecks: {collateral: {}}\n")
			if results(r) != want {
				t.Errorf("%s: %s, want %s", status, results(r), want)
			}
		})
	}
}

// TestHalfASnapshot: what cannot be read makes none.
func TestHalfASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		if err := s.world.Set(orders.Fault{Kind: orders.UnreadableRead}); err != nil {
			t.Fatal(err)
		}
		if err := s.snapshot(new(bytes.Buffer)); err == nil {
			t.Error("a snapshot of what cannot be read")
		}
	})
}

// TestCollateralOfWrites: only what a possibly made write names may change, and only a delete may
// remove a record.
func TestCollateralOfWrites(t *testing.T) {
	edited := func(s *stage, o orders.Order) {
		if _, err := s.world.Edit(o.ID, intent.Fields{"amount_cents": json.Number("200")}); err != nil {
			s.Fatal(err)
		}
	}
	removed := func(s *stage, o orders.Order) {
		if err := s.world.Remove(o.ID); err != nil {
			s.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		write             intent.WriteType
		state, settlement string
		run               func(*stage, orders.Order)
		want, reason      string
	}{
		"an update":                      {intent.Update, "settled", "verified", edited, "collateral pass", "it asked for that"},
		"an update that waits":           {intent.Update, "review", "", edited, "collateral pass", "it may have been made"},
		"an update that was denied":      {intent.Update, "settled", "denied", edited, "collateral fail", "that was not to be changed"},
		"an update that waits, and gone": {intent.Update, "review", "", removed, "collateral fail", "an update takes nothing away"},
		"a create that waits, and gone":  {intent.Create, "review", "", removed, "collateral fail", "a create takes nothing away"},
		"a delete":                       {intent.Delete, "settled", "verified", removed, "collateral pass", "it asked for that"},
		"a delete that was denied":       {intent.Delete, "settled", "denied", removed, "collateral fail", "that was not to be removed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				o := s.there("A-1", 100, "")
				s.there("A-2", 100, "")
				const checks = head + "workflow: {name: wf, writes: writes.json}\nchecks: {collateral: {snapshot: before.jsonl, scopes: [{destination: orders, kind: order}]}}\n"
				f, err := eval.LoadBefore(s.write("checks.yaml", checks))
				var out bytes.Buffer
				if err != nil || eval.Snapshot(t.Context(), f, s.registry(), &out) != nil {
					t.Fatal(err)
				}
				s.write("before.jsonl", out.String())
				in := declared(c.write, "A-1", 0)
				if c.write == intent.Update {
					in.Expect = intent.Fields{"amount_cents": json.Number("200")}
				}
				s.write("writes.json", exportLine(t, in, c.state, c.settlement, 0))
				c.run(s, o)
				if r := s.eval(checks); results(r) != c.want {
					t.Errorf("%s, want %s: %s\n%s", results(r), c.want, c.reason, r.Text())
				}
			})
		})
	}
}

// TestUnknownCollateral: a record that was updated and is not in the snapshot had an
// unknown earlier state; one that is in it and was made again under its key is gone.
func TestUnknownCollateral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		s.there("A-1", 100, "")
		s.write("before.jsonl", `{"snapshot":1,"evaluation":"test","taken":"2000-01-01T00:00:00Z"}`)
		s.write("writes.json", exportLine(t, declared(intent.Update, "A-1", 0), "settled", "verified", 0))
		r := s.eval(head + "workflow: {name: wf, writes: writes.json}\nchecks: {collateral: {snapshot: before.jsonl}}\n")
		if results(r) != "collateral not-checked" {
			t.Errorf("an update of an unknown record: %s\n%s", results(r), r.Text())
		}

		const checks = two + "checks: {collateral: {snapshot: before.jsonl}}\n"
		s.there("A-2", 100, "")
		f, err := eval.LoadBefore(s.write("checks.yaml", checks))
		var out bytes.Buffer
		if err != nil || eval.Snapshot(t.Context(), f, s.registry(), &out) != nil {
			t.Fatal(err)
		}
		s.write("before.jsonl", out.String())
		if r := s.eval(checks); results(r) != "collateral pass" {
			t.Errorf("nothing changed: %s\n%s", results(r), r.Text())
		}
		if err := s.world.Remove(s.world.Records("A-2")[0].ID); err != nil {
			t.Fatal(err)
		}
		s.there("A-2", 100, "")
		if r := s.eval(checks); results(r) != "collateral fail" {
			t.Errorf("a record was taken away and made anew: %s\n%s", results(r), r.Text())
		}
		s.write("before.jsonl", "")
		if _, err := eval.Load(s.write("checks.yaml", checks)); err == nil {
			t.Error("an empty file is taken for a snapshot")
		}
	})
}
