package eval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// effectsOf declares so many orders of 100 cents.
func effectsOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"destination":"orders","kind":"order","key":{"order_id":"A-%d"},"expect":{"amount_cents":100}}`+"\n", i)
	}
	return b.String()
}

const (
	fromFile = head + "run: {file: effects.jsonl}\n"
	listAll  = "unaccounted: [{destination: orders, kind: order, of: all}]"
)

// TestAListIsEnough: what a list shows as declared is not read again, key by key; what
// it shows otherwise is.
func TestAListIsEnough(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(s *stage)
		want         string
		reads, calls int
		reason       string
	}{
		"all as declared": {func(*stage) {}, "exactly pass, expected pass, unaccounted pass", 0, 3, "three pages show all of it"},
		"one is duplicated": {func(s *stage) { s.there("A-7", 100, "") }, "exactly fail, expected pass, unaccounted pass", 1, 4,
			"that one alone is checked"},
		"one is lost": {func(s *stage) { s.remove("A-7") }, "exactly fail, expected fail, unaccounted pass", 1, 3, "likewise, and there are two pages"},
		"one differs": {func(s *stage) { s.edit("A-7", intent.Fields{"amount_cents": json.Number("1")}) },
			"exactly pass, expected fail, unaccounted pass", 1, 4, "likewise"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				keys := 2*orders.PageSize + 1
				for i := range keys {
					s.there(fmt.Sprintf("A-%d", i), 100, "")
				}
				c.change(s)
				s.write("effects.jsonl", effectsOf(keys))
				r := s.eval(fromFile + "checks: {exactly: true, expected: true, " + listAll + "}\n")
				if _, calls := s.world.Count(); results(r) != c.want || r.Reads != c.reads || r.Lists != 1 || calls != c.calls || r.Declared != keys {
					t.Errorf("%s by %d reads and %d lists, %d calls, of %d; want %s by %d reads, 1 list, %d calls: %s\n%s",
						results(r), r.Reads, r.Lists, calls, r.Declared, c.want, c.reads, c.calls, c.reason, r.Text())
				}
			})
		})
	}
}

// TestManyKeysAreListed: from a thousand keys on they are listed, though no check requires a
// list; fewer are read.
func TestManyKeysAreListed(t *testing.T) {
	for keys, lists := range map[int]int{999: 0, 1000: 1} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			for i := range keys {
				s.there(fmt.Sprintf("A-%d", i), 100, "")
			}
			s.write("effects.jsonl", effectsOf(keys))
			r := s.eval(fromFile + "checks: {exactly: true}\n")
			if reads := (1 - lists) * keys; results(r) != "exactly pass" || r.Lists != lists || r.Reads != reads {
				t.Errorf("%d keys: %s by %d lists and %d reads, want %d and %d", keys, results(r), r.Lists, r.Reads, lists, reads)
			}
		})
	}
}

// oneCase is a destination for which keys are the same that differ in case.
type oneCase struct{ *orders.Connector }

func (c oneCase) Read(ctx context.Context, q connectors.Query) (all connectors.Observation, err error) {
	id, _ := q.Intent.Key["order_id"].(string)
	var records []connectors.Record
	for _, spelled := range []string{strings.ToLower(id), strings.ToUpper(id)} {
		q.Intent.Key = intent.Fields{"order_id": spelled}
		if all, err = c.Connector.Read(ctx, q); err != nil {
			return all, err
		}
		records = append(records, all.Records...)
	}
	all.Records = records
	return all, nil
}

// listsOnly changes the lists of a connector on the way.
type listsOnly struct {
	connectors.Connector
	list func(context.Context, connectors.Scope) (connectors.Listing, error)
}

func (l listsOnly) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	return l.list(ctx, s)
}

// registered is a registry of one connector, whose bulk reads are not used.
func (s *stage) registered(c connectors.Connector, p connectors.Profile) *connectors.Registry {
	s.Helper()
	p.BulkLimit = 0
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: c, Profiles: map[string]connectors.Profile{orders.Kind: p}}); err != nil {
		s.Fatal(err)
	}
	return &reg
}

// TestAListIsNotEnough: where a list does not show what a read would, the key is read.
func TestAListIsNotEnough(t *testing.T) {
	both := func(s *stage) { s.there("A-1", 100, ""); s.there("A-2", 100, "") }
	without := func(field string) func(*connectors.Listing) {
		return func(l *connectors.Listing) {
			for _, r := range l.Records {
				delete(r.Fields, field)
			}
		}
	}
	const absent = head + `run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}, absent: [/note]}]}` + "\n"
	for name, c := range map[string]struct {
		declared string
		world    func(*stage)
		list     func(*connectors.Listing)
		profile  func(*connectors.Profile)
		folds    bool // keys that differ in case are the same
		want     string
		reads    int
		reason   string
	}{
		"as it is":             {two, both, func(*connectors.Listing) {}, nil, false, "exactly pass, expected pass, unaccounted pass", 0, "the list shows it"},
		"fewer fields":         {two, both, without("amount_cents"), nil, false, "exactly pass, expected pass, unaccounted pass", 2, "a list need not show the amount"},
		"no keys":              {two, both, without("order_id"), nil, false, "exactly pass, expected pass, unaccounted pass", 2, "nothing can be found in it"},
		"none, and no keys":    {head + "run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}, count: 0}]}\n", func(s *stage) { s.there("A-1", 100, "") }, without("order_id"), nil, false, "exactly fail, expected not-checked, unaccounted pass", 1, "that nothing is found in it proves nothing"},
		"not complete":         {two, both, func(l *connectors.Listing) { l.Complete, l.Why = false, "pages shift" }, nil, false, "exactly pass, expected pass, unaccounted not-checked", 2, "it may lack a second one"},
		"a key that is two":    {two, func(s *stage) { both(s); s.there("a-1", 100, "") }, func(*connectors.Listing) {}, nil, true, "exactly fail, expected fail, unaccounted pass", 1, "a-1 is A-1 there"},
		"what is to be absent": {absent, func(s *stage) { s.there("A-1", 100, ""); s.edit("A-1", intent.Fields{"note": "x"}) }, without("note"), nil, false, "exactly pass, expected fail, unaccounted pass", 1, "the list does not show notes"},
		"keys that rules compare": {two, both, func(*connectors.Listing) {}, func(p *connectors.Profile) {
			p.Compare = map[string]intent.Comparison{"/order_id": {{Name: intent.RuleText}}}
		}, false, "exactly pass, expected pass, unaccounted pass", 2, "markup does not count, which no spelling finds"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				c.world(s)
				p := s.world.Connector().Profiles()[orders.Kind]
				if c.profile != nil {
					c.profile(&p)
				}
				conn := connectors.Connector(altered{s.world.Connector(), c.list})
				if c.folds {
					conn = listsOnly{oneCase{s.world.Connector()}, s.world.Connector().List}
				}
				r, err := eval.Run(t.Context(), s.load(c.declared+"checks: {exactly: true, expected: true, "+listAll+"}\n"), s.registered(conn, p), eval.Options{})
				if err != nil || results(r) != c.want || r.Reads != c.reads {
					t.Errorf("%v, %s by %d reads; want %s by %d: %s\n%s", err, results(r), r.Reads, c.want, c.reads, c.reason, r.Text())
				}
			})
		})
	}
}

// TestStampUnderAnotherKey: if a list shows the record of a write under another key, both keys
// must be read.
func TestStampUnderAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		one, other := declared(intent.Create, "A-1", 0), declared(intent.Create, "A-2", 1)
		s.there("A-1", 100, one.Stamp())
		s.there("A-2", 100, one.Stamp()) // the same write once more, under the key of the other
		s.write("writes.json", exportLine(t, one, "settled", "verified", 0)+exportLine(t, other, "settled", "verified", 1))
		r := s.eval(head + "workflow: {name: wf, writes: writes.json}\nchecks: {exactly: true, " + listAll + "}\n")
		if results(r) != "exactly fail, unaccounted pass" || r.Checks[0].Wrong != 2 {
			t.Errorf("%s\n%s", results(r), r.Text())
		}
	})
}

// TestOperationInAList: two records of one operation are too many, though a list shows
// each of them as its own write declares it.
func TestOperationInAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		var lines strings.Builder
		for i, id := range []string{"A-1", "A-2"} {
			in := declared(intent.Create, id, i)
			in.IdempotencyKey = "wire:7"
			s.there(id, 100, in.Stamp())
			lines.WriteString(exportLine(t, in, "settled", "verified", i))
		}
		s.write("writes.json", lines.String())
		r := s.eval(head + "workflow: {name: wf, writes: writes.json}\nchecks: {exactly: true, " + listAll + "}\n")
		if results(r) != "exactly fail, unaccounted pass" {
			t.Errorf("%s\n%s", results(r), r.Text())
		}
		says(t, r, "idempotency key t/x/wire:7: 2 records under 2 keys")
	})
}

// TestAListThatBreaksOff: what a list showed before it failed counts once, when it is
// made again.
func TestAListThatBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		const keys = 2100 // enough for the first of them to have been read
		s.write("effects.jsonl", effectsOf(keys))
		tries := 0
		conn := listsOnly{s.world.Connector(), func(_ context.Context, scope connectors.Scope) (connectors.Listing, error) {
			tries++
			for i := range keys + 1 { // the last one is another one's
				fields := intent.Fields{"order_id": fmt.Sprintf("A-%d", i), "amount_cents": json.Number("100")}
				if err := scope.Each(connectors.Listed{Record: connectors.Record{Ref: fmt.Sprint(i), Fields: fields}}); err != nil {
					return connectors.Listing{}, err
				}
			}
			if tries == 1 {
				return connectors.Listing{}, errors.New("the connection was lost")
			}
			return connectors.Listing{Strength: connectors.Strong, Complete: true}, nil
		}}
		r, err := eval.Run(t.Context(), s.load(fromFile+"checks: {exactly: true, "+listAll+"}\n"), s.registered(conn, s.world.Connector().Profiles()[orders.Kind]), eval.Options{})
		if err != nil || results(r) != "exactly pass, unaccounted fail" || r.Effects != keys || r.Reads != 0 || r.Lists != 2 || r.Checks[1].Read != keys+1 || r.Checks[1].Wrong != 1 {
			t.Errorf("%v, %s, %d effects by %d reads\n%s", err, results(r), r.Effects, r.Reads, r.Text())
		}
	})
}

// TestEachFindingIsGiven: a report names the first findings, and each is given to a
// caller that wants all of them, also where they do not fit into memory.
func TestEachFindingIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		const foreign = 1200
		for i := range foreign {
			s.there(fmt.Sprintf("B-%d", i), 1, "")
		}
		s.there("A-1", 100, "")
		given := map[string]int{}
		r, err := eval.Run(t.Context(), s.load(two+"checks: {exactly: true, "+listAll+"}\n"), s.registry(), eval.Options{
			OnFinding: func(check string, unread bool, n eval.Named) { given[fmt.Sprint(check, " ", unread)]++ },
		})
		if err != nil || r.Checks[1].Wrong != foreign || len(r.Checks[1].Offending) != 50 || r.Checks[1].Read != foreign+1 {
			t.Fatalf("%v, %d wrong of %d, %d named; want %d of %d, 50", err, r.Checks[1].Wrong, r.Checks[1].Read, len(r.Checks[1].Offending), foreign, foreign+1)
		}
		if given["exactly false"] != 1 || given["unaccounted false"] != foreign {
			t.Errorf("%v were given, want all", given)
		}
	})
}

// TestAFileThatChanges: declarations are read more than once, and are the same each
// time.
func TestAFileThatChanges(t *testing.T) {
	s := newStage(t, orders.Plain.Options())
	s.write("effects.jsonl", effectsOf(2))
	f := s.load(fromFile + "checks: {exactly: true}\n")
	s.write("effects.jsonl", effectsOf(3))
	const want = "effects.jsonl: has changed since it was loaded"
	if _, err := eval.Run(t.Context(), f, s.registry(), eval.Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want that the file has changed", err)
	}
	// Rewritten in place during the list, to lines of the same length.
	f = s.load(fromFile + "checks: {exactly: true, " + listAll + "}\n")
	conn := listsOnly{s.world.Connector(), func(ctx context.Context, scope connectors.Scope) (connectors.Listing, error) {
		path := s.write("effects.jsonl", strings.ReplaceAll(effectsOf(3), "A-", "B-"))
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil { // whatever the resolution of file times
			return connectors.Listing{}, err
		}
		return s.world.Connector().List(ctx, scope)
	}}
	if r, err := eval.Run(t.Context(), f, s.registered(conn, s.world.Connector().Profiles()[orders.Kind]), eval.Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want that the file has changed\n%s", err, r.Text())
	}
}

// rows is a destination that makes the records of its list on request, and stores none.
type rows struct {
	*orders.Connector
	of    func(give func(intent.WriteIntent) error) error
	reads atomic.Int64
}

func (c *rows) Read(context.Context, connectors.Query) (connectors.Observation, error) {
	c.reads.Add(1)
	return connectors.Observation{}, errors.New("a read was not needed")
}

func (c *rows) List(_ context.Context, s connectors.Scope) (connectors.Listing, error) {
	n := 0
	err := c.of(func(in intent.WriteIntent) error {
		n++
		return s.Each(connectors.Listed{Record: connectors.Record{Ref: fmt.Sprint(n), Stamp: in.Stamp(),
			Fields: intent.Fields{"order_id": in.Key["order_id"], "amount_cents": in.Expect["amount_cents"]}}})
	})
	return connectors.Listing{Strength: connectors.Strong, Complete: true}, err
}

// TestMemoryOfManyKeys: an evaluation holds a few numbers of each declared write, and
// neither what was declared nor what a list shows.
func TestMemoryOfManyKeys(t *testing.T) {
	const keys = 5000
	// most is what one key may cost. One write alone, as it is decoded, has thousands.
	const most = 300
	s := newStage(t, orders.Plain.Options())
	many := func(give func(intent.WriteIntent) error) error {
		for i := range keys {
			if err := give(declared(intent.Create, fmt.Sprintf("A-%d", i), i)); err != nil {
				return err
			}
		}
		return nil
	}
	file, err := os.Create(s.write("writes.json", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(many(func(in intent.WriteIntent) error {
		_, err := file.WriteString(exportLine(t, in, "settled", "verified", 0))
		return err
	}), file.Close()); err != nil {
		t.Fatal(err)
	}
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	f := s.load(head + "workflow: {name: wf, writes: writes.json}\nchecks: {exactly: true, expected: true, verified: true, " + listAll + "}\n")
	c := &rows{Connector: s.world.Connector(), of: many}
	var doing []string
	grown := uint64(0)
	r, err := eval.Run(t.Context(), f, s.registered(c, c.Profiles()[orders.Kind]), eval.Options{Progress: func(p eval.Progress) {
		if !slices.Contains(doing, p.Doing) {
			doing = append(doing, p.Doing)
		}
		if now := held(); now > before {
			grown = max(grown, now-before)
		}
	}})
	if err != nil || r.Verdict() != eval.VerdictPassed || r.Declared != keys || c.reads.Load() != 0 {
		t.Fatalf("%v, %q of %d by %d reads\n%s", err, r.Verdict(), r.Declared, c.reads.Load(), r.Text())
	}
	if want := []string{"reading what was declared", "listing orders/order"}; !slices.Equal(doing, want) {
		t.Errorf("progress was %q, want %q", doing, want)
	}
	t.Logf("%d bytes for each key", grown/keys)
	if grown > keys*most {
		t.Errorf("%d bytes for each key are held, want at most %d", grown/keys, most)
	}
}

// TestFindingsNameKeys: a finding names the business key, and no value of one that the
// destination marks as sensitive.
func TestFindingsNameKeys(t *testing.T) {
	for sensitive, want := range map[bool]string{false: `{"order_id":"A-1"}`, true: `{"order_id":"(redacted)"}`} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			s.there("B-9", 100, "")
			p := s.world.Connector().Profiles()[orders.Kind]
			if sensitive {
				p.Sensitive = []string{"/order_id"}
			}
			s.write("outcomes.jsonl", `{"destination":"orders","kind":"order","key":{"order_id":"C-3"},"status":"verified"}`)
			r, err := eval.Run(t.Context(), s.load(two+"outcomes: outcomes.jsonl\nchecks: {exactly: true, verified: true, "+listAll+"}\n"), s.registered(s.world.Connector(), p), eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			says(t, r, "orders/order "+want+": 0 there, 1 declared (checks.yaml:5)",
				"ord_000001: it was not declared; its key is "+strings.Replace(want, "A-1", "B-9", 1),
				"orders/order "+strings.Replace(want, "A-1", "C-3", 1)+" (outcomes.jsonl:1): it was not declared")
			if leak := strings.Contains(r.Text(), "A-1") || strings.Contains(r.Text(), "B-9") || strings.Contains(r.Text(), "C-3"); leak == sensitive {
				t.Errorf("sensitive %t:\n%s", sensitive, r.Text())
			}
		})
	}
}

// TestFindingsAreVisible: what a destination or a caller wrote is in a finding in one
// line in which every character is seen, for programs that read it too.
func TestFindingsAreVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		s.there("B\u200b\n9", 100, "")
		s.write("effects.jsonl", `{"destination":"orders","kind":"order","key":{"order_id":"A\u202e1"}}`)
		var all []eval.Named
		r, err := eval.Run(t.Context(), s.load(fromFile+"checks: {exactly: true, "+listAll+"}\n"), s.registry(), eval.Options{
			OnFinding: func(_ string, _ bool, n eval.Named) { all = append(all, n) }})
		if err != nil || results(r) != "exactly fail, unaccounted fail" || len(all) != 2 {
			t.Fatalf("%v, %s, %+v", err, results(r), all)
		}
		text := fmt.Sprint(all)
		if strings.ContainsAny(text, "\u200b\u202e\n") || !strings.Contains(text, `A\u202e1`) || !strings.Contains(text, `B\u200b\n9`) {
			t.Errorf("%+q", text)
		}
	})
}
