package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

const (
	// maxValue is how many characters of one value are shown: enough to distinguish two,
	// and short enough for a table. --json has all.
	maxValue = 72
	// maxFields is how many fields of one record are shown.
	maxFields = 40
	// maxRecords is how many records of one read are shown.
	maxRecords = 10
)

// Life is everything about one write: the intent, every event, what was read, how it
// differs, and what comes next. now is the ledger's time.
func Life(r ledger.Record, events []ledger.Event, o engine.Outcome, now time.Time) string {
	last := "Seen by the last read"
	if r.Verdict == verify.Unavailable.String() {
		last += " that succeeded"
	}
	sections := []string{
		title(r, o),
		table("  ", facts(r, o, now)...),
		section("Asked for", asked(r)),
		section("Life", table("  ", life(r, events)...)),
		section("Seen before the write", observation(r.Before, r)),
		section(last, observation(r.Evidence, r)),
		section("Differences", table("  ", differences(lastMismatches(r, events))...)),
		section("Next", indented(next(r, now))),
	}
	sections = slices.DeleteFunc(sections, func(s string) bool { return s == "" })
	return strings.Join(sections, "\n")
}

// lastMismatches are the differences of the last read, also of a read before the write
// that kept it from being sent.
func lastMismatches(r ledger.Record, events []ledger.Event) json.RawMessage {
	if len(r.Mismatches) > 0 || r.Sends > 0 {
		return r.Mismatches
	}
	for _, e := range slices.Backward(events) {
		if e.Kind == ledger.EvRead {
			return e.Mismatches
		}
	}
	return nil
}

func section(title, body string) string {
	if body == "" {
		return ""
	}
	return title + "\n" + body
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	if text != "" {
		b.WriteString("\n")
	}
	return b.String()
}

func title(r ledger.Record, o engine.Outcome) string {
	head := fmt.Sprintf("%s  %s\n", strings.ToUpper(Word(o.Status)), Subject(r))
	return head + strings.Join(wrap(Clip(o.Text, maxText), wrapAt), "\n") + "\n"
}

// facts are the rows about the write as a whole.
func facts(r ledger.Record, o engine.Outcome, now time.Time) []string {
	var rows []string
	add := func(name, format string, args ...any) {
		rows = append(rows, name+"\t"+fmt.Sprintf(format, args...))
	}
	add("id", "%s", r.ID)
	add("state", "%s; last event %s", phase(r), Ago(r.Updated, now))
	add("begun", "%s (%s)", Moment(r.Created), Ago(r.Created, now))
	if !r.SettledAt.IsZero() {
		add("settled", "%s (%s)", Moment(r.SettledAt), Ago(r.SettledAt, now))
	}
	rows = append(rows, approvals(r, now)...)
	if len(o.NotChecked) > 0 {
		add("not checked", "%s", strings.Join(o.NotChecked, ", "))
	}
	switch {
	case o.RecheckUntil.IsZero():
	case !now.Before(o.RecheckUntil):
		add("recheck", "overdue since %s (%s)", Moment(o.RecheckUntil), Ago(o.RecheckUntil, now))
	default:
		add("recheck", "pending until %s (%s)", Moment(o.RecheckUntil), Ago(o.RecheckUntil, now))
	}
	if !r.Due.IsZero() && r.State != ledger.Held {
		add("due", "%s (%s)", Moment(r.Due), Ago(r.Due, now))
	}
	switch {
	case r.Owner == "":
	case r.Owner == ledger.Dispatched:
		add("handed over", "to the scheduler; no worker has taken it up yet")
	case r.InHand(now):
		add("in hand", "%s, until %s at the latest", Clip(r.Owner, maxValue), Moment(r.LeaseUntil))
	default:
		add("was in hand", "%s, whose lease ended %s", Clip(r.Owner, maxValue), Moment(r.LeaseUntil))
	}
	from := []string{"tenant " + Safe(r.Tenant), "workflow " + Safe(r.Workflow)}
	if r.Step != "" {
		from = append(from, "step "+Safe(r.Step))
	}
	from = append(from, "tool "+Safe(r.Tool), fmt.Sprintf("call %d", r.Call))
	add("from", "%s", strings.Join(from, ", "))
	if r.CorrelationID != "" {
		add("correlation", "%s", Safe(r.CorrelationID))
	}
	if r.Trace != "" {
		add("trace", "%s", TraceID(r.Trace))
	}
	if r.RequestedBy != "" && r.State != ledger.Held { // described with the reviewers who may not approve
		add("asked by", "%s", Clip(r.RequestedBy, maxValue))
	}
	if r.IdempotencyKey != "" {
		add("idempotency key", "%s", Safe(r.IdempotencyKey))
	}
	if r.Ref != "" {
		add("record", "%s", place(r.Ref, r.Version, r.URL))
	}
	add("calls", "%s", Calls(r))
	if r.Refusal != nil {
		add("refusal", "%s", Words(*r.Refusal))
	}
	if r.QueuedBehind != "" {
		add("behind", "%s (readback show %s)", r.QueuedBehind, r.QueuedBehind)
	}
	if r.Parent != "" {
		add("undoes", "%s", r.Parent)
	}
	if r.Child != "" {
		add("undone by", "%s (readback show %s)", r.Child, r.Child)
	}
	return rows
}

// Words are a destination's own words, quoted: they are foreign text.
func Words(s ledger.Refusal) string {
	var all []string
	for _, part := range []struct{ name, text string }{{"status", s.Status}, {"code", s.Code}, {"message", s.Message}, {"request", s.RequestID}} {
		if part.text != "" {
			all = append(all, part.name+" "+strconv.Quote(part.text))
		}
	}
	return "the destination's own words: " + strings.Join(all, ", ")
}

// Calls counts the calls of a write in words.
func Calls(r ledger.Record) string {
	text := fmt.Sprintf("sends %d", r.Sends)
	var which []string
	if r.Unsent > 0 {
		which = append(which, fmt.Sprintf("%d not taken up", r.Unsent))
	}
	if r.Unknown {
		which = append(which, "the answer to one is missing")
	}
	if len(which) > 0 {
		text += " (" + strings.Join(which, ", ") + ")"
	}
	return text + fmt.Sprintf(", reads %d", r.Reads)
}

// asked formats the intent.
func asked(r ledger.Record) string {
	if _, text := Gone(r); text != "" {
		return "  " + text + "\n"
	}
	w, err := intent.DecodeStored(r.Intent)
	switch {
	case err != nil && r.Delegated:
		return "  " + raw(r.Intent) + "\n"
	case err != nil:
		return "  it cannot be read: " + raw(r.Intent) + "\n"
	}
	rows := []string{"write\t" + Subject(r)}
	for _, part := range []struct {
		name   string
		fields intent.Fields
	}{{"expect", w.Expect}, {"payload", w.Payload}, {"require", w.Require}} {
		for i, row := range fields(part.fields) {
			if i > 0 {
				part.name = ""
			}
			rows = append(rows, part.name+"\t"+row)
		}
	}
	for _, part := range []struct {
		name  string
		paths []string
	}{{"absent", w.Absent}, {"ignore", w.Ignore}, {"compare", slices.Sorted(maps.Keys(w.Compare))}} {
		if len(part.paths) > 0 {
			rows = append(rows, part.name+"\t"+Clip(strings.Join(part.paths, ", "), 2*maxValue))
		}
	}
	rows = append(rows, "records\t"+fmt.Sprint(w.Want()))
	for _, part := range []struct{ name, word string }{
		{"risk", string(w.Risk)}, {"reversibility", string(w.Reversibility)}, {"on mismatch", string(w.OnMismatch)},
	} {
		if part.word != "" {
			rows = append(rows, part.name+"\t"+part.word)
		}
	}
	if len(w.Sensitive) > 0 {
		rows = append(rows, "sensitive\t"+Clip(strings.Join(w.Sensitive, ", "), 2*maxValue))
	}
	for i, name := range slices.Sorted(maps.Keys(w.Context)) {
		title := "context"
		if i > 0 {
			title = ""
		}
		rows = append(rows, title+"\t"+Clip(name, maxValue)+"\t= "+Clip(w.Context[name], maxValue))
	}
	if !w.Deadline.IsZero() {
		rows = append(rows, "deadline\t"+Moment(w.Deadline))
	}
	return table("  ", rows...)
}

// fields are the rows of a set of fields, two cells each.
func fields(f intent.Fields) []string {
	var rows []string
	for i, name := range slices.Sorted(maps.Keys(f)) {
		if i == maxFields {
			return append(rows, fmt.Sprintf("and %d more", len(f)-i))
		}
		rows = append(rows, Clip(name, maxValue)+"\t= "+value(f[name]))
	}
	return rows
}

// life are the rows of the table of events. Times of day are in UTC. A row with the date
// precedes the first event of each day.
func life(r ledger.Record, events []ledger.Event) []string {
	rows := []string{"#\tAT (UTC)\tSINCE\tBY\tRULE\tEVENT"}
	today := ""
	for _, one := range Shown(r, events) {
		if day := one.At.Format(time.DateOnly); day != today {
			rows, today = append(rows, "\t"+day+"\t\t\t\t"), day
		}
		e := one.Event
		head := []string{fmt.Sprint(e.Seq), one.At.Format("15:04:05.000"), one.Since, Clip(e.By, cell), Clip(e.Rule, cell)}
		for _, line := range wrap(one.What, wrapAt) {
			rows = append(rows, strings.Join(append(head, line), "\t"))
			head = []string{"", "", "", "", ""}
		}
	}
	return rows
}

// observation describes the result of one read.
func observation(text json.RawMessage, r ledger.Record) string {
	o, cut, ok := Seen(text)
	switch {
	case cut != "":
		return "  " + cut + "\n"
	case !ok:
		return ""
	}
	strength := "may lag behind"
	if o.Strength == connectors.Strong {
		strength = "strong"
	}
	how := fmt.Sprintf("  %s, at %s, %s", Count(len(o.Records), "record", "records"), Moment(o.At), strength)
	if o.Path != "" {
		how += ", by " + Clip(o.Path, cell)
	}
	out := how + "\n"
	stamp := ""
	if w, err := intent.DecodeStored(r.Intent); err == nil {
		stamp = w.Stamp()
	}
	for i, rec := range o.Records {
		if i == maxRecords {
			return out + fmt.Sprintf("  and %d more\n", len(o.Records)-i)
		}
		out += "  " + record(rec, stamp) + table("    ", fields(rec.Fields)...)
	}
	return out
}

func record(rec connectors.Record, stamp string) string {
	whose := "another stamp, " + Clip(rec.Stamp, maxValue)
	switch rec.Stamp {
	case "":
		whose = "no stamp"
	case stamp:
		whose = "our stamp"
	}
	return place(rec.Ref, rec.Version, rec.URL) + "  " + whose + "\n"
}
