package reviewui

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

const (
	// maxFields is how many fields of one record are compared on a page, maxRecords how
	// many records, maxEvents how many events are shown.
	maxFields  = 120
	maxRecords = 5
	maxEvents  = 300
)

// The results of comparing a field.
var (
	markSame     = badge{"same", "✓", "as requested"}
	markDiffers  = badge{"differs", "≠", "differs"}
	markMissing  = badge{"differs", "∅", "not there"}
	markExtra    = badge{"differs", "+", "there, and should not be there"}
	markChanged  = badge{"differs", "△", "changed, but not requested"}
	markGone     = badge{"differs", "∅", "gone, but not requested"}
	markAdded    = badge{"differs", "+", "new, but not requested"}
	markIgnored  = badge{"aside", "–", "ignored"}
	markNotRead  = badge{"aside", "·", "sent, not verified"}
	markUnread   = badge{"unread", "?", "not read yet"}
	markNoRecord = badge{"differs", "∅", "no record"}
	markGoneOK   = badge{"same", "✓", "no record, as requested"}
	markStill    = badge{"differs", "≠", "still there"}
	markBefore   = badge{"aside", "·", "required before the send"}
	markHolds    = badge{"same", "✓", "holds"}
	markUnsure   = badge{"unread", "?", "cannot be compared here"}
)

// field is one row: the declared value beside the observed one.
type field struct {
	Path   string
	Part   string // "key", "expected", "payload", "absent", "required", "not asked for"
	Mark   badge
	Want   shown
	Seen   shown
	Before shown
	How    string // by which rule it is compared
	Note   string
}

// sheet is one record as it was read, field by field.
type sheet struct {
	Title  string
	Whose  string // whose stamp it has
	Ref    string
	Link   string
	Fields []field
	More   int // fields that are not shown
}

// comparison is the intent beside the observation.
type comparison struct {
	Headline string   // the result of the read, as a sentence
	When     string   // when and how it was read, "" without a read
	Notices  []string // what is wrong with the records as a whole
	Sheets   []sheet
	More     int // records that are not shown
	Old      bool
}

// comparer compares one write with its observation.
type comparer struct {
	w      intent.WriteIntent
	byProf map[string]intent.Comparison
	known  bool // the profile is known, so that records can be compared here
	before *connectors.Observation
	read   reading
	sent   bool
	paint  *painter
}

// compare compares a write with its last observation.
func compare(v service.View, p *painter) comparison {
	c := comparer{w: v.Intent, read: readingOf(v.Record, v.Events), sent: v.Record.Sends > 0, paint: p}
	if v.Profile != nil {
		c.byProf, c.known = v.Profile.Compare, true
	}
	if obs, _, ok := report.Seen(v.Record.Before); ok && !c.read.before {
		c.before = &obs
	}
	out := comparison{Old: c.before != nil && len(c.before.Records) > 0}
	out.Headline, out.When = c.headline(), c.when()
	out.Notices = c.notices()
	found := c.read.obs.Records
	if !c.read.there || len(found) == 0 {
		out.Sheets = []sheet{c.sheet(nil, c.read.problems)}
		return out
	}
	for i := range found {
		if i == maxRecords {
			out.More = len(found) - i
			break
		}
		problems := c.read.problems
		if len(found) > 1 {
			problems = nil
			if c.known {
				problems = c.own(found[i])
			}
		}
		s := c.sheet(&found[i], problems)
		if len(found) > 1 {
			s.Title = "Record " + strconv.Itoa(i+1) + " of " + strconv.Itoa(len(found))
		}
		out.Sheets = append(out.Sheets, s)
	}
	return out
}

// own is how one of several records differs: recorded mismatches do not name their
// record.
func (c *comparer) own(r connectors.Record) []problem {
	var all []problem
	if c.w.Write == intent.Delete {
		return nil
	}
	for _, m := range verify.Diff(c.w, c.byProf, r.Fields) {
		all = append(all, problem{m, m.Problem != verify.NotExpected, m.Problem != verify.NotThere})
	}
	return all
}

func (c *comparer) headline() string {
	switch {
	case c.read.cut != "":
		return c.read.cut
	case !c.read.there && c.sent:
		return "The destination has not been read since the send, or could not be."
	case !c.read.there:
		return "Nothing was sent, and nothing was read yet."
	}
	n := len(c.read.obs.Records)
	what := "The last read found " + report.Count(n, "record", "records") + ", " + strconv.Itoa(c.w.Want()) + " declared."
	switch {
	case c.w.Write == intent.Delete:
		what = "The last read found " + report.Count(n, "record", "records") + "; none is declared to be left."
	case n == 0:
		what = "The last read found no record."
	}
	if c.read.failed {
		what = "The latest read failed; below is what the last one that succeeded found. " + strings.Replace(what, "The last read", "It", 1)
	}
	switch {
	case c.read.before && c.sent:
		what += " No send was taken up before it."
	case c.read.before:
		what += " It was made before anything was sent."
	case c.before != nil && len(c.before.Records) == 0:
		what += " Before the send there was none."
	}
	return what
}

func (c *comparer) when() string {
	if !c.read.there {
		return ""
	}
	strength := "a weak read, which may lag behind"
	if c.read.obs.Strength == connectors.Strong {
		strength = "a strong read, which shows everything applied before it"
	}
	how := "Read at " + report.Moment(c.read.obs.At) + ": " + strength
	if c.read.obs.Path != "" {
		how += ", by " + report.Clip(c.read.obs.Path, maxName)
	}
	if c.read.obs.Independent != connectors.OwnCall { // which every read is
		how += "; " + c.read.obs.Independent.Words()
	}
	return how + "."
}

// notices are the recorded differences that concern no field.
func (c *comparer) notices() []string {
	var all []string
	for _, m := range c.read.problems {
		switch {
		case m.Problem == verify.Count:
			all = append(all, "≠ Records: "+report.OneLine(m.Want)+" wanted, "+report.OneLine(m.Got)+" seen.")
		case m.Problem == verify.Failed:
			all = append(all, "≠ The record is as requested, and a report says that the effect failed: "+report.OneLine(m.Got)+".")
		case m.Problem == verify.NotOurs:
			ref := ""
			if text, ok := m.Got.(string); ok && text != "" {
				ref = " " + report.Clip(text, maxName)
			}
			all = append(all, "≠ The record"+ref+" has the business key, and not the stamp of this write.")
		}
	}
	return all[:min(len(all), maxRecords)]
}

// sheet compares one record, nil for none.
func (c *comparer) sheet(r *connectors.Record, problems []problem) sheet {
	var s sheet
	if r != nil {
		s.Ref, s.Link = report.Clip(r.Ref, maxName), httpLink(r.URL)
		s.Whose = c.whose(*r)
	}
	rows := c.declared(r, problems)
	rows = append(rows, c.unasked(rows, problems)...)
	if len(rows) > maxFields {
		// Fields that differ are never omitted.
		differs := func(f field) bool { return f.Mark.Class == "differs" }
		rows = append(slices.DeleteFunc(slices.Clone(rows), func(f field) bool { return !differs(f) }), slices.DeleteFunc(rows, differs)...)
		s.More = len(rows) - maxFields
		rows = rows[:maxFields]
	}
	s.Fields = rows
	return s
}

func (c *comparer) whose(r connectors.Record) string {
	switch r.Stamp {
	case "":
		return "It has no stamp."
	case c.w.Stamp():
		return "It has our stamp."
	}
	return "It has a stamp of another write."
}

// declared are the rows of the fields that the intent names.
func (c *comparer) declared(r *connectors.Record, problems []problem) []field {
	var rows, required []field
	for _, l := range leaves(nil, "", c.w.Require) {
		required = append(required, c.required(l, r))
	}
	if c.read.before && len(c.w.Require) > 0 {
		problems = nil // they are differences from what is required
	}
	key := leaves(nil, "", c.w.Key)
	for _, l := range key {
		rows = append(rows, c.row("key", l, r, problems))
	}
	for _, l := range leaves(nil, "", c.w.Expect) {
		if !slices.ContainsFunc(key, func(k leaf) bool { return k.path == l.path }) {
			rows = append(rows, c.row("expected", l, r, problems))
		}
	}
	for _, path := range c.w.Absent {
		rows = append(rows, c.absent(path, r, problems))
	}
	rows = append(rows, required...)
	for _, l := range leaves(nil, "", c.w.Payload) {
		f := c.plainRow("payload", l, r)
		f.Mark = markNotRead
		if !c.sent {
			f.Mark.Word = "to be sent, not verified"
		}
		rows = append(rows, f)
	}
	return rows
}

// plainRow is a row without a mark.
func (c *comparer) plainRow(what string, l leaf, r *connectors.Record) field {
	f := field{Path: report.Clip(l.path, maxShort), Part: what, Before: c.earlier(l.path, r)}
	seen, there := lookup(r, l.path)
	switch {
	case r == nil:
		f.Want, f.Seen = c.paint.value(l.value), none(c.nothing())
	case !there:
		f.Want, f.Seen = c.paint.value(l.value), none("not there")
	default:
		f.Want, f.Seen = c.paint.pair(l.value, seen)
	}
	return f
}

// nothing explains why there is no record to show.
func (c *comparer) nothing() string {
	if c.read.there {
		return "no record"
	}
	return "not read"
}

// row is a field that a read must find.
func (c *comparer) row(what string, l leaf, r *connectors.Record, problems []problem) field {
	f := c.plainRow(what, l, r)
	f.How = c.how(l.path)
	m, deeper := at(problems, l.path)
	if m == nil && r != nil {
		m, deeper = c.unrecorded(l, *r, c.w.Ignore, c.read.compared)
	}
	switch {
	case under(c.w.Ignore, l.path):
		f.Mark, f.How = markIgnored, "not compared"
	case !c.read.there:
		f.Mark = markUnread
	case r == nil && c.w.Write == intent.Delete:
		f.Mark = markGoneOK
	case r == nil:
		f.Mark = markNoRecord
	case c.w.Write == intent.Delete:
		f.Mark = markStill
	default:
		return compared(f, markSame, m, deeper, otherKind(l.value, r, l.path))
	}
	return f
}

// compared is a field with the result of its comparison: same without a difference, else
// the difference, which is deeper in the value or of another kind.
func compared(f field, same badge, m *problem, deeper, kind string) field {
	switch {
	case m == nil:
		f.Mark = same
	case m == &notComparable:
		f.Mark = markUnsure
	case m.Problem == verify.NotThere:
		f.Mark = markMissing
	default:
		f.Mark, f.Note = markDiffers, kind
	}
	if deeper != "" {
		f.Note = "at " + report.Clip(deeper, maxName)
	}
	return f
}

// notComparable is for a difference that may be none under rules which are not known
// here, or between values that are not shown here.
var notComparable problem

// unrecorded compares a field without a recorded difference. That alone does not mean
// that it was compared: a verdict can depend on the number of records or on their stamps
// alone. compared reports that the verdict depends on this field of the only record. It
// returns nil if the values are equal.
func (c *comparer) unrecorded(l leaf, r connectors.Record, ignore []string, compared bool) (m *problem, deeper string) {
	tokens := slices.Collect(intent.Pointer(l.path).Tokens())
	want := l.value
	for _, token := range slices.Backward(tokens) {
		want = map[string]any{token: want}
	}
	one := intent.WriteIntent{Expect: want.(map[string]any), Compare: c.w.Compare, Ignore: ignore}
	differing := verify.Diff(one, c.byProf, r.Fields)
	got, _ := lookup(&r, l.path)
	switch {
	case len(differing) == 0:
		return nil, ""
	case c.known && !redacted(l.value) && !redacted(got):
		if len(differing[0].Path) > len(l.path) {
			deeper = differing[0].Path
		}
		return &problem{Mismatch: differing[0]}, deeper
	case compared && len(c.read.obs.Records) == 1:
		return nil, "" // the engine compared the values themselves, by the rules of that time
	}
	return &notComparable, ""
}

// redacted reports whether sensitive values are shown as digests.
func redacted(v any) bool {
	text, err := json.Marshal(v)
	return err != nil || bytes.Contains(text, []byte(redact.ShownPrefix))
}

// otherKind reports that two values have different kinds, which can look alike: 1999 and
// "1999".
func otherKind(want any, r *connectors.Record, path string) string {
	got, there := lookup(r, path)
	if a, b := kindOf(want), kindOf(got); there && a != b {
		return a + " wanted, " + b + " seen"
	}
	return ""
}

func (c *comparer) absent(path string, r *connectors.Record, problems []problem) field {
	f := c.plainRow("absent", leaf{path: path}, r)
	f.Want, f.How = none("must not be there"), "must not exist"
	_, there := lookup(r, path)
	m, _ := at(problems, path)
	switch {
	case !c.read.there:
		f.Mark = markUnread
	case r == nil:
		f.Mark = markNoRecord
	case m != nil || there:
		f.Mark = markExtra
	default:
		f.Mark = markSame
	}
	return f
}

// required is a precondition of the send.
func (c *comparer) required(l leaf, r *connectors.Record) field {
	f := c.plainRow("required", l, r)
	f.Mark = markBefore
	if !c.read.before || r == nil {
		return f
	}
	var m *problem
	var deeper string
	if len(c.read.obs.Records) == 1 {
		m, deeper = at(c.read.problems, l.path)
	}
	if m == nil {
		m, deeper = c.unrecorded(l, *r, nil, c.read.required)
	}
	return compared(f, markHolds, m, deeper, otherKind(l.value, r, l.path))
}

// unasked are the rows of recorded differences that are in no other row.
func (c *comparer) unasked(rows []field, problems []problem) []field {
	var more []field
	for _, m := range problems {
		if m.Problem == verify.Count || m.Problem == verify.NotOurs || m.Problem == verify.Failed || slices.ContainsFunc(rows, func(f field) bool { return related(f.Path, m.Path) }) {
			continue
		}
		f := field{Path: report.Clip(m.Path, maxShort), Part: "not asked for", Mark: markChanged, How: "must not change"}
		f.Want, f.Seen = none("nothing was there"), none("not there")
		switch {
		case m.wanted && m.got:
			f.Want, f.Seen = c.paint.pair(m.Want, m.Got)
		case m.wanted:
			f.Want = c.paint.value(m.Want)
		case m.got:
			f.Seen = c.paint.value(m.Got)
		}
		f.Before = f.Want
		if m.wanted {
			f.Note = "the value before is as requested"
		}
		switch m.Problem {
		case verify.NotThere:
			f.Mark = markGone
		case verify.NotExpected:
			f.Mark = markAdded
		case verify.Differs:
			f.Mark = markDiffers
		}
		more = append(more, f)
	}
	return more
}

// earlier is the value of a field before the send.
func (c *comparer) earlier(path string, r *connectors.Record) shown {
	if c.before == nil {
		return none("not read")
	}
	var old *connectors.Record
	for i := range c.before.Records {
		if one := &c.before.Records[i]; r != nil && one.Ref == r.Ref || len(c.before.Records) == 1 {
			old = one
		}
	}
	if old == nil {
		return none("no record")
	}
	v, there := lookup(old, path)
	if !there {
		return none("not there")
	}
	return c.paint.value(v)
}

func lookup(r *connectors.Record, path string) (any, bool) {
	if r == nil {
		return nil, false
	}
	return intent.Lookup(r.Fields, path)
}

// how describes the rules by which a field is compared, and their source.
func (c *comparer) how(path string) string {
	for p := intent.Pointer(path); p != ""; p = p.Parent() {
		if rules, ok := c.w.Compare[string(p)]; ok {
			return ruleWords(rules) + ", as the intent says"
		}
		if rules, ok := c.byProf[string(p)]; ok {
			return ruleWords(rules) + ", as this destination needs"
		}
	}
	return "exact"
}
