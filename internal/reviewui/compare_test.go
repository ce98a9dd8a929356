package reviewui

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// seen makes evidence of records, given as JSON objects of their fields.
func seen(t *testing.T, records ...string) json.RawMessage {
	t.Helper()
	obs := connectors.Observation{Records: []connectors.Record{}, Strength: connectors.Strong}
	for i, fields := range records {
		var f intent.Fields
		if err := json.Unmarshal([]byte(fields), &f); err != nil {
			t.Fatal(err)
		}
		obs.Records = append(obs.Records, connectors.Record{Ref: fmt.Sprintf("rec-%d", i+1), Fields: f})
	}
	text, err := json.Marshal(obs)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// fieldsOf decodes the fields of an intent.
func fieldsOf(t *testing.T, text string) intent.Fields {
	t.Helper()
	if text == "" {
		return nil
	}
	var f intent.Fields
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// judged is the record of a write after a read, with the differences that verify
// itself finds.
func judged(t *testing.T, w intent.WriteIntent, before, after []string) ledger.Record {
	t.Helper()
	r := ledger.Record{Sends: 1, State: ledger.Review}
	var b *connectors.Observation
	if before != nil {
		r.Before = seen(t, before...)
		obs, _, _ := report.Seen(r.Before)
		b = &obs
	}
	if after == nil {
		return r
	}
	r.Evidence = seen(t, after...)
	obs, _, _ := report.Seen(r.Evidence)
	j := verify.Judge(verify.Case{Intent: w, Stamp: w.Stamp(), Before: b, Seen: obs})
	var err error
	if r.Mismatches, err = json.Marshal(j.Mismatches); err != nil {
		t.Fatal(err)
	}
	r.Verdict = j.Verdict.String()
	return r
}

// spoken is a row as its visible text.
func spoken(f field) string {
	side := func(s shown) string {
		var b strings.Builder
		for _, p := range s.Parts {
			if p.Marked {
				b.WriteString("[" + p.Text + "]")
				continue
			}
			b.WriteString(p.Text)
		}
		if s.Note != "" {
			return "(" + s.Note + ")"
		}
		if s.Empty != "" {
			b.WriteString(" " + s.Empty)
		}
		return b.String()
	}
	text := fmt.Sprintf("%s %s: %s | %s | %s", f.Part, f.Path, f.Mark.Word, side(f.Want), side(f.Seen))
	if f.Note != "" {
		text += " | " + f.Note
	}
	return text
}

// besides are writes beside what was seen of them.
var besides = map[string]struct {
	change        func(*intent.WriteIntent)
	expect        string
	before, after []string
	notices       []string
	want          []string
	reason        string
}{
	"as declared": {expect: `{"a":1}`, after: []string{`{"id":"x","a":1.0,"z":9}`},
		want:   []string{`key /id: as requested | "x" | "x"`, `expected /a: as requested | 1 | 1.0`},
		reason: "what the intent does not name is not shown, and numbers are what they denote"},
	"null, missing and empty": {expect: `{"a":null,"b":"","c":"x","d":[]}`, after: []string{`{"id":"x","b":null,"c":"","d":{}}`},
		want: []string{`key /id: as requested | "x" | "x"`, `expected /a: not there | null | (not there)`, `expected /b: differs | "" empty text | null | text wanted, null seen`,
			`expected /c: differs | "x" | "" empty text`, `expected /d: differs | [] empty list | {} empty object | list wanted, object seen`},
		reason: "these are three things"},
	"another kind": {expect: `{"a":1999}`, after: []string{`{"id":"x","a":"1999"}`},
		want:   []string{`key /id: as requested | "x" | "x"`, `expected /a: differs | 1999 | "1999" | number wanted, text seen`},
		reason: "they look alike"},
	"a letter": {expect: `{"a":"Hauptstraße 12"}`, after: []string{`{"id":"x","a":"Hauptstraße 21"}`},
		want:   []string{`key /id: as requested | "x" | "x"`, `expected /a: differs | "Hauptstraße [12]" | "Hauptstraße [21]"`},
		reason: "where two long texts differ is marked"},
	"deep inside": {expect: `{"a":{"b":{"c":1,"d":2}},"e":[1,{"f":2}]}`, after: []string{`{"id":"x","a":{"b":{"c":1,"d":3}},"e":[1,{"f":3}]}`},
		want: []string{`key /id: as requested | "x" | "x"`, `expected /a/b/c: as requested | 1 | 1`, `expected /a/b/d: differs | 2 | 3`,
			`expected /e: differs | [1,{"f":2}] | [1,{"f":3}] | at /e/1/f`},
		reason: "one member of an object is one row; of a list the place is named"},
	"above": {expect: `{"a":{"b":1}}`, after: []string{`{"id":"x","a":null}`},
		want:   []string{`key /id: as requested | "x" | "x"`, `expected /a/b: differs | 1 | (not there)`},
		reason: "the object itself is something else"},
	"names that need escapes": {expect: `{"a/b":1,"a":{"b":2}}`, after: []string{`{"id":"x","a/b":9,"a":{"b":2}}`},
		want:   []string{`key /id: as requested | "x" | "x"`, `expected /a/b: as requested | 2 | 2`, `expected /a~1b: differs | 1 | 9`},
		reason: "a slash in a name is no step down"},
	"ignored": {expect: `{"a":1,"b":2}`, change: func(w *intent.WriteIntent) { w.Ignore = []string{"/b"} }, after: []string{`{"id":"x","a":1,"b":3}`},
		want:   []string{`key /id: as requested | "x" | "x"`, `expected /a: as requested | 1 | 1`, `expected /b: ignored | 2 | 3`},
		reason: "what is ignored is not shown as requested"},
	"absent and there": {expect: `{"a":1}`, change: func(w *intent.WriteIntent) { w.Absent = []string{"/b", "/c"} }, after: []string{`{"id":"x","a":1,"b":null}`},
		want: []string{`key /id: as requested | "x" | "x"`, `expected /a: as requested | 1 | 1`, `absent /b: there, and should not be there | (must not be there) | null`,
			`absent /c: as requested | (must not be there) | (not there)`},
		reason: "a field that is there with null is there"},
	"payload": {expect: `{"a":1}`, change: func(w *intent.WriteIntent) { w.Payload = intent.Fields{"p": "secretly other"} }, after: []string{`{"id":"x","a":1,"p":"another"}`},
		want:   []string{`key /id: as requested | "x" | "x"`, `expected /a: as requested | 1 | 1`, `payload /p: sent, not verified | "[secretly ]other" | "[an]other"`},
		reason: "payload is never called as requested"},
	"collateral": {expect: `{"a":2}`, change: func(w *intent.WriteIntent) { w.Write = intent.Update }, before: []string{`{"id":"x","a":1,"n":"old","g":1}`}, after: []string{`{"id":"x","a":2,"n":"new","k":5}`},
		want: []string{`key /id: as requested | "x" | "x"`, `expected /a: as requested | 2 | 2`, `not asked for /g: gone, but not requested | 1 | (not there) | the value before is as requested`,
			`not asked for /k: new, but not requested | (nothing was there) | 5`, `not asked for /n: changed, but not requested | "old" | "new" | the value before is as requested`},
		reason: "what the intent does not ask for is shown"},
	"two records": {expect: `{"a":1}`, after: []string{`{"id":"x","a":1}`, `{"id":"x","a":2}`}, notices: []string{"≠ Records: 1 wanted, 2 seen."},
		want: []string{`key /id: as requested | "x" | "x"`, `expected /a: as requested | 1 | 1`, "--",
			`key /id: as requested | "x" | "x"`, `expected /a: differs | 1 | 2`},
		reason: "each record is compared for itself"},
	"no record": {expect: `{"a":1}`, after: []string{},
		want:   []string{`key /id: no record | "x" | (no record)`, `expected /a: no record | 1 | (no record)`},
		reason: "nothing is there"},
	"not read": {expect: `{"a":1}`,
		want:   []string{`key /id: not read yet | "x" | (not read)`, `expected /a: not read yet | 1 | (not read)`},
		reason: "what was not read is not absent"},
	"deleted": {change: func(w *intent.WriteIntent) { w.Write = intent.Delete }, after: []string{},
		want: []string{`key /id: no record, as requested | "x" | (no record)`}, reason: "no record is what a delete wants"},
	"still there": {change: func(w *intent.WriteIntent) { w.Write = intent.Delete }, after: []string{`{"id":"x"}`}, notices: []string{"≠ Records: 0 wanted, 1 seen."},
		want: []string{`key /id: still there | "x" | "x"`}, reason: "it is not gone"},
	"invisible": {expect: `{"a":"pay\u202e this\u200b"}`, after: []string{`{"id":"x","a":"pay this\u200b"}`},
		want:   []string{`key /id: as requested | "x" | "x"`, `expected /a: differs | "pay[\u202e] this\u200b" | "pay this\u200b"`},
		reason: "what cannot be seen is written out"},
}

func TestDeclaredBesideObserved(t *testing.T) {
	for name, tt := range besides {
		t.Run(name, func(t *testing.T) {
			w := intent.WriteIntent{Tenant: "acme", Workflow: "w", Tool: "t", Destination: "d", Kind: "k", Write: intent.Create,
				Key: intent.Fields{"id": "x"}, Expect: fieldsOf(t, tt.expect)}
			if tt.change != nil {
				tt.change(&w)
			}
			c := compare(service.View{Record: judged(t, w, tt.before, tt.after), Intent: w, Profile: &connectors.Profile{}}, newPainter())
			var got []string
			for i, s := range c.Sheets {
				if i > 0 {
					got = append(got, "--")
				}
				for _, f := range s.Fields {
					got = append(got, spoken(f))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.notices, c.Notices); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}

// TestACheckMarkIsAComparison: whatever is recorded of a read, a row has the mark
// of equality only where its two values are equal under the rules that hold for
// it; where the rules or the values are not known here, only what the engine
// compared has it.
func TestACheckMarkIsAComparison(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 18))
	values := []any{"a", "A", " a", "b", json.Number("1"), json.Number("1.0"), json.Number("2"), nil, true, "", []any{"a"}, "redacted:0123456789abcdef", "redacted:fedcba9876543210"}
	rules := []intent.Comparison{nil, {{Name: intent.RuleFold}}, {{Name: intent.RuleTrim}}, {{Name: intent.RuleNumeric}}}
	recorded := []string{"[]", `[{"path":"","problem":"not ours","got":"rec-1"}]`, `[{"path":"/count","problem":"count","want":1,"got":2}]`, `[{"path":"/f0","problem":"differs","want":1,"got":2}]`}
	marks := map[string]int{}
	for range 8_000 {
		w := intent.WriteIntent{Write: []intent.WriteType{intent.Create, intent.Update}[rnd.IntN(2)], Key: intent.Fields{"id": "x"},
			Expect: intent.Fields{}, Require: intent.Fields{}, Compare: map[string]intent.Comparison{}}
		got := []intent.Fields{{"id": values[rnd.IntN(3)]}, {"id": values[rnd.IntN(3)]}}
		for i := range 3 {
			name := fmt.Sprintf("f%d", i)
			w.Expect[name] = values[rnd.IntN(len(values))]
			if w.Write == intent.Update {
				w.Require[name] = values[rnd.IntN(len(values))]
			}
			got[0][name], got[1][name] = values[rnd.IntN(len(values))], values[rnd.IntN(len(values))]
			if r := rules[rnd.IntN(len(rules))]; r != nil {
				w.Compare["/"+name] = r
			}
		}
		if rnd.IntN(4) == 0 {
			w.Ignore = []string{"/f2"}
		}
		v := service.View{Intent: w, Record: ledger.Record{Sends: rnd.IntN(2)}}
		if rnd.IntN(2) == 0 {
			v.Profile = &connectors.Profile{Compare: map[string]intent.Comparison{"/f1": rules[rnd.IntN(len(rules))]}}
		}
		obs := connectors.Observation{Records: []connectors.Record{{Ref: "rec-1", Fields: got[0]}, {Ref: "rec-2", Fields: got[1]}}[:1+rnd.IntN(2)]}
		evidence, err := json.Marshal(obs)
		if err != nil {
			t.Fatal(err)
		}
		verdicts := []verify.Verdict{verify.Mismatched, verify.Duplicated, verify.Stale, verify.Indeterminate, verify.Verified}
		read := ledger.Event{Kind: ledger.EvRead, Before: v.Record.Sends == 0, Verdict: verdicts[rnd.IntN(len(verdicts))].String(),
			Evidence: evidence, Mismatches: json.RawMessage(recorded[rnd.IntN(len(recorded))])}
		if !read.Before {
			v.Record.Evidence, v.Record.Mismatches = read.Evidence, read.Mismatches
		}
		v.Events = []ledger.Event{read, {Kind: ledger.EvRead, Before: read.Before, Verdict: "unavailable"}}[:1+rnd.IntN(2)]
		var byProf map[string]intent.Comparison
		if v.Profile != nil {
			byProf = v.Profile.Compare
		}
		// The differences before an update are from its requirements, and nothing
		// declared was compared then.
		differs := read.Verdict != "duplicated" && strings.Contains(string(read.Mismatches), "/f0")
		compared := map[string]bool{
			"expected": read.Verdict == "verified" || differs && (w.Write == intent.Create || !read.Before),
			"required": read.Before && (read.Verdict == "indeterminate" || read.Verdict != "verified" && differs),
		}
		compared["key"] = compared["expected"]
		for i, sheet := range compare(v, newPainter()).Sheets {
			for _, f := range sheet.Fields {
				marks[f.Part+" "+f.Mark.Class]++
				name := strings.TrimPrefix(f.Path, "/")
				want := map[string]intent.Fields{"key": w.Key, "expected": w.Expect, "required": w.Require}[f.Part][name]
				one := intent.WriteIntent{Expect: intent.Fields{name: want}, Compare: w.Compare}
				equal := len(verify.Diff(one, byProf, got[i])) == 0
				hidden := strings.Contains(fmt.Sprint(want, got[i][name]), "redacted:")
				known := compared[f.Part] && len(obs.Records) == 1 && (v.Profile == nil || hidden)
				if f.Mark.Class == "same" && !equal && !known {
					t.Fatalf("%s %s is marked %q: declared %v, seen %v, read %+v", f.Part, f.Path, f.Mark.Word, want, got[i][name], read)
				}
			}
		}
	}
	for _, part := range []string{"key", "expected", "required"} {
		for _, class := range []string{"same", "differs", "unread"} {
			if n := marks[part+" "+class]; n < 200 {
				t.Errorf("%d rows are %s and %s; the test is about nothing", n, part, class)
			}
		}
	}
}

// befores are pre-states of an update that was not sent.
var befores = map[string]struct {
	verdict    verify.Verdict
	mismatches string
	known      bool // the profile is
	found      []string
	want       []string
	reason     string
}{
	"two records": {verify.Duplicated, `[{"path":"/count","problem":"count","want":1,"got":2}]`, true, []string{`{"id":"x","status":"closed","b":"B"}`, `{"id":"x","status":"open","b":"b"}`},
		[]string{`expected /b: differs | "b" | "B"`, `expected /status: as requested | "closed" | "closed"`, `required /status: differs | "open" | "closed"`,
			`expected /b: as requested | "b" | "b"`, `expected /status: differs | "closed" | "open"`, `required /status: holds | "open" | "open"`},
		"the engine compared neither of them"},
	"two records, and rules that are not known": {verify.Duplicated, `[{"path":"/count","problem":"count","want":1,"got":2}]`, false, []string{`{"id":"x","status":"Open","b":"b"}`, `{"id":"x","status":"open","b":"B"}`},
		[]string{`expected /b: as requested | "b" | "b"`, `expected /status: cannot be compared here | "closed" | "Open"`, `required /status: cannot be compared here | "[o]pen" | "[O]pen"`,
			`expected /b: cannot be compared here | "b" | "B"`, `expected /status: cannot be compared here | "closed" | "open"`, `required /status: holds | "open" | "open"`},
		"equal values are equal under every rule, others may be"},
	"unmet": {verify.Mismatched, `[{"path":"/status","problem":"differs","want":"open","got":"closed"}]`, false, []string{`{"id":"x","status":"closed","b":"B"}`},
		[]string{`expected /b: cannot be compared here | "b" | "B"`, `expected /status: as requested | "closed" | "closed"`, `required /status: differs | "open" | "closed"`},
		"what is recorded is about what is required alone"},
	"met, by rules that are not known": {verify.Indeterminate, "[]", false, []string{`{"id":"x","status":"Open","b":"b"}`},
		[]string{`expected /b: as requested | "b" | "b"`, `expected /status: cannot be compared here | "closed" | "Open"`, `required /status: holds | "[o]pen" | "[O]pen"`},
		"the engine compared what is required, and found no difference"},
}

func TestRequiredBesideWhatWasThere(t *testing.T) {
	w := intent.WriteIntent{Write: intent.Update, Key: intent.Fields{"id": "x"}, Expect: intent.Fields{"status": "closed", "b": "b"}, Require: intent.Fields{"status": "open"}}
	for name, tt := range befores {
		t.Run(name, func(t *testing.T) {
			evidence := seen(t, tt.found...)
			v := service.View{Record: ledger.Record{State: ledger.Review, Before: evidence}, Intent: w,
				Events: []ledger.Event{{Kind: ledger.EvRead, Before: true, Verdict: tt.verdict.String(), Evidence: evidence, Mismatches: json.RawMessage(tt.mismatches)}}}
			if tt.known {
				v.Profile = &connectors.Profile{}
			}
			var got []string
			for _, s := range compare(v, newPainter()).Sheets {
				for _, f := range s.Fields {
					if f.Part != "key" {
						got = append(got, spoken(f))
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestDifferencesThatWereCutAreUnknown: a judgement carries so many differences at
// most, so that a field which has none need not be equal.
func TestDifferencesThatWereCutAreUnknown(t *testing.T) {
	w := intent.WriteIntent{Write: intent.Create, Key: intent.Fields{"id": "x"}, Expect: intent.Fields{}}
	found := intent.Fields{"id": "x"}
	for i := range 100 {
		name := fmt.Sprintf("f%02d", i)
		w.Expect[name], found[name] = "a", "b"
	}
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range compare(service.View{Record: judged(t, w, nil, []string{string(text)}), Intent: w}, newPainter()).Sheets {
		for _, f := range s.Fields {
			if f.Part == "expected" && f.Mark.Class == "same" {
				t.Fatal(spoken(f))
			}
		}
	}
}

// TestACreateOverAnExistingRecordDiffers: the judgement of the pre-state rests on
// the stamp alone, and records no difference of a field.
func TestACreateOverAnExistingRecordDiffers(t *testing.T) {
	w := intent.WriteIntent{Write: intent.Create, Key: intent.Fields{"id": "x"}, Expect: intent.Fields{"amount": json.Number("2999")}}
	evidence := seen(t, `{"id":"x","amount":1999}`)
	events := []ledger.Event{{Kind: ledger.EvRead, Before: true, Verdict: "mismatched", Evidence: evidence, Mismatches: json.RawMessage(`[{"path":"","problem":"not ours","got":"rec-1"}]`)}}
	c := compare(service.View{Record: ledger.Record{State: ledger.Review, Before: evidence}, Events: events, Intent: w, Profile: &connectors.Profile{}}, newPainter())
	if got, want := spoken(c.Sheets[0].Fields[1]), "expected /amount: differs | 2999 | 1999"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAFailedReadHidesNothing: what the last successful read found stays, with a
// word about the one that failed.
func TestAFailedReadHidesNothing(t *testing.T) {
	w := intent.WriteIntent{Write: intent.Create, Key: intent.Fields{"id": "x"}, Expect: intent.Fields{"a": "b"}}
	r := ledger.Record{ID: "wr_1", State: ledger.Checking, Sends: 1}
	read := ledger.Event{Kind: ledger.EvRead, Verdict: "mismatched", Evidence: seen(t, `{"id":"x","a":"c"}`), Mismatches: json.RawMessage(`[{"path":"/a","problem":"differs","want":"b","got":"c"}]`)}
	failed := ledger.Event{Kind: ledger.EvRead, Verdict: "unavailable", Reason: "503"}
	for _, e := range []ledger.Event{read, failed} {
		var err error
		if r, err = ledger.Apply(r, e, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	c := compare(service.View{Record: r, Events: []ledger.Event{read, failed}, Intent: w, Profile: &connectors.Profile{}}, newPainter())
	if got, want := spoken(c.Sheets[0].Fields[1]), `expected /a: differs | "b" | "c"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !strings.Contains(c.Headline, "The latest read failed") {
		t.Errorf("the headline %q does not name the read that failed", c.Headline)
	}
}

func TestAForeignRecordIsShownAsSuch(t *testing.T) {
	w := intent.WriteIntent{Write: intent.Create, Key: intent.Fields{"id": "x"}, Expect: intent.Fields{"a": "b"}}
	evidence := seen(t, `{"id":"x","a":"b"}`)
	events := []ledger.Event{{Kind: ledger.EvRead, Before: true, Verdict: "mismatched", Evidence: evidence, Mismatches: json.RawMessage(`[{"path":"","problem":"not ours","got":"rec-1"}]`)}}
	c := compare(service.View{Record: ledger.Record{State: ledger.Review, Before: evidence}, Events: events, Intent: w}, newPainter())
	if want := []string{"≠ The record rec-1 has the business key, and not the stamp of this write."}; cmp.Diff(want, c.Notices) != "" {
		t.Errorf("notices %q, want %q", c.Notices, want)
	}
	if !strings.Contains(c.Headline, "before anything was sent") {
		t.Errorf("the headline %q does not say that it is the state from before", c.Headline)
	}
}

func TestTheWayOfReadingIsShown(t *testing.T) {
	for way, want := range map[connectors.Independence]string{
		connectors.OwnCall:        "a strong read, which shows everything applied before it, by standby.",
		connectors.OtherServer:    "before it, by standby; a call to another server than the one that takes writes.",
		connectors.OtherLogin:     "before it, by standby; a call with another login than the one that writes.",
		connectors.OtherInterface: "before it, by standby; a call through another interface than the one that takes writes.",
		"<b>satellite</b>":        "before it, by standby; a call of its own.",
	} {
		evidence, err := json.Marshal(connectors.Observation{Strength: connectors.Strong, Path: "standby", Independent: way})
		if err != nil {
			t.Fatal(err)
		}
		if c := compare(service.View{Record: ledger.Record{Sends: 1, Evidence: evidence}}, newPainter()); !strings.HasSuffix(c.When, want) {
			t.Errorf("%q: %s\nwant it to end with: %s", way, c.When, want)
		}
	}
}

func TestTooLargeEvidenceIsReported(t *testing.T) {
	w := intent.WriteIntent{Write: intent.Create, Key: intent.Fields{"id": "x"}, Expect: intent.Fields{"a": "b"}}
	c := compare(service.View{Record: ledger.Record{Sends: 1, Evidence: json.RawMessage(`{"too_large":2000000,"sha256":"ab"}`)}, Intent: w}, newPainter())
	if !strings.Contains(c.Headline, "2000000 bytes, too many to keep") || c.Sheets[0].Fields[0].Mark != markUnread {
		t.Errorf("headline %q, mark %q", c.Headline, c.Sheets[0].Fields[0].Mark.Word)
	}
}

func TestHowFieldsAreCompared(t *testing.T) {
	c := comparer{w: intent.WriteIntent{Compare: map[string]intent.Comparison{"/a": {{Name: intent.RuleNumeric, Tolerance: "0.005"}}, "/b": {}}},
		byProf: map[string]intent.Comparison{"/a": {{Name: intent.RuleFold}}, "/b": {{Name: intent.RuleFold}}, "/c": {{Name: intent.RuleTrim}, {Name: intent.RuleTime, Precision: "1s"}}}}
	for path, want := range map[string]string{
		"/a": "as numbers, ± 0.005, as the intent says", "/b": "exact, as the intent says",
		"/c/d": "blanks at the ends do not count; then as times, to 1s, as this destination needs", "/e": "exact",
	} {
		if got := c.how(path); got != want {
			t.Errorf("%s is compared %q, want %q", path, got, want)
		}
	}
}

func TestWhatDiffersIsNeverLeftOut(t *testing.T) {
	expect, got := map[string]any{}, map[string]any{}
	for i := range 3 * maxFields {
		name := fmt.Sprintf("f%03d", i)
		expect[name], got[name] = "v", "v"
	}
	got["f359"] = "other"
	w := intent.WriteIntent{Write: intent.Create, Key: intent.Fields{"id": "x"}, Expect: expect}
	got["id"] = "x"
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	s := compare(service.View{Record: judged(t, w, nil, []string{string(text)}), Intent: w, Profile: &connectors.Profile{}}, newPainter()).Sheets[0]
	if len(s.Fields) != maxFields || s.More != 3*maxFields+1-maxFields {
		t.Errorf("%d rows and %d more", len(s.Fields), s.More)
	}
	if s.Fields[0].Path != "/f359" || s.Fields[0].Mark != markDiffers {
		t.Errorf("first is %s, which %s", s.Fields[0].Path, s.Fields[0].Mark.Word)
	}
}
