package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// wants is a create or an update of an order that expects some fields.
func wants(w intent.WriteType, call int, change func(*intent.WriteIntent)) intent.WriteIntent {
	in := declared(w, "A-1", call)
	change(&in)
	return in
}

// declaredCase is an export, the records, and the expected report.
type declaredCase struct {
	lines  func(*testing.T) []string
	world  func(*stage)
	want   string
	reason string
}

func declaredCases() map[string]declaredCase {
	mine := declared(intent.Create, "A-1", 0).Stamp()
	one := func(w intent.WriteType, state, settlement string) func(*testing.T) []string {
		return func(t *testing.T) []string {
			return []string{exportLine(t, declared(w, "A-1", 0), state, settlement, 0)}
		}
	}
	two := func(first, then func(*intent.WriteIntent)) func(*testing.T) []string {
		return func(t *testing.T) []string {
			return []string{
				exportLine(t, wants(intent.Create, 0, first), "settled", "verified", 0),
				exportLine(t, wants(intent.Update, 1, then), "settled", "verified", 1),
			}
		}
	}
	none := func(*intent.WriteIntent) {}
	ofBefore := func(s *stage) { s.there("A-1", 100, "") }
	return map[string]declaredCase{
		"a delete that was denied":                      {one(intent.Delete, "settled", "denied"), ofBefore, "exactly pass, expected not-checked", "what was not to go is there"},
		"a delete that waits":                           {one(intent.Delete, "review", ""), ofBefore, "exactly pass, expected not-checked", "it may still be there"},
		"a delete that was denied, and gone":            {one(intent.Delete, "settled", "denied"), func(*stage) {}, "exactly pass, expected not-checked", "it is unknown whether it was ever there"},
		"an update that was denied":                     {one(intent.Update, "settled", "denied"), ofBefore, "exactly pass, expected not-checked", "the record was there before"},
		"an update that was denied, of two":             {one(intent.Update, "settled", "denied"), func(s *stage) { ofBefore(s); ofBefore(s) }, "exactly fail, expected not-checked", "nobody declared two"},
		"a create that was denied, and another actor's": {one(intent.Create, "settled", "not_applied"), ofBefore, "exactly pass, expected not-checked", "theirs has no stamp of ours"},
		"a create that waits, and another actor's":      {one(intent.Create, "review", ""), ofBefore, "exactly pass, expected not-checked", "a conflict is for a reviewer"},
		"a create that was denied, and ours": {one(intent.Create, "settled", "not_applied"), func(s *stage) { ofBefore(s); s.there("A-1", 100, mine) },
			"exactly fail, expected not-checked", "ours should not be there"},
		"the same write on two pages": {func(t *testing.T) []string {
			line := exportLine(t, declared(intent.Create, "A-1", 0), "settled", "verified", 0)
			return []string{line, line}
		}, func(s *stage) { s.there("A-1", 100, mine); s.there("A-1", 100, mine) }, "exactly fail, expected pass", "one write is declared once, however often it is exported"},
		"what was ignored first and expected later": {two(func(w *intent.WriteIntent) { w.Ignore = []string{"/status"} }, func(w *intent.WriteIntent) { w.Expect = intent.Fields{"status": "closed"} }),
			func(s *stage) { s.there("A-1", 100, mine) }, "exactly pass, expected fail", "the later write wants it"},
		"what was expected first and absent later": {two(func(w *intent.WriteIntent) { w.Expect["note"] = "x" }, func(w *intent.WriteIntent) { w.Absent = []string{"/note"} }),
			func(s *stage) { s.there("A-1", 100, mine) }, "exactly pass, expected pass", "the later write took it away"},
		"what was absent first": {two(func(w *intent.WriteIntent) {
			w.Absent = []string{"/amount_cents"}
			w.Expect = intent.Fields{"note": "x"}
		}, func(w *intent.WriteIntent) { w.Expect = intent.Fields{"note": "x"} }),
			func(s *stage) {
				o := s.there("A-1", 100, mine)
				if _, err := s.world.Edit(o.ID, intent.Fields{"note": "x"}); err != nil {
					s.Fatal(err)
				}
			}, "exactly pass, expected fail", "no later write asked for it"},
		"nothing is shown": {two(func(w *intent.WriteIntent) { w.Expect = intent.Fields{"note": "redacted:0123456789abcdef"} }, func(w *intent.WriteIntent) {
			w.Expect = intent.Fields{"note": "redacted:0123456789abcdef"}
		}), func(s *stage) { s.there("A-1", 100, mine) }, "exactly pass, expected not-checked", "there is nothing to compare"},
		"what only looks hidden": {two(none, func(w *intent.WriteIntent) { w.Expect = intent.Fields{"note": "redacted: by hand"} }),
			func(s *stage) { s.there("A-1", 100, mine) }, "exactly pass, expected fail", "a value that was written so is compared"},
	}
}

// TestDeclared: what writes leave together, and what they do not.
func TestDeclared(t *testing.T) {
	for name, c := range declaredCases() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				c.world(s)
				s.write("writes.json", strings.Join(c.lines(t), "\n"))
				r := s.eval(head + "workflow: {name: wf, writes: writes.json}\nchecks: {exactly: true, expected: true}\n")
				if results(r) != c.want {
					t.Errorf("%s, want %s: %s\n%s", results(r), c.want, c.reason, r.Text())
				}
			})
		})
	}
}

// TestExportThatContinues: the first pages are not all that was declared, unless they
// reach back beyond the window.
func TestExportThatContinues(t *testing.T) {
	const workflow = head + "workflow: {name: wf, writes: writes.json}\nchecks: {exactly: true}\n"
	const window = head + "window: {from: \"2000-01-01T00:01:00Z\", until: \"2000-01-01T00:02:00Z\", writes: writes.json}\nchecks: {exactly: true}\n"
	in := declared(intent.Create, "A-1", 0)
	other := in
	other.Expect = intent.Fields{"amount_cents": json.Number("7")}
	sibling, ofAnother := declared(intent.Create, "A-2", 1), declared(intent.Create, "A-3", 2)
	ofAnother.Tenant = "u"
	at := func(in intent.WriteIntent, minute int) string {
		return exportLine(t, in, "settled", "verified", minute)
	}
	page := func(after, before string, writes ...string) string {
		return `{"writes":[` + strings.Join(writes, ",") + `],"after":"` + after + `","before":"` + before + `"}` + "\n"
	}
	for name, c := range map[string]struct {
		checks, pages, says string
	}{
		"a page too few":               {workflow, `{"writes":[` + exportLine(t, in, "settled", "verified", 1) + `],"before":"wr_9"}`, "--before wr_9"},
		"the last page":                {workflow, `{"writes":[],"before":"wr_9"}` + "\n" + `{"writes":[` + exportLine(t, in, "settled", "verified", 1) + `],"after":"wr_9"}`, ""},
		"a page in between is missing": {workflow, page("", "wr_9", at(in, 3)) + page("wr_5", "", at(sibling, 1)), "--before wr_9"},
		"pages in any order":           {workflow, page("wr_9", "", at(sibling, 1)) + page("", "wr_9", at(in, 3)), ""},
		"of one tenant a page too few": {workflow, page("", "wr_9", at(in, 3)) + page("", "", at(ofAnother, 1)), "--before wr_9"},
		"of two tenants all":           {workflow, page("", "wr_9", at(in, 3)) + page("wr_9", "", at(sibling, 1)) + page("", "", at(ofAnother, 5)), ""},
		"a newer page behind it":       {workflow, page("", "wr_9", at(in, 3)) + page("", "", at(sibling, 5)), "--before wr_9"},
		"another list of older ones":   {workflow, page("", "wr_9", at(in, 3)) + page("", "", at(sibling, 1)), "--before wr_9"},
		"an empty last page":           {workflow, page("", "wr_9", at(in, 3)) + page("wr_9", ""), ""},
		"a last page of nothing":       {workflow, page("", "wr_9", at(in, 3)) + `{"writes":null,"after":"wr_9"}`, ""},
		"some states alone":            {workflow, `{"writes":[` + at(in, 1) + `],"states":["settled"]}`, "only the writes in some states"},
		"a window, one tenant reached": {window, page("", "wr_9", at(in, 1)) + page("", "", at(ofAnother, 0)), "--before wr_9"},
		"a window, a page too few":     {window, `{"writes":[` + exportLine(t, in, "settled", "verified", 1) + `],"before":"wr_9"}`, "--before wr_9"},
		"a window, reached":            {window, `{"writes":[` + exportLine(t, in, "settled", "verified", 1) + `,` + exportLine(t, declared(intent.Create, "A-0", 7), "settled", "verified", 0) + `],"before":"wr_9"}`, ""},
		"one write, asking two things": {workflow, exportLine(t, in, "settled", "verified", 1) + exportLine(t, other, "settled", "verified", 1), "asks for something else"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			s.write("writes.json", c.pages)
			_, err := eval.Load(s.write("checks.yaml", c.checks))
			if (c.says == "") != (err == nil) || c.says != "" && !(errors.Is(err, eval.ErrInvalid) && strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// TestDeclaredElsewhere: what another workflow of the export declared is neither a
// stray nor unaccounted for.
func TestDeclaredElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		in, other := declared(intent.Create, "A-1", 0), declared(intent.Create, "B-1", 0)
		other.Workflow = "wf-2"
		s.there("A-1", 100, in.Stamp())
		s.there("B-1", 100, other.Stamp())
		s.write("writes.json", exportLine(t, in, "settled", "verified", 0)+exportLine(t, other, "settled", "verified", 0))
		const checks = head + "workflow: {name: wf, writes: writes.json}\nchecks: {unaccounted: [{destination: orders, kind: order, of: all}], undeclared: [{destination: orders, kind: order}]}\n"
		if got := results(s.eval(checks)); got != "unaccounted pass, undeclared pass" {
			t.Errorf("%s, want that both are declared", got)
		}
		s.there("C-1", 100, declared(intent.Create, "C-1", 9).Stamp())
		if got := results(s.eval(checks)); got != "unaccounted fail, undeclared fail" {
			t.Errorf("%s, want that the third is not", got)
		}
	})
}

// reading is a destination with replaced reads.
type reading struct {
	*orders.Connector
	read func(context.Context, connectors.Query) (connectors.Observation, error)
}

func (r reading) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	return r.read(ctx, q)
}

func (s *stage) reading(read func(context.Context, connectors.Query) (connectors.Observation, error)) *connectors.Registry {
	s.Helper()
	c := s.world.Connector()
	p := c.Profiles()[orders.Kind]
	p.BulkLimit = 0
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: reading{c, read}, Profiles: map[string]connectors.Profile{orders.Kind: p}}); err != nil {
		s.Fatal(err)
	}
	return &reg
}

// TestOneRecordForTwo: a destination for which two of our keys are the same has one
// record where two were declared.
func TestOneRecordForTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		s.there("A-1", 100, "")
		reg := s.reading(func(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
			q.Intent.Key = intent.Fields{"order_id": strings.ToUpper(q.Intent.Key["order_id"].(string))}
			return s.world.Connector().Read(ctx, q)
		})
		f := s.load(strings.Replace(two, "A-2", "a-1", 1) + "checks: {exactly: true}\n")
		r, err := eval.Run(t.Context(), f, reg, eval.Options{})
		if err != nil || results(r) != "exactly fail" {
			t.Fatalf("%v, %s\n%s", err, results(r), r.Text())
		}
		says(t, r, "one record for two declared ones")
	})
}

// TestReadsThatDisagree: where several reads must agree, those that do not begin anew.
func TestReadsThatDisagree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.ConfirmReads = 2
		s := newStage(t, o)
		s.there("A-1", 100, "")
		s.there("A-1", 100, "")
		var reads atomic.Int64
		reg := s.reading(func(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
			seen, err := s.world.Connector().Read(ctx, q)
			if reads.Add(1) == 2 { // a node that does not have the second one
				seen.Records = seen.Records[:1]
			}
			return seen, err
		})
		f := s.load(head + "run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}}]}\nchecks: {exactly: true}\n")
		if r, err := eval.Run(t.Context(), f, reg, eval.Options{}); err != nil || results(r) != "exactly fail" || reads.Load() != 4 {
			t.Errorf("%v, %s by %d reads; want that it fails by 4\n%s", err, results(r), reads.Load(), r.Text())
		}
	})
}

// TestReadsOfNoTime: a weak read without a time proves nothing, and is not repeated endlessly.
func TestReadsOfNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		s.there("A-1", 100, "")
		s.there("A-2", 100, "")
		var reads atomic.Int64
		reg := s.reading(func(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
			reads.Add(1)
			o, err := s.world.Connector().Read(ctx, q)
			o.Strength, o.At = connectors.Weak, time.Time{}
			return o, err
		})
		r, err := eval.Run(t.Context(), s.load(two+"checks: {exactly: true}\n"), reg, eval.Options{})
		if err != nil || results(r) != "exactly not-checked" || reads.Load() > 200 {
			t.Errorf("%v, %s by %d reads; want that it is not checked by few", err, results(r), reads.Load())
		}
	})
}

// TestEndedIsTheLastSend: what was sent after the window is waited for all the same.
func TestEndedIsTheLastSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Lagging.Options())
		in := declared(intent.Create, "A-1", 0)
		<-time.After(time.Hour)
		line := strings.Replace(exportLine(t, in, "settled", "verified", 1), `"created":`, `"last_send":"`+time.Now().UTC().Format(time.RFC3339Nano)+`","created":`, 1)
		if !strings.Contains(line, "2000-01-01T01:00:00Z") {
			t.Fatalf("the line has no last send: %s", line)
		}
		s.write("writes.json", line)
		s.there("A-1", 100, in.Stamp()) // no replica shows it yet
		r := s.eval(head + "window: {from: \"2000-01-01T00:00:00Z\", until: \"2000-01-01T00:02:00Z\", writes: writes.json}\nchecks: {exactly: true}\n")
		if results(r) != "exactly pass" {
			t.Errorf("%s\n%s", results(r), r.Text())
		}
	})
}

// TestListsAreConfirmed: a list counts as often as the destination wants reads to
// agree.
func TestListsAreConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		s.there("A-1", 100, "")
		s.there("A-2", 100, "")
		s.there("B-1", 1, "")
		lists := 0
		reg := s.altered(func(p *connectors.Profile) { p.ConfirmReads = 3 }, func(l *connectors.Listing) {
			if lists++; lists == 1 { // one of several replicas does not show the foreign record
				l.Records = l.Records[:2]
			}
		})
		r, err := eval.Run(t.Context(), s.load(two+"checks: {unaccounted: [{destination: orders, kind: order, of: all}]}\n"), reg, eval.Options{})
		if err != nil || results(r) != "unaccounted fail" || lists != 4 {
			t.Errorf("%v, %s by %d lists; want a failure by 4", err, results(r), lists)
		}
	})
}

// TestHostileNames: text of a destination or a model does not look like lines of the report.
func TestHostileNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		s.there("A-1", 100, "")
		s.write("o.jsonl", `{"by":"m\nPASSED: all","about":"x\n  pass","says":"fine\r\nPASSED: all"}`)
		reg := s.altered(func(*connectors.Profile) {}, func(l *connectors.Listing) {
			for i := range l.Records {
				l.Records[i].Ref = "ord\nPASSED: all\u2028\x1b[2J\u009b"
				l.Records[i].Fields = intent.Fields{"order_id": "Z"}
			}
		})
		f := s.load(two + "checks: {unaccounted: [{destination: orders, kind: order, of: all}]}\nopinions: [o.jsonl]\n")
		r, err := eval.Run(t.Context(), f, reg, eval.Options{})
		if err != nil || results(r) != "unaccounted fail" {
			t.Fatalf("%v, %s", err, results(r))
		}
		var xml bytes.Buffer
		if err := r.JUnit(&xml); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{r.Text(), xml.String()} {
			if strings.Contains(text, "\nPASSED") || strings.ContainsAny(text, "\x1b\u009b\u2028") {
				t.Errorf("it shows lines that are not its own:\n%q", text)
			}
		}
	})
}

// TestNothingAsked: rates without a requested comparison are reported, and pass nothing.
func TestNothingAsked(t *testing.T) {
	s := newStage(t, orders.Plain.Options())
	s.write("counts.json", `{"counts":1,"shares":{"retries":[3,100]}}`)
	f := s.load(two + "rates: {counts: counts.json}\n")
	for recording, want := range map[bool]eval.Verdict{false: eval.VerdictUnchecked, true: eval.VerdictPassed} {
		r, err := eval.Run(t.Context(), f, s.registry(), eval.Options{Tier: 2, Recording: recording})
		if err != nil || r.Verdict() != want {
			t.Errorf("recording %t: %q, %v; want %q", recording, r.Verdict(), err, want)
		}
	}
	r, err := eval.Run(t.Context(), f, s.registry(), eval.Options{Tier: 1})
	var xml bytes.Buffer
	if err != nil || r.JUnit(&xml) != nil || !strings.Contains(xml.String(), "<error") {
		t.Errorf("%v; a tier of which nothing is asked counts as good in XML:\n%s", err, &xml)
	}
}

// TestFewSamples: of one value there is no interval, whatever the file calls enough,
// and less than none is refused.
func TestFewSamples(t *testing.T) {
	s := newStage(t, orders.Plain.Options())
	s.write("counts.json", `{"counts":1,"samples":{"lag":[9]}}`)
	base := s.write("base.json", `{"baseline":1,"evaluation":"test","taken":"2026-01-01T00:00:00Z","rates":{"lag":{"cases":0,"of":1,"values":"1x1"}}}`)
	b, err := eval.ReadBaseline(base)
	if err != nil {
		t.Fatal(err)
	}
	r, err := eval.Run(t.Context(), s.load(two+"rates: {least: 1, counts: counts.json, compare: {lag: {}}}\n"), s.registry(), eval.Options{Tier: 2, Baseline: b})
	if err != nil || r.Verdict() != eval.VerdictUnchecked {
		t.Errorf("%q, %v; want that one value shows nothing\n%s", r.Verdict(), err, r.Text())
	}
	for _, rates := range []string{"{least: -1, counts: counts.json}", "{counts: counts.json, compare: {lag: {least: -1}}}"} {
		if _, err := eval.Load(s.write("checks.yaml", two+"rates: "+rates+"\n")); err == nil {
			t.Errorf("%s is taken", rates)
		}
	}
}
