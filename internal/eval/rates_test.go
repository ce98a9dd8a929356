package eval_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// sheet is a file of counts: so many retries of 100, and reads of so many.
func sheet(retries int, reads ...float64) string {
	text, _ := json.Marshal(map[string]any{"counts": 1, "shares": map[string]any{"retries": []int{retries, 100}}, "samples": map[string]any{"reads_per_write": reads}})
	return string(text)
}

// times is a value so many times.
func times(n int, v float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = v + float64(i%2)
	}
	return all
}

// constant is the very same value so many times.
func constant(n int, v float64) []float64 {
	all := times(n, v)
	for i := range all {
		all[i] = v
	}
	return all
}

const rateChecks = head + `run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}, count: 0}]}
rates:
  counts: counts.json
  compare:
    retries: {}
    reads_per_write: {more: 0.5}
`

// baseline records one of what was counted.
func (s *stage) baseline(checks, counted string) string {
	s.Helper()
	s.write("counts.json", counted)
	f := s.load(checks)
	if _, err := eval.Run(s.Context(), f, s.registry(), eval.Options{Tier: 2, Recording: true}); err != nil {
		s.Fatal(err)
	}
	var out bytes.Buffer
	if err := eval.Record(f, &out, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		s.Fatal(err)
	}
	return s.write("baseline.json", out.String())
}

func TestRates(t *testing.T) {
	for name, c := range map[string]struct {
		was, now string
		verdict  eval.Verdict
		says     []string
		reason   string
	}{
		"the same":       {sheet(10, times(50, 1)...), sheet(10, times(50, 1)...), eval.VerdictPassed, []string{"newcombe", "bootstrap", "not shown to be worse"}, "nothing changed"},
		"a little more":  {sheet(10, times(50, 1)...), sheet(14, times(50, 1)...), eval.VerdictPassed, nil, "that may be chance"},
		"many more":      {sheet(10, times(50, 1)...), sheet(40, times(50, 1)...), eval.VerdictWorse, []string{"fail", "worse: the difference is surely beyond 0"}, "that is no chance"},
		"fewer":          {sheet(40, times(50, 1)...), sheet(10, times(50, 1)...), eval.VerdictPassed, nil, "fewer retries are no fault"},
		"more reads":     {sheet(10, times(50, 1)...), sheet(10, times(50, 3)...), eval.VerdictWorse, []string{"reads_per_write"}, "two more for each write"},
		"tolerated":      {sheet(10, times(50, 1)...), sheet(10, times(50, 1.3)...), eval.VerdictPassed, nil, "less than the file tolerates"},
		"too few":        {sheet(10, times(50, 1)...), sheet(10, times(5, 1)...), eval.VerdictUnchecked, []string{"are too few; want 20"}, "nothing could ever be worse"},
		"not any longer": {sheet(10, times(50, 1)...), `{"counts":1,"shares":{"retries":[10,100]}}`, eval.VerdictUnchecked, []string{"there are no numbers of it"}, "what is not counted cannot be compared"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			base, err := eval.ReadBaseline(s.baseline(rateChecks, c.was))
			if err != nil {
				t.Fatal(err)
			}
			s.write("counts.json", c.now)
			r, err := eval.Run(t.Context(), s.load(rateChecks), s.registry(), eval.Options{Baseline: base})
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict() != c.verdict {
				t.Errorf("%q, want %q: %s\n%s", r.Verdict(), c.verdict, c.reason, r.Text())
			}
			says(t, r, c.says...)
		})
	}
}

// TestTheSameOfOthers: equal values are no worse for being more of them, though
// sums of other lengths round in other ways.
func TestTheSameOfOthers(t *testing.T) {
	checks := strings.Replace(rateChecks, "{more: 0.5}", "{}", 1)
	for _, v := range []float64{0.1, 0.1234564, 1.0 / 3, 1e11 / 7} {
		for _, n := range [][2]int{{20, 33}, {33, 20}, {300, 21}} {
			s := newStage(t, orders.Plain.Options())
			base, err := eval.ReadBaseline(s.baseline(checks, sheet(10, constant(n[0], v)...)))
			if err != nil {
				t.Fatal(err)
			}
			s.write("counts.json", sheet(10, constant(n[1], v)...))
			r, err := eval.Run(t.Context(), s.load(checks), s.registry(), eval.Options{Baseline: base})
			if err != nil || r.Verdict() != eval.VerdictPassed {
				t.Errorf("%d times %g against %d times: %q, %v", n[1], v, n[0], r.Verdict(), err)
			}
		}
	}
}

// TestJUnitOfNothing: where nothing was compared, no reader of XML sees green.
func TestJUnitOfNothing(t *testing.T) {
	s := newStage(t, orders.Plain.Options())
	s.write("counts.json", sheet(1, 1, 1))
	r, err := eval.Run(t.Context(), s.load(head+"run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}}]}\nrates: {counts: counts.json}\n"), s.registry(), eval.Options{})
	if err != nil || r.Verdict() != eval.VerdictUnchecked {
		t.Fatalf("%q, %v; want that nothing was checked", r.Verdict(), err)
	}
	var out bytes.Buffer
	var all junit.Testsuites
	if err := errors.Join(r.JUnit(&out), xml.Unmarshal(out.Bytes(), &all)); err != nil || all.Errors == 0 {
		t.Errorf("%v, %d errors; want one, as the exit code says", err, all.Errors)
	}
}

func TestBaselineThatDoesNotFit(t *testing.T) {
	good := `{"baseline":1,"evaluation":"test","taken":"2026-01-01T00:00:00Z","rates":{"retries":{"cases":1,"of":100},"reads_per_write":{"cases":0,"of":2,"values":"1x2"}}}`
	for name, c := range map[string]struct{ text, says string }{
		"another version":    {strings.Replace(good, `"baseline":1`, `"baseline":7,"more":true`, 1), "is of version 7; want 1"},
		"another evaluation": {strings.Replace(good, `"test"`, `"other"`, 1), `is of the evaluation "other"; want one of "test"`},
		"a rate missing":     {strings.Replace(good, "retries", "review", 1), "has no rate retries, which"},
		"another kind":       {strings.Replace(good, `,"values":"1x2"`, "", 1), "the rate reads_per_write is of another kind"},
		"unknown members":    {strings.Replace(good, `"taken"`, `"takn"`, 1), "takn"},
		"no number":          {strings.Replace(good, "1x2", "NaNx2", 1), `"NaNx2"; want values of 0 to`},
		"without end":        {strings.Replace(good, "1x2", "Infx2", 1), `"Infx2"; want values of 0 to`},
		"below nothing":      {strings.Replace(good, "1x2", "-1x2", 1), `"-1x2"; want values of 0 to`},
		"huge":               {strings.Replace(good, "1x2", "1e308x2", 1), `"1e308x2"; want values of 0 to`},
		"fewer values":       {strings.Replace(good, `"of":2,`, `"of":500,`, 1), "has 2 values, and is declared to be of 500 cases"},
		"impossible":         {strings.Replace(good, `"cases":1`, `"cases":101`, 1), "101 of 100 cases cannot be"},
		"no baseline":        {"nonsense", "is no baseline"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			s.write("counts.json", sheet(1, 1, 1))
			base, err := eval.ReadBaseline(s.write("b.json", c.text))
			if err == nil {
				_, err = eval.Run(t.Context(), s.load(rateChecks), s.registry(), eval.Options{Baseline: base})
			}
			if !errors.Is(err, eval.ErrBaseline) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want ErrBaseline that says %q", err, c.says)
			}
		})
	}
	s := newStage(t, orders.Plain.Options())
	if _, err := eval.ReadBaseline(s.write("b.json", good)); err != nil {
		t.Errorf("the one that fits: %v", err)
	}
	if _, err := eval.ReadBaseline(s.dir + "/none.json"); !errors.Is(err, eval.ErrBaseline) {
		t.Errorf("one that is not there: %v", err)
	}
}

// TestRatesWithoutBaseline: a forgotten baseline is no pass.
func TestRatesWithoutBaseline(t *testing.T) {
	s := newStage(t, orders.Plain.Options())
	s.write("counts.json", sheet(1, 1, 1))
	for recording, want := range map[bool]eval.Verdict{false: eval.VerdictUnchecked, true: eval.VerdictPassed} {
		r, err := eval.Run(t.Context(), s.load(rateChecks), s.registry(), eval.Options{Recording: recording})
		if err != nil || r.Verdict() != want {
			t.Errorf("recording %t: %q, %v; want %q", recording, r.Verdict(), err, want)
		}
	}
}

// TestRatesOfAnExport counts the ledger's own records.
func TestRatesOfAnExport(t *testing.T) {
	s := newStage(t, orders.Plain.Options())
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var lines []string
	for i, c := range []struct {
		sends, unsent, reads int
		state                ledger.State
		verdict              string
	}{{1, 0, 1, ledger.Settled, "verified"}, {3, 1, 4, ledger.Settled, "verified"}, {2, 1, 1, ledger.Settled, "verified"}, {1, 0, 2, ledger.Review, "duplicated"}, {0, 0, 0, ledger.Held, ""}} {
		r, err := ledger.NewRecord(declared(intent.Create, fmt.Sprint("A-", i), i))
		if err != nil {
			t.Fatal(err)
		}
		r.Sends, r.Unsent, r.Reads, r.State, r.Verdict = c.sends, c.unsent, c.reads, c.state, c.verdict
		if r.LastSend = began; c.state == ledger.Settled {
			r.Settlement, r.SettledAt = ledger.Verified, began.Add(time.Duration(i+1)*time.Second)
		}
		text, _ := json.Marshal(r)
		lines = append(lines, string(text))
	}
	s.write("writes.json", strings.Join(lines, "\n"))
	s.write("answers.jsonl", `{"id":"a","status":"verified","replayed":true}`+"\n"+`{"id":"b","status":"verified","replayed":false}`)
	r, err := eval.Run(t.Context(), s.load(head+"workflow: {name: wf, writes: writes.json}\noutcomes: answers.jsonl\nrates: {compare: {}}\n"), s.registry(), eval.Options{Tier: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, one := range r.Rates {
		got[one.Name] = fmt.Sprintf("%d/%d %.3g", one.Cases, one.Of, one.Value)
	}
	for name, want := range map[string]string{
		"retries": "1/4 0.25", "duplicates": "1/5 0.2", "review": "1/5 0.2", "replays": "1/2 0.5",
		"reads_per_write": "0/4 2", "time_to_verified": "0/3 2",
	} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
}

// TestJUnit reads the XML back: a failure for what is wrong, an error for what
// was not checked, opinions beside.
func TestJUnit(t *testing.T) {
	s := newStage(t, orders.Plain.Options())
	s.there("A-1", 99, "")
	s.write("opinions.jsonl", `{"by":"a model","about":"A-1","says":"all is well ]]> <script>\u0001","score":0.9}`)
	checks := head + `run: {effects: [{destination: orders, kind: order, key: {order_id: A-1}, expect: {amount_cents: 100}}]}
opinions: [opinions.jsonl]
checks: {exactly: true, expected: true, undeclared: [{destination: orders, kind: order}]}
rates: {compare: {retries: {}}}
`
	r := s.eval(checks)
	if r.Verdict() != eval.VerdictWrong {
		t.Errorf("an opinion made it %q", r.Verdict())
	}
	says(t, r, "Opinions, which decide nothing", "a model on A-1 thinks [0.9]: all is well")
	var out bytes.Buffer
	if err := r.JUnit(&out); err != nil {
		t.Fatal(err)
	}
	var read junit.Testsuites
	if err := xml.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatalf("%v:\n%s", err, &out)
	}
	if read.Tests != 4 || read.Failures != 1 || read.Errors != 2 || len(read.Suites) != 2 {
		t.Errorf("%d tests, %d failures, %d errors, %d suites; want 4, 1, 2, 2\n%s", read.Tests, read.Failures, read.Errors, len(read.Suites), &out)
	}
	for _, want := range []string{"/amount_cents is 99, want 100", "name no stamps", "Opinions, which decide nothing"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the XML does not say %q:\n%s", want, &out)
		}
	}
	var back eval.Report
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || back.Verdict() != eval.VerdictWrong || back.Checks[2].Result != eval.NotChecked {
		t.Errorf("JSON: %v, %q\n%s", err, back.Verdict(), text)
	}
	if !strings.Contains(string(text), `"result":"not_checked"`) {
		t.Errorf("JSON does not say not_checked: %s", text)
	}
}

// TestJUnitNamesFindings: each finding is a case of its own, and none is left out of the
// count of failures without a word.
func TestJUnitNamesFindings(t *testing.T) {
	named := []eval.Named{{Name: "orders order A-1", Says: "it is not there"}, {Name: "orders order A-2", Says: "/amount_cents is 99, want 100"}}
	r := eval.Report{Evaluation: "one", Checks: []eval.Check{
		{Name: "expected", Result: eval.Fail, Why: "wrong", Read: 9, Wrong: 5, Offending: named},
		{Name: "exactly", Result: eval.NotChecked, Why: "unread", Read: 2, Unchecked: 2, Unread: named},
		{Name: "unaccounted", Result: eval.Pass, Why: "well", Read: 2},
	}}
	var out bytes.Buffer
	var read junit.Testsuites
	if err := errors.Join(r.JUnit(&out), xml.Unmarshal(out.Bytes(), &read)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range read.Suites[0].Testcases {
		got = append(got, c.Classname+" "+c.Name)
	}
	want := []string{"tier1.expected orders order A-1", "tier1.expected orders order A-2", "tier1.expected 3 more",
		"tier1.exactly orders order A-1", "tier1.exactly orders order A-2", "tier1 unaccounted"}
	if diff := cmp.Diff(want, got); diff != "" || read.Failures != 3 || read.Errors != 2 {
		t.Errorf("%d failures, %d errors, cases (-want +got):\n%s", read.Failures, read.Errors, diff)
	}
}

// TestZeroReport: an empty report has not passed.
func TestZeroReport(t *testing.T) {
	if v := (eval.Report{}).Verdict(); v != eval.VerdictUnchecked {
		t.Errorf("an empty report is %q", v)
	}
}
