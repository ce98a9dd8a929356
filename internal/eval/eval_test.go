package eval_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// stage is a destination, and the files of one evaluation of it.
type stage struct {
	*testing.T
	world *orders.World
	dir   string
}

func newStage(t *testing.T, o orders.Options) *stage {
	t.Helper()
	w, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, w, t.TempDir()}
}

// write puts a file beside the checks.
func (s *stage) write(name, text string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

func (s *stage) registry() *connectors.Registry {
	s.Helper()
	var reg connectors.Registry
	if err := reg.Register("orders", s.world.Destination()); err != nil {
		s.Fatal(err)
	}
	writeOnly := connectors.Destination{Connector: s.world.Connector(), Profiles: map[string]connectors.Profile{"notice": {WriteOnly: true}}}
	if err := reg.Register("hook", writeOnly); err != nil {
		s.Fatal(err)
	}
	return &reg
}

func (s *stage) load(checks string) *eval.File {
	s.Helper()
	f, err := eval.Load(s.write("checks.yaml", checks))
	if err != nil {
		s.Fatal(err)
	}
	return f
}

func (s *stage) eval(checks string) eval.Report {
	s.Helper()
	r, err := eval.Run(s.Context(), s.load(checks), s.registry(), eval.Options{})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// there puts an order there, with a stamp of ours or without.
func (s *stage) there(id string, amount int, stamp string) orders.Order {
	s.Helper()
	o, err := s.world.Seed(intent.Fields{"order_id": id, "amount_cents": json.Number(fmt.Sprint(amount))}, stamp)
	if err != nil {
		s.Fatal(err)
	}
	return o
}

// results are those of the checks in one line.
func results(r eval.Report) string {
	var all []string
	for _, c := range r.Checks {
		all = append(all, c.Name+" "+strings.ReplaceAll(c.Result.String(), " ", "-"))
	}
	return strings.Join(all, ", ")
}

// says fails unless the text of a report contains all of them.
func says(t *testing.T, r eval.Report, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(r.Text(), w) {
			t.Errorf("the report does not say %q:\n%s", w, r.Text())
		}
	}
}

const head = "evaluation: 1\nname: test\n"

// two declares two orders of 100 cents.
const two = head + `run:
  effects:
    - {destination: orders, kind: order, key: {order_id: A-1}, expect: {amount_cents: 100}}
    - {destination: orders, kind: order, key: {order_id: A-2}, expect: {amount_cents: 100}}
`

// tier1Case is one world and the expected report.
type tier1Case struct {
	options orders.Options
	world   func(*stage)
	checks  string
	want    string
	verdict eval.Verdict
	says    []string
	reason  string
}

func tier1Cases() map[string]tier1Case {
	stamp := intent.WriteIntent{Tenant: "t", Workflow: "other", Tool: "x"}.Stamp()
	lagging := orders.Lagging.Options()
	unbounded := lagging
	unbounded.Settle = connectors.Bound{}
	stampless := orders.Plain.Options()
	stampless.Stamps = false
	confirm := orders.Plain.Options()
	confirm.ConfirmReads = 3
	fails := func(times int) func(*stage) {
		return func(s *stage) {
			s.there("A-1", 100, "")
			s.there("A-2", 100, "")
			if err := s.world.Set(orders.Fault{Kind: orders.UnreadableRead, Times: times}); err != nil {
				s.Fatal(err)
			}
		}
	}
	both := func(s *stage) { s.there("A-1", 100, ""); s.there("A-2", 100, "") }
	return map[string]tier1Case{
		"as declared": {orders.Plain.Options(), both, two + "checks: {exactly: true, expected: true}\n",
			"exactly pass, expected pass", eval.VerdictPassed, []string{"not asked for: unaccounted, collateral, verified, undeclared"}, "one of each"},
		"twice": {orders.Plain.Options(), func(s *stage) { both(s); s.there("A-2", 100, "") }, two + "checks: {exactly: true, expected: true}\n",
			"exactly fail, expected pass", eval.VerdictWrong, []string{`{"order_id":"A-2"}: 2 there, 1 declared (checks.yaml:6)`}, "a second one is one too many"},
		"lost": {orders.Plain.Options(), func(s *stage) { s.there("A-1", 100, "") }, two + "checks: {exactly: true, expected: true}\n",
			"exactly fail, expected fail", eval.VerdictWrong, []string{`{"order_id":"A-2"}: 0 there, 1 declared`}, "one is missing"},
		"another amount": {orders.Plain.Options(), func(s *stage) { s.there("A-1", 100, ""); s.there("A-2", 99, "") }, two + "checks: {exactly: true, expected: true}\n",
			"exactly pass, expected fail", eval.VerdictWrong, []string{"/amount_cents is 99, want 100"}, "the count alone is not enough"},
		"none wanted": {orders.Plain.Options(), func(s *stage) { s.there("A-1", 100, "") },
			head + "run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}, count: 0}]}\nchecks: {exactly: true}\n",
			"exactly fail", eval.VerdictWrong, []string{"1 there, 0 declared"}, "it should be gone"},
		"a lagging replica": {lagging, both, two + "checks: {exactly: true, expected: true}\n",
			"exactly pass, expected pass", eval.VerdictPassed, []string{"reads: weak"}, "what replicas do not show yet is not lost"},
		"a lagging replica and a duplicate": {lagging, func(s *stage) { both(s); <-time.After(3 * time.Second); s.there("A-1", 100, "") }, two + "checks: {exactly: true}\n",
			"exactly fail", eval.VerdictWrong, []string{`{"order_id":"A-1"}: 2 there`}, "a replica that shows one may hide the second; it is waited for"},
		"no settle time": {unbounded, func(s *stage) { both(s); <-time.After(time.Hour) }, two + "checks: {exactly: true}\n",
			"exactly not-checked", eval.VerdictUnchecked, []string{"declares no settle time"}, "it is unknown how far a read is behind"},
		"settle time beyond patience": {lagging, both, strings.Replace(two, "name: test\n", "name: test\npatience: 1s\n", 1) + "checks: {exactly: true}\n",
			"exactly not-checked", eval.VerdictUnchecked, []string{"more than patience allows"}, "it was not waited for"},
		"several reads agree": {confirm, both, two + "checks: {exactly: true}\n", "exactly pass", eval.VerdictPassed, []string{"by 6 reads"}, "the profile wants three in a row"},
		"reads fail for a while": {orders.Plain.Options(), fails(7), two + "checks: {exactly: true}\n",
			"exactly pass", eval.VerdictPassed, nil, "a read that fails is made again"},
		"reads fail": {orders.Plain.Options(), fails(0), two + "checks: {exactly: true, expected: true}\n",
			"exactly not-checked, expected not-checked", eval.VerdictUnchecked, []string{"it could not be read"}, "what cannot be read is neither there nor lost"},
		"write-only": {orders.Plain.Options(), both, head + "run: {effects: [{destination: hook, kind: notice, key: {order_id: A-1}}]}\nchecks: {exactly: true, unaccounted: [{destination: hook, kind: notice}]}\n",
			"exactly not-checked, unaccounted not-checked", eval.VerdictUnchecked, []string{"nothing can be read"}, "it cannot be read"},
		"a foreign record in scope": {orders.Plain.Options(), func(s *stage) { both(s); s.there("B-9", 5, "") }, two + "checks: {exactly: true, unaccounted: [{destination: orders, kind: order, of: all}]}\n",
			"exactly pass, unaccounted fail", eval.VerdictWrong, []string{"orders/order ord_000003: it was not declared"}, "each declared one is right, and there is one more"},
		"a foreign record without our stamp": {orders.Plain.Options(), func(s *stage) { both(s); s.there("B-9", 5, "") }, two + "checks: {unaccounted: [{destination: orders, kind: order}]}\n",
			"unaccounted pass", eval.VerdictPassed, []string{"there is no such record"}, "it has no stamp of ours"},
		"a stray of ours": {orders.Plain.Options(), func(s *stage) { both(s); s.there("B-9", 5, stamp) }, two + "checks: {unaccounted: [{destination: orders, kind: order}]}\n",
			"unaccounted fail", eval.VerdictWrong, []string{"it has the stamp " + stamp}, "it is ours, and was not declared"},
		"no stamps": {stampless, both, two + "checks: {unaccounted: [{destination: orders, kind: order}]}\n",
			"unaccounted not-checked", eval.VerdictUnchecked, []string{"ask for all"}, "it cannot be known which are ours"},
		"a list that fails": {orders.Plain.Options(), fails(0), two + "checks: {unaccounted: [{destination: orders, kind: order, of: all}]}\n",
			"unaccounted not-checked", eval.VerdictUnchecked, nil, "a list that failed is no empty list"},
		"older than the scope": {orders.Plain.Options(), func(s *stage) { s.there("B-9", 5, ""); <-time.After(time.Hour); both(s) },
			two + "checks: {unaccounted: [{destination: orders, kind: order, of: all, from: " + `"2000-01-01T00:30:00Z"` + "}]}\n",
			"unaccounted pass", eval.VerdictPassed, nil, "it was there before"},
		"unknown stamps": {orders.Plain.Options(), both, two + "checks: {undeclared: [{destination: orders, kind: order}]}\n",
			"undeclared not-checked", eval.VerdictUnchecked, []string{"name no stamps"}, "without stamps what was sent is unknown"},
	}
}

func TestTier1(t *testing.T) {
	for name, c := range tier1Cases() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, c.options)
				c.world(s)
				r := s.eval(c.checks)
				if results(r) != c.want || r.Verdict() != c.verdict {
					t.Errorf("%s and %q, want %s and %q: %s\n%s", results(r), r.Verdict(), c.want, c.verdict, c.reason, r.Text())
				}
				says(t, r, c.says...)
			})
		})
	}
}

// TestNothingIsWritten: an evaluation only reads.
func TestNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		s.there("A-1", 100, "")
		s.eval(two + "checks: {exactly: true, expected: true, unaccounted: [{destination: orders, kind: order, of: all}]}\n")
		if writes, reads := s.world.Count(); writes != 0 || reads == 0 {
			t.Errorf("%d writes and %d reads, want reads alone", writes, reads)
		}
	})
}

// TestNamedAreBounded: a report names the first of many, and counts all.
func TestNamedAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		var effects strings.Builder
		for n := range 120 {
			fmt.Fprintf(&effects, `{"destination":"orders","kind":"order","key":{"order_id":"A-%d"}}`+"\n", n)
		}
		s.write("effects.jsonl", effects.String())
		r := s.eval(head + "run: {file: effects.jsonl}\nchecks: {exactly: true}\n")
		if c := r.Checks[0]; c.Wrong != 120 || len(c.Offending) != 50 {
			t.Errorf("%d wrong and %d named, want 120 and 50", c.Wrong, len(c.Offending))
		}
		says(t, r, "and 70 more")
	})
}

// TestCancelled: an evaluation that is given up checks nothing.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Lagging.Options())
		f := s.load(two + "checks: {exactly: true}\n")
		ctx, cancel := contextWithTimeout(t, time.Second)
		defer cancel()
		r, err := eval.Run(ctx, f, s.registry(), eval.Options{})
		if err != nil || r.Verdict() != eval.VerdictUnchecked {
			t.Errorf("%q, %v; want that nothing was checked", r.Verdict(), err)
		}
	})
}
