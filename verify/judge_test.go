package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

const ourStamp = "rb-ours"

// seeing returns an observation.
func seeing(strength connectors.Strength, records ...connectors.Record) connectors.Observation {
	return connectors.Observation{Strength: strength, Records: records}
}

func strong(records ...connectors.Record) connectors.Observation {
	return seeing(connectors.Strong, records...)
}

func weak(records ...connectors.Record) connectors.Observation {
	return seeing(connectors.Weak, records...)
}

// record returns a record "A" with fields and a stamp.
func record(t *testing.T, stamp, text string) connectors.Record {
	t.Helper()
	return connectors.Record{Ref: "A", Stamp: stamp, Fields: fields(t, text)}
}

func named(r connectors.Record, ref string) connectors.Record {
	r.Ref = ref
	return r
}

func versioned(r connectors.Record, version string) connectors.Record {
	r.Version = version
	return r
}

// paid is the intent of all these tables: {"id":"1"} paid in full.
func paid(write intent.WriteType) intent.WriteIntent {
	w := intent.WriteIntent{Write: write, Key: intent.Fields{"id": "1"}}
	if write != intent.Delete {
		w.Expect = intent.Fields{"state": "paid"}
	}
	return w
}

const (
	isPaid = `{"id":"1","state":"paid"}`
	isOpen = `{"id":"1","state":"open"}`
)

// judgeCase is one row of the tables below.
type judgeCase struct {
	reason  string
	write   intent.WriteType
	count   int
	profile connectors.Profile
	before  *connectors.Observation
	seen    connectors.Observation
	since   time.Duration
	change  func(*intent.WriteIntent)

	want       verify.Verdict
	conflict   bool
	conclusive bool
	found      []string // mismatches
	record     bool     // the judgement names the record
	ours       bool     // beside another actor's
	undone     bool     // nothing of the write is left
}

func (c judgeCase) run(t *testing.T, judge func(verify.Case) verify.Judgement) {
	t.Helper()
	w := paid(c.write)
	w.Count = c.count
	if c.change != nil {
		c.change(&w)
	}
	k := verify.Case{Intent: w, Profile: c.profile, Stamp: ourStamp, Before: c.before, Seen: c.seen, Since: c.since}
	j := judge(k)
	if j.Verdict != c.want || j.Conflict != c.conflict || j.Conclusive != c.conclusive {
		t.Errorf("%s, conflict %t, conclusive %t; want %s, %t, %t: %s (%s)", j.Verdict, j.Conflict, j.Conclusive, c.want, c.conflict, c.conclusive, c.reason, j.Reason)
	}
	if diff := cmp.Diff(append([]string{}, c.found...), describeAll(j.Mismatches)); diff != "" {
		t.Errorf("mismatches (-want +got): %s\n%s", c.reason, diff)
	}
	if (j.Record != nil) != c.record || j.Ours != c.ours || j.Undone != c.undone {
		t.Errorf("record %v, ours %t, undone %t; want one: %t, %t, %t: %s", j.Record, j.Ours, j.Undone, c.record, c.ours, c.undone, c.reason)
	}
	if again := judge(k); !cmp.Equal(j, again) {
		t.Errorf("not pure: %+v, then %+v", j, again)
	}
}

var (
	plain     = connectors.Profile{}
	settles   = connectors.Profile{Settle: connectors.Within(time.Minute)}
	stamped   = connectors.Profile{Stamped: true, Settle: connectors.Within(time.Minute)}
	stampsAll = connectors.Profile{Stamped: true, StampsUpdates: true}
	freshKeys = connectors.Profile{FreshKeys: true}
)

func nothing() *connectors.Observation { o := strong(); return &o }

func one(r connectors.Record) *connectors.Observation { o := strong(r); return &o }

func TestJudgeCreate(t *testing.T) {
	ours, theirs := record(t, ourStamp, isPaid), record(t, "rb-theirs", isPaid)
	cases := map[string]judgeCase{
		"verified by a strong read": {reason: "one record, as expected, read after the send", write: intent.Create, seen: strong(ours),
			want: verify.Verified, conclusive: true, record: true},
		"verified by its stamp": {reason: "a record that has our stamp was made by our send, however weak the read", write: intent.Create,
			profile: stamped, seen: weak(ours), want: verify.Verified, record: true},
		"verified by a fresh key": {reason: "nothing older can be under a key that we made", write: intent.Create,
			profile: freshKeys, seen: weak(theirs), want: verify.Verified, record: true},
		"weak and plain": {reason: "it may have been there before the send", write: intent.Create,
			seen: weak(ours), want: verify.Indeterminate},
		"weak before the settle time": {reason: "a minute has not passed", write: intent.Create,
			profile: settles, seen: weak(ours), since: 59 * time.Second, want: verify.Indeterminate},
		"weak after the settle time": {reason: "the read cannot be older than the send", write: intent.Create,
			profile: settles, seen: weak(ours), since: time.Minute, want: verify.Verified, conclusive: true, record: true},
		"strong, begun before the send": {reason: "a strong read does not show what came after it", write: intent.Create,
			seen: strong(ours), since: -1, want: verify.Indeterminate},
		"unheard-of strength": {reason: "what is not declared strong is weak", write: intent.Create,
			seen: seeing("very strong", ours), want: verify.Indeterminate},
		"absent": {reason: "nothing there", write: intent.Create, seen: strong(), want: verify.Absent, conclusive: true},
		"absent, weak": {reason: "nothing there yet", write: intent.Create, profile: settles, seen: weak(),
			since: 59 * time.Second, want: verify.Absent},
		"mismatched": {reason: "another value", write: intent.Create, profile: stamped, seen: strong(record(t, ourStamp, isOpen)),
			want: verify.Mismatched, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"another actor's": {reason: "another tenant's or workflow's record under our key", write: intent.Create, profile: stamped, seen: strong(theirs),
			want: verify.Mismatched, conflict: true, conclusive: true, found: []string{` not ours: "A"`}},
		"without stamp": {reason: "no stamp where ours would be shown", write: intent.Create, profile: stamped, seen: strong(record(t, "", isPaid)),
			want: verify.Mismatched, conflict: true, conclusive: true, found: []string{` not ours: "A"`}},
		"ours beside another actor's": {reason: "the key matches two records, one was declared", write: intent.Create, profile: stamped,
			seen: strong(ours, named(theirs, "B")), want: verify.Mismatched, conflict: true, ours: true, conclusive: true, found: []string{` not ours: "B"`}},
		"there before": {reason: "what was there before a create is another actor's, also where no stamp says so", write: intent.Create,
			before: one(record(t, "", isOpen)), seen: strong(record(t, "", isOpen)), want: verify.Mismatched, conflict: true, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"in place of another": {reason: "a create changes no record that there was", write: intent.Create, profile: stamped,
			before: one(named(record(t, "rb-theirs", `{"id":"1","state":"open","note":"n"}`), "B")), seen: strong(ours), want: verify.Verified, conclusive: true, record: true},
		"duplicated": {reason: "two of ours", write: intent.Create, profile: stamped, seen: strong(ours, named(ours, "B")),
			want: verify.Duplicated, conclusive: true, found: []string{`/count count: 1 > 2`}},
		"duplicated, distinguished by nothing": {reason: "two under the key", write: intent.Create, seen: strong(ours, named(theirs, "B")),
			want: verify.Duplicated, conclusive: true, found: []string{`/count count: 1 > 2`}},
		"duplicated among others": {reason: "two of ours and one of theirs", write: intent.Create, profile: stamped,
			seen: strong(ours, named(ours, "B"), named(theirs, "C")), want: verify.Duplicated, conclusive: true, found: []string{`/count count: 1 > 2`}},
		"declared number": {reason: "three were declared", write: intent.Create, count: 3, profile: stamped,
			seen: strong(ours, named(ours, "B"), named(ours, "C")), want: verify.Verified, conclusive: true},
		"too few": {reason: "two of three", write: intent.Create, count: 3, profile: stamped, seen: strong(ours, named(ours, "B")),
			want: verify.Mismatched, conclusive: true, found: []string{`/count count: 3 > 2`}},
		"one of three differs": {reason: "each record counts", write: intent.Create, count: 3, profile: stamped,
			seen: strong(ours, named(ours, "B"), named(record(t, ourStamp, isOpen), "C")), want: verify.Mismatched, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.run(t, verify.Judge) })
	}
}

func TestJudgeWithoutStamp(t *testing.T) {
	w := paid(intent.Create)
	j := verify.Judge(verify.Case{Intent: w, Profile: stamped, Seen: strong(record(t, "", isPaid))})
	if j.Verdict != verify.Mismatched || !j.Conflict {
		t.Errorf("%s: an empty stamp names no write", j.Verdict)
	}
}

const whole = `{"id":"1","state":"open","note":"n","seen":1,"a":{"x":1,"y":1}}`

var updates = connectors.Profile{Volatile: []string{"/seen"}}

func TestJudgeUpdate(t *testing.T) {
	open, done := record(t, "", isOpen), record(t, "", isPaid)
	for name, c := range map[string]judgeCase{
		"verified": {reason: "a strong read after the send", write: intent.Update, before: one(open), seen: strong(done),
			want: verify.Verified, conclusive: true, record: true},
		"weak": {reason: "ABA: the value may be from before it became what the pre-state shows", write: intent.Update, profile: settles,
			before: one(open), seen: weak(done), since: time.Second, want: verify.Indeterminate},
		"weak, settled": {reason: "the read cannot be older than the send", write: intent.Update, profile: settles,
			before: one(open), seen: weak(done), since: time.Minute, want: verify.Verified, conclusive: true, record: true},
		"weak, stamped at creation only": {reason: "our stamp on it would be from another write", write: intent.Update,
			profile: connectors.Profile{Stamped: true}, before: one(record(t, ourStamp, isOpen)), seen: weak(record(t, ourStamp, isPaid)), want: verify.Indeterminate},
		"weak, has our stamp": {reason: "updates are stamped there: this was our write", write: intent.Update, profile: stampsAll,
			before: one(open), seen: weak(record(t, ourStamp, isPaid)), want: verify.Verified, record: true},
		"weak, has another stamp": {reason: "another actor's update with the same values", write: intent.Update, profile: stampsAll,
			before: one(open), seen: weak(record(t, "rb-theirs", isPaid)), want: verify.Indeterminate},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, verify.Judge) })
	}
}

func TestJudgeUpdateAsBefore(t *testing.T) {
	open, done := record(t, "", isOpen), record(t, "", isPaid)
	rich := func(text string) connectors.Record { return record(t, "", text) }
	before := rich(whole)
	for name, c := range map[string]judgeCase{
		"stale": {reason: "a replica that lags shows the old value: not yet a mismatch", write: intent.Update, profile: settles,
			before: one(open), seen: weak(open), want: verify.Stale, found: []string{`/state differs: "paid" > "open"`}},
		"stale, strong": {reason: "still as it was before", write: intent.Update, before: one(open), seen: strong(open),
			want: verify.Stale, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"stale but for volatile fields": {reason: "what the destination changes by itself does not count", write: intent.Update, profile: updates,
			before: one(before), seen: strong(rich(`{"id":"1","state":"open","note":"n","seen":2,"a":{"x":1,"y":1}}`)),
			want: verify.Stale, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"stale but for ignored fields": {reason: "what the intent ignores does not count", write: intent.Update,
			change: func(w *intent.WriteIntent) { w.Ignore = []string{"/note"} }, before: one(before),
			seen: strong(rich(`{"id":"1","state":"open","note":"m","seen":1,"a":{"x":1,"y":1}}`)),
			want: verify.Stale, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"mismatched": {reason: "neither as before nor as expected", write: intent.Update, before: one(open), seen: strong(record(t, "", `{"id":"1","state":"void"}`)),
			want: verify.Mismatched, conclusive: true, found: []string{`/state differs: "paid" > "void"`}},
		"half applied": {reason: "another field changed: it is not as before", write: intent.Update, before: one(before),
			seen: strong(rich(`{"id":"1","state":"open","note":"m","seen":1,"a":{"x":1,"y":1}}`)),
			want: verify.Mismatched, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"without pre-state": {reason: "without one nothing is known to be as before", write: intent.Update, seen: strong(open),
			want: verify.Mismatched, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"another version": {reason: "another actor wrote to it, and it looks as before", write: intent.Update, before: one(versioned(open, "1")), seen: strong(versioned(open, "2")),
			want: verify.Mismatched, undone: true, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"our stamp, old fields": {reason: "our send was applied and the field dropped", write: intent.Update, profile: stampsAll, before: one(open), seen: strong(record(t, ourStamp, isOpen)),
			want: verify.Mismatched, undone: true, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"swapped": {reason: "another record with the same fields is not the one from before", write: intent.Update, before: one(open), seen: strong(named(open, "B")),
			want: verify.Mismatched, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"records without ids": {reason: "the only one is the same one", write: intent.Update, before: one(named(open, "")), seen: strong(named(open, "")),
			want: verify.Stale, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"gone": {reason: "another actor removed it: that is not the state from before", write: intent.Update, before: one(open), seen: strong(),
			want: verify.Absent, conflict: true, conclusive: true},
		"gone, no pre-state": {reason: "it is unknown what was there", write: intent.Update, seen: strong(), want: verify.Absent, conflict: true, conclusive: true},
		"two": {reason: "the key no longer names one record", write: intent.Update, before: one(open), seen: strong(done, named(done, "B")),
			want: verify.Duplicated, conclusive: true, found: []string{`/count count: 1 > 2`}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, verify.Judge) })
	}
}

func TestJudgeCollateral(t *testing.T) {
	open, done := record(t, "", isOpen), record(t, "", isPaid)
	rich := func(text string) connectors.Record { return record(t, "", text) }
	before := rich(whole)
	for name, c := range map[string]judgeCase{
		"collateral": {reason: "an undeclared change", write: intent.Update, before: one(before),
			seen: strong(rich(`{"id":"1","state":"paid","note":"lost","seen":1,"a":{"x":1,"y":1}}`)),
			want: verify.Collateral, conclusive: true, found: []string{`/note changed: "n" > "lost"`}},
		"collateral, null": {reason: "null is a change, and is not missing", write: intent.Update, before: one(before),
			seen: strong(rich(`{"id":"1","state":"paid","note":null,"seen":1,"a":{"x":1,"y":1}}`)),
			want: verify.Collateral, conclusive: true, found: []string{`/note changed: "n" > null`}},
		"collateral, gone and new": {reason: "a field that went and one that came", write: intent.Update, before: one(before),
			seen: strong(rich(`{"id":"1","state":"paid","more":1,"seen":1,"a":{"x":1,"y":1}}`)),
			want: verify.Collateral, conclusive: true, found: []string{`/more not expected: 1`, `/note not there: "n"`}},
		"collateral beside a named member": {reason: "naming one member does not speak of its neighbours", write: intent.Update, before: one(before),
			change: func(w *intent.WriteIntent) { w.Expect["a"] = map[string]any{"x": "2"} },
			seen:   strong(rich(`{"id":"1","state":"paid","note":"n","seen":1,"a":{"x":"2"}}`)),
			want:   verify.Collateral, conclusive: true, found: []string{`/a changed: {"x":1,"y":1} > {"x":"2"}`}},
		"named member alone": {reason: "the rest of the object is as before", write: intent.Update, before: one(before),
			change: func(w *intent.WriteIntent) { w.Expect["a"] = map[string]any{"x": "2"} },
			seen:   strong(rich(`{"id":"1","state":"paid","note":"n","seen":1,"a":{"x":"2","y":1.0}}`)),
			want:   verify.Verified, conclusive: true, record: true},
		"member of a new object": {reason: "to set a member is to make its object", write: intent.Update, before: one(rich(`{"id":"1","state":"open","b":null}`)),
			change: func(w *intent.WriteIntent) {
				w.Expect["a"] = map[string]any{"x": "2"}
				w.Expect["b"] = map[string]any{"x": "2"}
			},
			seen: strong(rich(`{"id":"1","state":"paid","a":{"x":"2"},"b":{"x":"2"}}`)), want: verify.Verified, conclusive: true, record: true},
		"new empty object": {reason: "it was not requested", write: intent.Update, before: one(open),
			seen: strong(rich(`{"id":"1","state":"paid","a":{}}`)), want: verify.Collateral, conclusive: true, found: []string{`/a not expected: {}`}},
		"payload, absent and volatile": {reason: "what was sent, what was to go, and what changes by itself", write: intent.Update, profile: updates, before: one(before),
			change: func(w *intent.WriteIntent) {
				w.Payload = intent.Fields{"a": map[string]any{"y": "2"}}
				w.Absent = []string{"/note"}
			},
			seen: strong(rich(`{"id":"1","state":"paid","seen":9,"a":{"x":1,"y":2}}`)), want: verify.Verified, conclusive: true, record: true},
		"element changed": {reason: "arrays are compared in order", write: intent.Update, before: one(rich(`{"id":"1","state":"open","l":[1,2]}`)),
			seen: strong(rich(`{"id":"1","state":"paid","l":[2,1]}`)), want: verify.Collateral, conclusive: true, found: []string{`/l changed: [1,2] > [2,1]`}},
		"element added": {reason: "arrays are compared by length", write: intent.Update, before: one(rich(`{"id":"1","state":"open","l":[1]}`)),
			seen: strong(rich(`{"id":"1","state":"paid","l":[1,2]}`)), want: verify.Collateral, conclusive: true, found: []string{`/l changed: [1] > [1,2]`}},
		"element ignored": {reason: "an ignored element may change", write: intent.Update, before: one(rich(`{"id":"1","state":"open","l":[1,2]}`)),
			change: func(w *intent.WriteIntent) { w.Ignore = []string{"/l/1"} },
			seen:   strong(rich(`{"id":"1","state":"paid","l":[1,3]}`)), want: verify.Verified, conclusive: true, record: true},
		"swapped and poorer": {reason: "another record in its place lacks what the old one had", write: intent.Update, before: one(before), seen: strong(named(done, "B")),
			want: verify.Collateral, conclusive: true,
			found: []string{`/a not there: {"x":1,"y":1}`, `/note not there: "n"`, `/seen not there: 1`}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, verify.Judge) })
	}
}

func TestJudgeUpdateOfSeveral(t *testing.T) {
	open, done := record(t, "", isOpen), record(t, "", isPaid)
	rich := func(text string) connectors.Record { return record(t, "", text) }
	for name, c := range map[string]judgeCase{
		"two of two": {reason: "each compared with itself, by id, whatever the order", write: intent.Update, count: 2,
			before: &connectors.Observation{Records: []connectors.Record{named(rich(`{"id":"1","n":1}`), "A"), named(rich(`{"id":"1","n":2}`), "B")}},
			seen:   strong(named(rich(`{"id":"1","n":2,"state":"paid"}`), "B"), named(rich(`{"id":"1","n":1,"state":"paid"}`), "A")),
			want:   verify.Verified, conclusive: true},
		"one of two is another": {reason: "two records as expected are what was declared", write: intent.Update, count: 2,
			before: &connectors.Observation{Records: []connectors.Record{named(open, "A"), named(open, "B")}},
			seen:   strong(named(done, "A"), named(done, "C")), want: verify.Verified, conclusive: true},
		"two swapped, as before": {reason: "records that were not seen before are not those from before", write: intent.Update, count: 2,
			before: &connectors.Observation{Records: []connectors.Record{named(open, "A"), named(open, "B")}},
			seen:   strong(named(open, "A"), named(open, "C")), want: verify.Mismatched, conclusive: true,
			found: []string{`/state differs: "paid" > "open"`, `/state differs: "paid" > "open"`}},
		"one of two as before": {reason: "half an update is neither as before nor as expected", write: intent.Update, count: 2,
			before: &connectors.Observation{Records: []connectors.Record{named(open, "A"), named(open, "B")}},
			seen:   strong(named(open, "A"), named(done, "B")), want: verify.Mismatched, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"two as before": {reason: "both as before", write: intent.Update, count: 2,
			before: &connectors.Observation{Records: []connectors.Record{named(open, "A"), named(open, "B")}},
			seen:   strong(named(open, "B"), named(open, "A")), want: verify.Stale, conclusive: true,
			found: []string{`/state differs: "paid" > "open"`, `/state differs: "paid" > "open"`}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, verify.Judge) })
	}
}

func TestJudgeUpsert(t *testing.T) {
	open := record(t, "", isOpen)
	cases := map[string]judgeCase{
		"created, stamped": {reason: "nothing was there, and this has our stamp", write: intent.Upsert, profile: connectors.Profile{Stamped: true},
			before: nothing(), seen: weak(record(t, ourStamp, isPaid)), want: verify.Verified, record: true},
		"created, another stamp": {reason: "another actor may have created it", write: intent.Upsert, profile: connectors.Profile{Stamped: true},
			before: nothing(), seen: weak(record(t, "rb-theirs", isPaid)), want: verify.Indeterminate},
		"was there, stamped": {reason: "a stamp from its creation says nothing about this write", write: intent.Upsert, profile: connectors.Profile{Stamped: true},
			before: one(open), seen: weak(record(t, ourStamp, isPaid)), want: verify.Indeterminate},
		"no pre-state, stamped": {reason: "it is unknown whether it was created", write: intent.Upsert, profile: connectors.Profile{Stamped: true},
			seen: weak(record(t, ourStamp, isPaid)), want: verify.Indeterminate},
		"another actor's, strong": {reason: "an upsert takes the record as it finds it", write: intent.Upsert, profile: stamped,
			before: one(open), seen: strong(record(t, "rb-theirs", isPaid)), want: verify.Verified, conclusive: true, record: true},
		"absent": {reason: "nothing before, nothing now", write: intent.Upsert, before: nothing(), seen: strong(), want: verify.Absent, conclusive: true},
		"gone":   {reason: "it was there before", write: intent.Upsert, before: one(open), seen: strong(), want: verify.Absent, conflict: true, conclusive: true},
		"stale": {reason: "as before", write: intent.Upsert, before: one(open), seen: weak(open), want: verify.Stale,
			found: []string{`/state differs: "paid" > "open"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.run(t, verify.Judge) })
	}
}

func TestJudgeDelete(t *testing.T) {
	open := record(t, "", isOpen)
	there := []string{`/count count: 0 > 1`}
	cases := map[string]judgeCase{
		"gone": {reason: "a strong read after the send finds nothing", write: intent.Delete, before: one(open), seen: strong(), want: verify.Verified, conclusive: true},
		"gone, weak": {reason: "weak absence proves nothing: the replica may not know the record yet", write: intent.Delete, profile: settles,
			before: one(open), seen: weak(), since: 59 * time.Second, want: verify.Indeterminate},
		"gone, weak, undeclared": {reason: "without settle time a weak read never proves absence", write: intent.Delete,
			before: one(open), seen: weak(), since: 1000 * time.Hour, want: verify.Indeterminate},
		"gone, settled":  {reason: "the settle time has passed", write: intent.Delete, profile: settles, before: one(open), seen: weak(), since: time.Minute, want: verify.Verified, conclusive: true},
		"still there":    {reason: "as before: a lagging read or a lost send", write: intent.Delete, before: one(open), seen: weak(open), want: verify.Stale, found: there},
		"changed":        {reason: "another actor changed it", write: intent.Delete, before: one(open), seen: strong(record(t, "", isPaid)), want: verify.Mismatched, undone: true, conclusive: true, found: there},
		"another record": {reason: "another actor made a new one, and it must not be deleted", write: intent.Delete, before: one(open), seen: strong(named(open, "B")), want: verify.Mismatched, conclusive: true, found: there},
		"new version":    {reason: "another actor wrote to it", write: intent.Delete, before: one(versioned(open, "1")), seen: strong(versioned(open, "2")), want: verify.Mismatched, undone: true, conclusive: true, found: there},
		"version shown once": {reason: "a read that shows no version does not say that it changed", write: intent.Delete,
			before: one(versioned(open, "1")), seen: weak(open), want: verify.Stale, found: there},
		"one of two": {reason: "half a delete", write: intent.Delete, count: 2,
			before: &connectors.Observation{Records: []connectors.Record{named(open, "A"), named(open, "B")}}, seen: strong(named(open, "A")),
			want: verify.Mismatched, conclusive: true, found: there},
		"no pre-state": {reason: "nothing is known to be as before", write: intent.Delete, seen: strong(open), want: verify.Mismatched, conclusive: true, found: there},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.run(t, verify.Judge) })
	}
}

// Every record of an intent with a count is compared, however many there are.
func TestJudgeChecksEveryRecord(t *testing.T) {
	const many = 2000
	w := paid(intent.Create)
	w.Count = many
	found := make([]connectors.Record, many)
	for i := range found {
		found[i] = named(record(t, ourStamp, isPaid), fmt.Sprint(i))
	}
	c := verify.Case{Intent: w, Profile: stamped, Stamp: ourStamp, Seen: strong(found...)}
	if j := verify.Judge(c); j.Verdict != verify.Verified {
		t.Fatalf("%s: %s", j.Verdict, j.Reason)
	}
	for i := range found {
		found[i].Fields = fields(t, isOpen)
	}
	if j := verify.Judge(c); j.Verdict != verify.Mismatched || len(j.Mismatches) != 64 {
		t.Errorf("%s with %d mismatches, want the first 64 of 2000", j.Verdict, len(j.Mismatches))
	}
	for i := range found {
		found[i].Fields = fields(t, isPaid)
	}
	found[many-1].Fields = fields(t, isOpen)
	if j := verify.Judge(c); j.Verdict != verify.Mismatched {
		t.Errorf("%s although the last record differs", j.Verdict)
	}
	w.Write = intent.Update
	before := strong(found...)
	after := strong(found...)
	after.Records = append([]connectors.Record{}, found...)
	for i := range after.Records {
		after.Records[i].Fields = fields(t, isPaid)
	}
	after.Records[many-1].Fields["note"] = "new"
	if j := verify.Judge(verify.Case{Intent: w, Stamp: ourStamp, Before: &before, Seen: after}); j.Verdict != verify.Collateral {
		t.Errorf("%s although the last record has a new field", j.Verdict)
	}
}

// AsOf is the moment up to which a read shows everything: a lagging read that begins when the
// horizon has passed does not show what arrived at its end.
func TestAsOf(t *testing.T) {
	cases := map[string]struct {
		reason  string
		profile connectors.Profile
		seen    connectors.Observation
		since   time.Duration
		want    time.Duration
	}{
		"strong":     {"when it began", settles, strong(), 90 * time.Second, 90 * time.Second},
		"weak":       {"the settle time before it began", settles, weak(), 90 * time.Second, 30 * time.Second},
		"too early":  {"not conclusive: nothing is sure", settles, weak(), 59 * time.Second, 0},
		"undeclared": {"not conclusive: it is unknown how far it lags", plain, weak(), time.Hour, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := verify.Judge(verify.Case{Intent: paid(intent.Create), Profile: c.profile, Seen: c.seen, Since: c.since})
			if j.AsOf != c.want || j.Since != c.since {
				t.Errorf("as of %s, since %s; want %s, %s: %s", j.AsOf, j.Since, c.want, c.since, c.reason)
			}
		})
	}
}

func TestEffect(t *testing.T) {
	showing := map[verify.Verdict]bool{verify.Verified: true, verify.Mismatched: true, verify.Duplicated: true, verify.Collateral: true}
	for _, v := range verify.Verdicts() {
		if got := (verify.Judgement{Verdict: v}).Effect(); got != showing[v] {
			t.Errorf("%s shows an effect: %t", v, got)
		}
		if (verify.Judgement{Verdict: v, Conflict: true}).Effect() {
			t.Errorf("%s: what is another actor's is no effect of ours", v)
		}
	}
}

// An effect that is as declared but failed is not verified. A differing or missing record is
// reported as such.
func TestJudgeFailed(t *testing.T) {
	w := intent.WriteIntent{Write: intent.Create, Key: intent.Fields{"id": "1"}, Expect: intent.Fields{"name": "Ann"}}
	record := func(name string) []connectors.Record {
		return []connectors.Record{{Ref: "r", Stamp: ourStamp, Fields: intent.Fields{"id": "1", "name": name}}}
	}
	for name, c := range map[string]struct {
		records []connectors.Record
		want    verify.Verdict
		failed  bool
	}{
		"as declared": {record("Ann"), verify.Mismatched, true},
		"differs":     {record("Bob"), verify.Mismatched, false},
		"not there":   {nil, verify.Absent, false},
	} {
		t.Run(name, func(t *testing.T) {
			j := verify.Judge(verify.Case{Intent: w, Profile: stamped, Stamp: ourStamp, Seen: connectors.Observation{Records: c.records, Failed: "it bounced"}})
			text := len(j.Mismatches) == 1 && j.Mismatches[0].Problem == verify.Failed && j.Mismatches[0].Got == "it bounced"
			if j.Verdict != c.want || j.Failed != c.failed || text != c.failed || j.Failed && (!j.Conflict || !j.Ours || j.Own || !j.Effect()) {
				t.Errorf("%+v; want %s, failed %t", j, c.want, c.failed)
			}
		})
	}
}

// TestAbsenceNamesNoActor: a read that no longer shows the record claims neither that it was
// removed, since it may have another key, nor which actor did that.
func TestAbsenceNamesNoActor(t *testing.T) {
	before := strong(record(t, "", `{"id":"1","state":"open"}`))
	for _, w := range []intent.WriteType{intent.Update, intent.Upsert} {
		for want, earlier := range map[string]*connectors.Observation{"it was removed or given another key": &before, "is not known": nil} {
			j := verify.Judge(verify.Case{Intent: paid(w), Before: earlier, Seen: strong(), Since: time.Second})
			if j.Verdict != verify.Absent || !j.Conflict || !strings.Contains(j.Reason, want) {
				t.Errorf("%s: %+v, want %q", w, j, want)
			}
		}
	}
}

// A record that is as declared proves nothing while the destination has not decided on it, and one
// that is not as declared stays what it is.
func TestAnOpenRecordIsNotVerified(t *testing.T) {
	w := intent.WriteIntent{Write: intent.Create, Key: intent.Fields{"id": "1"}, Expect: intent.Fields{"a": "x"}}
	for name, c := range map[string]struct {
		open, value string
		want        verify.Verdict
	}{
		"decided":        {"", "x", verify.Verified},
		"open":           {"status is pending", "x", verify.Indeterminate},
		"open and other": {"status is pending", "y", verify.Mismatched},
	} {
		j := verify.Judge(verify.Case{Intent: w, Stamp: "s", Seen: connectors.Observation{Strength: connectors.Strong, Open: c.open,
			Records: []connectors.Record{{Ref: "1", Stamp: "s", Fields: intent.Fields{"id": "1", "a": c.value}}}}})
		if j.Verdict != c.want || j.Open != (c.want == verify.Indeterminate) || !j.Shows() {
			t.Errorf("%s: %+v, want %s", name, j, c.want)
		}
	}
}

// Without stamps, the record that the answer to a create named is its effect, however weak the read;
// not one that another read had shown before, nor another beside it.
func TestJudgeTheRecordThatTheAnswerNamed(t *testing.T) {
	ours := record(t, "", isPaid)
	before := func(all ...connectors.Record) *connectors.Observation { o := weak(all...); return &o }
	for name, c := range map[string]struct {
		reason  string
		write   intent.WriteType
		profile connectors.Profile
		ref     string
		before  *connectors.Observation
		seen    connectors.Observation
		want    verify.Verdict
	}{
		"named":                {"the destination's own name of what we made", intent.Create, settles, "A", before(), weak(ours), verify.Verified},
		"another":              {"it may be older than the send", intent.Create, settles, "B", before(), weak(ours), verify.Indeterminate},
		"not named":            {"it may be older than the send", intent.Create, settles, "", before(), weak(ours), verify.Indeterminate},
		"there before":         {"the answer named what was there", intent.Create, settles, "A", before(ours), weak(ours), verify.Indeterminate},
		"not read before":      {"it may have been there", intent.Create, settles, "A", nil, weak(ours), verify.Indeterminate},
		"beside another":       {"one was declared", intent.Create, settles, "A", before(), weak(ours, named(ours, "B")), verify.Duplicated},
		"stamp of another":     {"another write made it", intent.Create, settles, "A", before(), weak(record(t, "rb-theirs", isPaid)), verify.Indeterminate},
		"an update":            {"the record was there", intent.Update, settles, "A", before(), weak(ours), verify.Indeterminate},
		"another value":        {"it is not as declared", intent.Create, settles, "A", before(), weak(record(t, "", isOpen)), verify.Mismatched},
		"its stamp is removed": {"where records have stamps, they decide", intent.Create, stamped, "A", before(), weak(ours), verify.Indeterminate},
	} {
		t.Run(name, func(t *testing.T) {
			k := verify.Case{Intent: paid(c.write), Profile: c.profile, Stamp: ourStamp, Before: c.before, Seen: c.seen, Receipt: &connectors.Receipt{Ref: c.ref}}
			if j := verify.Judge(k); j.Verdict != c.want {
				t.Errorf("%s (%s); want %s: %s", j.Verdict, j.Reason, c.want, c.reason)
			}
		})
	}
}
