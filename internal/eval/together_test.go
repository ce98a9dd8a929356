package eval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// togetherCase is several writes of one record, and what is there of them.
type togetherCase struct {
	options orders.Options
	writes  []togetherWrite
	world   func(s *stage, stamps []string)
	want    string
	reason  string
}

type togetherWrite struct {
	write             intent.WriteType
	amount            string // "" for none
	state, settlement string
}

func togetherCases() map[string]togetherCase {
	plain := orders.Plain.Options()
	updates := plain
	updates.StampUpdates = true
	create := func(amount, state, settlement string) togetherWrite {
		return togetherWrite{intent.Create, amount, state, settlement}
	}
	update := func(amount, state, settlement string) togetherWrite {
		return togetherWrite{intent.Update, amount, state, settlement}
	}
	remove := func(state, settlement string) togetherWrite {
		return togetherWrite{intent.Delete, "", state, settlement}
	}
	is := func(amount int) func(*stage, []string) {
		return func(s *stage, stamps []string) { s.there("A-1", amount, stamps[0]) }
	}
	of := func(which ...int) func(*stage, []string) {
		return func(s *stage, stamps []string) {
			for _, i := range which {
				s.there("A-1", 100, stamps[i])
			}
		}
	}
	return map[string]togetherCase{
		"accepted, then updated, and otherwise": {plain, []togetherWrite{create("100", "settled", "accepted"), update("200", "settled", "verified")}, is(99),
			"exactly pass, verified fail", "the update declared 200, whatever became of the create"},
		"accepted, then updated": {plain, []togetherWrite{create("100", "settled", "accepted"), update("200", "settled", "verified")}, is(200),
			"exactly pass, verified pass", "the update is there"},
		"an update waits, and neither is there": {plain, []togetherWrite{create("100", "settled", "verified"), update("200", "review", "")}, is(99),
			"exactly pass, verified not-checked", "neither wrote 99, and it is unknown which came last"},
		"an update waits, and is there": {plain, []togetherWrite{create("100", "settled", "verified"), update("200", "review", "")}, is(200),
			"exactly pass, verified pass", "either of them is good"},
		"a delete waits, and it has changed": {plain, []togetherWrite{create("100", "settled", "verified"), remove("review", "")}, is(99),
			"exactly pass, verified fail", "it is there, and not as declared"},
		"a delete waits, and it is as it was": {plain, []togetherWrite{create("100", "settled", "verified"), remove("review", "")}, is(100),
			"exactly pass, verified pass", "the delete was not made"},
		"a delete that was not applied, and gone": {updates, []togetherWrite{create("100", "settled", "verified"), remove("settled", "not_applied")}, func(*stage, []string) {},
			"exactly fail, verified fail", "what is claimed not to be deleted is gone"},
		"a delete alone that was not applied, and gone": {updates, []togetherWrite{remove("settled", "not_applied")}, func(*stage, []string) {},
			"exactly pass, verified not-checked", "it is unknown whether it was ever there: a delete leaves no stamp"},
		"a delete that was not applied": {updates, []togetherWrite{create("100", "settled", "verified"), remove("settled", "not_applied")}, of(0),
			"exactly pass, verified pass", "it is there"},
		"one duplicated, the other missing": {plain, []togetherWrite{create("100", "settled", "verified"), create("100", "settled", "verified")}, of(0, 0),
			"exactly fail, verified fail", "two records, and both of the first"},
		"one duplicated, the other waits": {plain, []togetherWrite{create("100", "settled", "verified"), create("100", "review", "")}, of(0, 0),
			"exactly fail, verified fail", "two records, and both of the first"},
		"one of each": {plain, []togetherWrite{create("100", "settled", "verified"), create("100", "settled", "verified")}, of(0, 1),
			"exactly pass, verified pass", "as declared"},
		"the wrong one": {plain, []togetherWrite{create("100", "settled", "not_applied"), create("100", "settled", "verified")}, of(0),
			"exactly fail, verified fail", "what was given up landed, and what was verified is gone"},
		"the one before a delete": {plain, []togetherWrite{create("100", "settled", "verified"), remove("settled", "verified"), create("100", "settled", "verified")}, of(0),
			"exactly fail, verified fail", "the first was to go, and the second is not there"},
		"the one after a delete": {plain, []togetherWrite{create("100", "settled", "verified"), remove("settled", "verified"), create("100", "settled", "verified")}, of(2),
			"exactly pass, verified pass", "as declared"},
		"updated, and another actor's": {plain, []togetherWrite{create("100", "settled", "verified"), update("100", "settled", "verified")}, func(s *stage, _ []string) { s.there("A-1", 100, "") },
			"exactly fail, verified fail", "an update leaves the stamp of the create, and this one has none"},
		"updated, and stamped anew": {updates, []togetherWrite{create("100", "settled", "verified"), update("100", "settled", "verified")}, of(1),
			"exactly pass, verified pass", "the record has the stamp of the update"},
		"undone, and the undoing undone": {plain, []togetherWrite{create("100", "settled", "compensated"), remove("settled", "compensated"), create("100", "settled", "verified")}, of(2),
			"exactly pass, verified pass", "it is there once, as the last of them says"},
		"a create given up, and another actor's updated": {plain, []togetherWrite{create("100", "settled", "not_applied"), update("100", "settled", "verified")}, func(s *stage, _ []string) { s.there("A-1", 100, "") },
			"exactly pass, verified pass", "the record of another one was updated, as declared"},
		"a create waits, and another actor's updated": {plain, []togetherWrite{create("100", "review", ""), update("100", "settled", "verified")}, func(s *stage, _ []string) { s.there("A-1", 100, "") },
			"exactly pass, verified pass", "the same"},
		"an update that was before": {plain, []togetherWrite{update("100", "settled", "verified")}, func(s *stage, _ []string) { s.there("A-1", 100, "") },
			"exactly pass, verified pass", "another actor's record, which was updated"},
	}
}

// TestTogether: the writes of one record are weighed together, and none of them
// hides what became of another.
func TestTogether(t *testing.T) {
	for name, c := range togetherCases() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, c.options)
				var lines, stamps []string
				for i, w := range c.writes {
					in := declared(w.write, "A-1", i)
					if w.amount != "" {
						in.Expect = intent.Fields{"amount_cents": json.Number(w.amount)}
					}
					lines, stamps = append(lines, exportLine(t, in, w.state, w.settlement, i)), append(stamps, in.Stamp())
				}
				c.world(s, stamps)
				s.write("writes.json", strings.Join(lines, "\n"))
				r := s.eval(head + "workflow: {name: wf, writes: writes.json}\nchecks: {exactly: true, verified: true}\n")
				if results(r) != c.want {
					t.Errorf("%s, want %s: %s\n%s", results(r), c.want, c.reason, r.Text())
				}
			})
		})
	}
}

// TestVerifiedThatIsNotShown: a claim about fields that the export hides cannot be
// weighed.
func TestVerifiedThatIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		in := declared(intent.Create, "A-1", 0)
		in.Expect = intent.Fields{"note": "redacted:0123456789abcdef"}
		s.there("A-1", 100, in.Stamp())
		s.write("writes.json", exportLine(t, in, "settled", "verified", 0))
		if r := s.eval(head + "workflow: {name: wf, writes: writes.json}\nchecks: {verified: true}\n"); results(r) != "verified not-checked" {
			t.Errorf("nothing of it was compared: %s\n%s", results(r), r.Text())
		}
	})
}

// TestOneOperationTwice: an idempotency key has the effects of one write, also
// where its writes name one record.
func TestOneOperationTwice(t *testing.T) {
	stampless := orders.Plain.Options()
	stampless.Stamps = false
	for name, c := range map[string]struct {
		keys    [2]string
		want    string
		options orders.Options
	}{
		"the same":               {[2]string{"wire:7", "wire:7"}, "exactly fail", orders.Plain.Options()},
		"the same, no stamps":    {[2]string{"wire:7", "wire:7"}, "exactly fail", stampless},
		"two of them":            {[2]string{"wire:7", "wire:8"}, "exactly pass", orders.Plain.Options()},
		"two of them, no stamps": {[2]string{"wire:7", "wire:8"}, "exactly pass", stampless},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, c.options)
				var lines []string
				for i, key := range c.keys {
					in := declared(intent.Create, "A-1", i)
					in.IdempotencyKey = key
					s.there("A-1", 100, in.Stamp())
					lines = append(lines, exportLine(t, in, "settled", "verified", i))
				}
				s.write("writes.json", strings.Join(lines, "\n"))
				if r := s.eval(head + "workflow: {name: wf, writes: writes.json}\nchecks: {exactly: true}\n"); results(r) != c.want {
					t.Errorf("%s, want %s\n%s", results(r), c.want, r.Text())
				}
			})
		})
	}
}

// TestStampOfAnotherPlace: a record that has the stamp of a write that was declared for another
// destination does not count as declared here.
func TestStampOfAnotherPlace(t *testing.T) {
	const checks = head + "workflow: {name: wf, writes: writes.json}\nchecks: {unaccounted: [{destination: north, kind: order}], undeclared: [{destination: north, kind: order}]}\n"
	for name, c := range map[string]struct {
		declaredFor, workflow, want, reason string
	}{
		"here":                        {"north", "wf", "unaccounted pass, undeclared pass", "as declared"},
		"here, by another workflow":   {"north", "other", "unaccounted pass, undeclared pass", "it was declared, and is not meant"},
		"for another":                 {"south", "wf", "unaccounted not-checked, undeclared not-checked", "it came to the wrong place, or the two are one"},
		"for another, by another one": {"south", "other", "unaccounted not-checked, undeclared not-checked", "the same"},
		"for mail":                    {"mail", "wf", "unaccounted pass, undeclared pass", "what cannot list shows its records elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				var reg connectors.Registry
				mail := connectors.Destination{Connector: only{s.world.Connector()}, Profiles: s.world.Connector().Profiles()}
				for place, d := range map[string]connectors.Destination{"north": s.world.Destination(), "south": newStage(t, orders.Plain.Options()).world.Destination(), "mail": mail} {
					if err := reg.Register(place, d); err != nil {
						t.Fatal(err)
					}
				}
				in, other := declared(intent.Create, "A-1", 0), declared(intent.Create, "B-1", 1)
				in.Destination, in.Workflow, other.Destination = c.declaredFor, c.workflow, "north"
				s.there("Z-9", 100, in.Stamp())
				s.there("B-1", 100, other.Stamp())
				s.write("writes.json", exportLine(t, in, "settled", "verified", 0)+exportLine(t, other, "settled", "verified", 1))
				r, err := eval.Run(t.Context(), s.load(checks), &reg, eval.Options{})
				if err != nil || results(r) != c.want {
					t.Errorf("%s, %v; want %s: %s\n%s", results(r), err, c.want, c.reason, r.Text())
				}
			})
		})
	}
}

// only is a connector that cannot list.
type only struct{ connectors.Connector }

// TestKnownByItsRef: a record that a read of what is declared found is that record,
// though a list does not show its key.
func TestKnownByItsRef(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		s.there("A-1", 100, "")
		s.there("A-2", 100, "")
		c := roomed{Connector: s.world.Connector(), hide: "order_id"}
		var reg connectors.Registry
		if err := reg.Register("orders", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
			t.Fatal(err)
		}
		r, err := eval.Run(t.Context(), s.load(two+"checks: {unaccounted: [{destination: orders, kind: order, of: all}]}\n"), &reg, eval.Options{})
		if err != nil || results(r) != "unaccounted pass" {
			t.Errorf("%s, %v\n%s", results(r), err, r.Text())
		}
	})
}
