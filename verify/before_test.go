package verify_test

import (
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// The pre-state of a write that was not sent: indeterminate means send.
func TestJudgeBefore(t *testing.T) {
	open, done := record(t, "", isOpen), record(t, "", isPaid)
	require := func(w *intent.WriteIntent) { w.Require = intent.Fields{"state": "open"} }
	cases := map[string]judgeCase{
		"create, nothing":       {reason: "send", write: intent.Create, seen: strong(), want: verify.Indeterminate, conclusive: true},
		"create, nothing, weak": {reason: "send: there is no proof that a key is free", write: intent.Create, seen: weak(), want: verify.Indeterminate},
		"create, another actor's": {reason: "a conflict, for a reviewer, even where it is as expected", write: intent.Create, profile: stamped, seen: strong(record(t, "rb-theirs", isPaid)),
			want: verify.Mismatched, conflict: true, conclusive: true, found: []string{` not ours: "A"`}},
		"create, taken, weak": {reason: "a record that a weak read shows may be gone since", write: intent.Create, profile: stamped, seen: weak(record(t, "", isPaid)),
			want: verify.Mismatched, conflict: true, found: []string{` not ours: "A"`}},
		"create, taken, no stamps": {reason: "its owner cannot be known", write: intent.Create, seen: strong(record(t, "", isPaid)),
			want: verify.Mismatched, conflict: true, conclusive: true, found: []string{` not ours: "A"`}},
		"create, our own earlier send": {reason: "it has our stamp: done before, and this ledger forgot", write: intent.Create, profile: stamped, seen: weak(record(t, ourStamp, isPaid)),
			want: verify.Verified, record: true},
		"create, our own, differing": {reason: "a reviewer must see it", write: intent.Create, profile: stamped, seen: strong(record(t, ourStamp, isOpen)),
			want: verify.Mismatched, conclusive: true, found: []string{`/state differs: "paid" > "open"`}},
		"create, our own twice": {reason: "a reviewer must see it", write: intent.Create, profile: stamped, seen: strong(record(t, ourStamp, isPaid), named(record(t, ourStamp, isPaid), "B")),
			want: verify.Duplicated, conclusive: true, found: []string{`/count count: 1 > 2`}},
		"create, ours and theirs": {reason: "a conflict", write: intent.Create, profile: stamped, seen: strong(record(t, ourStamp, isPaid), named(record(t, "", isPaid), "B")),
			want: verify.Mismatched, conflict: true, conclusive: true, found: []string{` not ours: "A"`, ` not ours: "B"`}},

		"update, to do":         {reason: "send", write: intent.Update, seen: strong(open), want: verify.Indeterminate, conclusive: true},
		"update, done before":   {reason: "the wish was fulfilled: nothing to send", write: intent.Update, seen: strong(done), want: verify.Vacuous, conclusive: true, record: true},
		"update, done, weak":    {reason: "it may have been undone since: send", write: intent.Update, seen: weak(done), want: verify.Indeterminate},
		"update, done, settled": {reason: "nothing older than the acceptance is shown", write: intent.Update, profile: settles, seen: weak(done), since: time.Minute, want: verify.Vacuous, conclusive: true, record: true},
		"update, no record":     {reason: "there is nothing to update", write: intent.Update, seen: strong(), want: verify.Absent, conclusive: true, found: []string{`/count count: 1 > 0`}},
		"update, no record yet": {reason: "a weak read may not show it yet", write: intent.Update, seen: weak(), want: verify.Absent, found: []string{`/count count: 1 > 0`}},
		"update, two": {reason: "the key does not name one record", write: intent.Update, seen: weak(open, named(open, "B")),
			want: verify.Duplicated, conflict: true, conclusive: true, found: []string{`/count count: 1 > 2`}},
		"update, two declared":     {reason: "send", write: intent.Update, count: 2, seen: strong(open, named(open, "B")), want: verify.Indeterminate, conclusive: true},
		"update, one of two done":  {reason: "send", write: intent.Update, count: 2, seen: strong(done, named(open, "B")), want: verify.Indeterminate, conclusive: true},
		"update, both done":        {reason: "nothing to send", write: intent.Update, count: 2, seen: strong(done, named(done, "B")), want: verify.Vacuous, conclusive: true},
		"update, requirement held": {reason: "send", write: intent.Update, change: require, seen: strong(open), want: verify.Indeterminate, conclusive: true},
		"update, requirement not held": {reason: "nothing is sent", write: intent.Update, change: require, seen: strong(record(t, "", `{"id":"1","state":"void"}`)),
			want: verify.Mismatched, conflict: true, conclusive: true, found: []string{`/state differs: "open" > "void"`}},
		"update, requirement by the profile's rules": {reason: "send", write: intent.Update, change: require,
			profile: connectors.Profile{Compare: map[string]intent.Comparison{"/state": {{Name: "fold"}}}},
			seen:    strong(record(t, "", `{"id":"1","state":"OPEN"}`)), want: verify.Indeterminate, conclusive: true},
		"update, nothing to require of": {reason: "what is required does not hold of nothing", write: intent.Update, change: require, seen: strong(),
			want: verify.Mismatched, conflict: true, conclusive: true, found: []string{`/count count: 1 > 0`}},

		"upsert, nothing":     {reason: "send", write: intent.Upsert, seen: strong(), want: verify.Indeterminate, conclusive: true},
		"upsert, to do":       {reason: "send", write: intent.Upsert, seen: strong(open), want: verify.Indeterminate, conclusive: true},
		"upsert, done before": {reason: "nothing to send", write: intent.Upsert, seen: strong(done), want: verify.Vacuous, conclusive: true, record: true},
		"upsert, two": {reason: "the key does not name one record", write: intent.Upsert, seen: strong(open, named(open, "B")),
			want: verify.Duplicated, conflict: true, conclusive: true, found: []string{`/count count: 1 > 2`}},

		"delete, to do":        {reason: "send", write: intent.Delete, seen: strong(open), want: verify.Indeterminate, conclusive: true},
		"delete, gone before":  {reason: "the wish was fulfilled: nothing to send", write: intent.Delete, seen: strong(), want: verify.Vacuous, conclusive: true},
		"delete, gone, weak":   {reason: "the replica may not show it yet: wait", write: intent.Delete, profile: settles, seen: weak(), since: time.Second, want: verify.Absent, found: []string{`/count count: 1 > 0`}},
		"delete, gone, settle": {reason: "now it is known", write: intent.Delete, profile: settles, seen: weak(), since: time.Minute, want: verify.Vacuous, conclusive: true},
		"delete, two": {reason: "one was declared: nothing is sent", write: intent.Delete, seen: strong(open, named(open, "B")),
			want: verify.Duplicated, conflict: true, conclusive: true, found: []string{`/count count: 1 > 2`}},
		"delete, one of two": {reason: "two were declared", write: intent.Delete, count: 2, seen: strong(open), want: verify.Absent, conclusive: true, found: []string{`/count count: 2 > 1`}},
		"delete, requirement not held": {reason: "another actor changed it: nothing is sent", write: intent.Delete, change: require, seen: strong(done),
			want: verify.Mismatched, conflict: true, conclusive: true, found: []string{`/state differs: "open" > "paid"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.run(t, verify.JudgeBefore) })
	}
}
