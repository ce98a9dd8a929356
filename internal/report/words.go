package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

const (
	// maxRows is how many differences are shown.
	maxRows = 40
	// wrapAt is where sentences in the table of events are broken.
	wrapAt = 72
)

// Moment formats a time: UTC, so that it is the same on every machine.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z") }

// Ago is a time relative to now, in words.
func Ago(t, now time.Time) string { return humanize.RelTime(t, now, "ago", "from now") }

// since is a short duration with its unit.
func since(d time.Duration) string {
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s%d ms", sign, d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%s%.1f s", sign, d.Seconds())
	}
	return sign + long(d)
}

// long is a duration in whole seconds, or minutes from a day on.
func long(d time.Duration) string {
	const day = 24 * time.Hour
	d = d.Round(time.Second)
	if d < day {
		return Short(d)
	}
	return strings.TrimSuffix(fmt.Sprintf("%dd%s", d/day, Short((d%day).Truncate(time.Minute))), "0s")
}

// Short is a duration without trailing zero units.
func Short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Wait is a duration, for a sentence.
func Wait(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return long(d)
}

func value(v any) string { return Clip(OneLine(v), maxValue) }

// OneLine is a decoded value on one line, as JSON in which every character is visible.
func OneLine(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "(cannot be shown)"
	}
	return Safe(strings.TrimSuffix(b.String(), "\n"))
}

func raw(text json.RawMessage) string { return Clip(string(text), maxValue) }

// assignments is a set of fields on one line.
func assignments(f intent.Fields) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		all = append(all, Clip(name, maxValue)+" = "+value(f[name]))
	}
	return strings.Join(all, ", ")
}

// phase is the state of a write in words, with what is special about it.
func phase(r ledger.Record) string {
	gone, _ := Gone(r)
	switch {
	case gone != "":
		return r.Phase() + ", " + gone
	case r.QueuedBehind != "":
		return r.Phase() + " (behind)"
	case r.Unverified && r.State == ledger.Checking:
		return r.Phase() + " (unverified)"
	}
	return r.Phase()
}

// Gone is what was done to the contents of a write, in words and as a text; "" where they are kept.
func Gone(r ledger.Record) (word, text string) {
	switch {
	case r.Erased != "":
		return "contents erased", fmt.Sprintf("Its contents were erased by erasure %s (`readback erase list` says by whom and why). What it asked for, what was seen and its events are gone; how it ended is kept, and a repeat of it is not sent.", Clip(r.Erased, maxName))
	case r.Tombstone:
		return "pruned", "It was pruned. What it asked for, what was seen and its life are forgotten; its keys and its outcome are kept."
	}
	return "", ""
}

// Subject is what a write does, where, and to which record.
func Subject(r ledger.Record) string {
	if r.Tombstone {
		return fmt.Sprintf("%s at %q", Safe(r.Kind), Safe(r.Destination))
	}
	w, err := intent.DecodeStored(r.Intent)
	switch {
	case err != nil && r.Delegated:
		return ownWrite(r)
	case err != nil:
		return fmt.Sprintf("%s at %q (its intent cannot be read)", Safe(r.Kind), Safe(r.Destination))
	}
	return fmt.Sprintf("%s %s at %q where %s", w.Write, Safe(w.Kind), Safe(w.Destination), assignments(w.Key))
}

// Table aligns rows of cells that are separated by tabs.
func Table(rows ...string) string { return table("", rows...) }

// Width is how many columns a table may have; its long cells are cut. The zero value cuts nothing.
// A program sets it before it prints.
var Width int

// leastCell is the fewest characters that a cut cell keeps.
const leastCell = 4

// fit cuts the widest cells of rows until they are at most that wide together. The first of each
// row, which names it, stays whole, and so does the second as long as others can be cut.
func fit(most int, rows []string) []string {
	var cells [][]string
	var wide []int
	for _, row := range rows {
		all := strings.Split(row, "\t")
		for i, c := range all {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], utf8.RuneCountInString(c))
		}
		cells = append(cells, all)
	}
	for total := len(wide)*2 - 2; ; {
		sum, widest := total, min(1, len(wide)-1)
		for i, w := range wide {
			if sum += w; i > 1 && w > leastCell && (widest == 1 || w >= wide[widest]) {
				widest = i
			}
		}
		if sum <= most || widest == 0 || wide[widest] <= leastCell {
			break
		}
		wide[widest]--
	}
	fitting := make([]string, len(cells))
	for n, all := range cells {
		for i, c := range all {
			if i > 0 && utf8.RuneCountInString(c) > wide[i] {
				all[i] = strings.TrimRight(string([]rune(c)[:wide[i]-1]), " ") + "…"
			}
		}
		fitting[n] = strings.Join(all, "\t")
	}
	return fitting
}

func table(indent string, rows ...string) string {
	if Width > 0 && len(rows) > 0 {
		rows = fit(Width-len(indent), rows)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, row) // a strings.Builder never fails
	}
	_ = w.Flush()
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString(strings.TrimRight(indent+line, " \n") + "\n")
	}
	return out.String()
}

// leastDigits is how many digits of an ID a table shows at least: with a million writes, each is the
// beginning of one ID all but always.
const leastDigits = 8

// shortIDs are the IDs of writes as a table shows them: their shortest beginnings that differ.
// Commands take them where they are the beginning of one ID only.
func shortIDs(ids ...ledger.ID) map[ledger.ID]string {
	short := make(map[ledger.ID]string, len(ids))
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for i, id := range ids {
		n := len("wr_") + leastDigits
		for _, other := range slices.Concat(ids[max(i-1, 0):i], ids[i+1:min(i+2, len(ids))]) {
			same := 0
			for same < min(len(id), len(other)) && id[same] == other[same] {
				same++
			}
			n = max(n, same+1)
		}
		if !strings.HasPrefix(string(id), "wr_") { // a damaged entry
			n = len(id)
		}
		short[id] = Clip(string(id[:min(n, len(id))]), cell)
	}
	return short
}

func shortIDsOf(recs []ledger.Record) map[ledger.ID]string {
	ids := make([]ledger.ID, len(recs))
	for i, r := range recs {
		ids[i] = r.ID
	}
	return shortIDs(ids...)
}

// Problems are the problems of an intent, one a line.
func Problems(all []intent.Problem) string {
	var rows []string
	for _, p := range all {
		rows = append(rows, fmt.Sprintf("%s\t%s; want %s", Clip(cmp.Or(p.Path, "(the intent)"), maxValue), Clip(p.Problem, maxText), Clip(p.Want, maxText)))
	}
	return table("  ", rows...)
}

// Paragraph wraps a text into lines of a readable length, each with an indent.
func Paragraph(text, indent string) string {
	return indent + strings.Join(wrap(text, wrapAt-len(indent)), "\n"+indent) + "\n"
}

// wrap breaks a sentence at blanks into lines of at most n characters.
func wrap(s string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > n {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// Next is the command that continues a write, "" when nothing has to be done.
func Next(r ledger.Record) string {
	switch {
	case r.State == ledger.Settled:
		return ""
	case r.Delegated:
		return nextOwn(r)
	}
	switch r.State {
	case ledger.Held:
		return fmt.Sprintf("readback review %s approve|deny --digest %s --by NAME --reason TEXT", r.ID, r.Digest)
	case ledger.Review:
		return fmt.Sprintf("readback review %s accept|retry|compensate|abandon --by NAME --reason TEXT", r.ID)
	}
	return fmt.Sprintf("readback resume %s", r.ID)
}

// next is Next as a sentence.
func next(r ledger.Record, now time.Time) string {
	switch r.State {
	case ledger.Settled:
		if r.Due.IsZero() {
			return ""
		}
		if r.Due.After(now) {
			return fmt.Sprintf("It will be read back again by `readback work`, %s.", Ago(r.Due, now))
		}
		return fmt.Sprintf("It should have been read back again %s; `readback work` does so.", Ago(r.Due, now))
	case ledger.Held, ledger.Review:
		return "A person decides:\n  " + Next(r)
	case ledger.Delegated:
		return fmt.Sprintf("Step %q of workflow %q makes it and says when it is done; nothing is sent from here.", Safe(r.Step), Safe(r.Workflow))
	}
	when := "due now"
	switch {
	case r.QueuedBehind != "":
		return fmt.Sprintf("It is recorded, and is sent when %s about the same record is done:\n  readback show %s", r.QueuedBehind, r.QueuedBehind)
	case r.Unverified && r.Due.After(now):
		return fmt.Sprintf("The destination answered with success. It is read back in a batch by `readback work`, %s.", Ago(r.Due, now))
	case r.InHand(now):
		when = fmt.Sprintf("in hand until %s at the latest (%s)", Moment(r.LeaseUntil), Safe(r.Owner))
	case r.Due.After(now):
		when = fmt.Sprintf("due %s", Ago(r.Due, now))
	}
	return fmt.Sprintf("It is recorded and %s. Continue it with\n  %s\nor let `readback work` do so.", when, Next(r))
}

// Outcome describes the outcome of one write, in a few lines.
func Outcome(o engine.Outcome, r ledger.Record, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", Word(o.Status), o.ID)
	for _, line := range wrap(Clip(o.Text, maxText), wrapAt) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if o.Status == ledger.InProgress && r.Reason != "" {
		for _, line := range wrap("So far: "+Clip(r.Reason, maxText)+".", wrapAt) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	if o.Ref != "" {
		b.WriteString("  record: " + place(o.Ref, "", o.URL) + "\n")
	} else if len(o.LeftOut) > 0 {
		b.WriteString("  record: its id is not plain; `readback show` has it\n")
	}
	fmt.Fprintf(&b, "  %s\n", counts(r, o))
	if rows := differences(o.Mismatches); len(rows) > 0 {
		b.WriteString(table("  ", rows...))
	}
	if n := next(r, now); n != "" {
		b.WriteString(n + "\n")
	}
	return b.String()
}

// Sentence is a text as a sentence, bounded and [Safe].
func Sentence(s string) string {
	if s = upper(Clip(s, maxText)); s != "" && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "…") {
		s += "."
	}
	return s
}

func upper(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + s[n:]
}

// Word is a state or a status as it is shown.
func Word[T ~string](s T) string { return strings.ReplaceAll(string(s), "_", " ") }

func counts(r ledger.Record, o engine.Outcome) string {
	text := Calls(r)
	if !o.Settled.IsZero() {
		text += ", took " + Wait(o.Settled.Sub(o.Created))
	}
	if o.Replayed {
		text += "; an earlier call began it"
	}
	return text
}

func place(ref, version, url string) string {
	parts := []string{Clip(ref, maxValue)}
	if version != "" {
		parts = append(parts, "version "+Clip(version, maxValue))
	}
	if url != "" {
		parts = append(parts, Clip(url, 2*maxValue))
	}
	return strings.Join(parts, "  ")
}

// differences are the rows of a table of mismatches, with its heading.
func differences(text json.RawMessage) []string {
	found, err := verify.Decode(text)
	if err != nil {
		return []string{"differences: " + raw(text)}
	}
	rows := []string{"PATH\tWANTED\tSEEN\tPROBLEM"}
	for i, m := range found {
		if i == maxRows {
			rows = append(rows, fmt.Sprintf("and %d more\t\t\t", len(found)-i))
			break
		}
		rows = append(rows, strings.Join([]string{Clip(m.Path, maxValue), side(m.Want), side(m.Got), Clip(m.Problem, maxValue)}, "\t"))
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

// side is one side of a difference. Null and absent differ.
func side(text json.RawMessage) string {
	return cmp.Or(raw(text), "(none)")
}

// FoundBy describes the fields by which a search found a write, as [ledger.Search.Matched] names
// them; "" for none.
func FoundBy(fields []string) string {
	var words []string
	for _, field := range fields {
		word, ofKey := strings.CutPrefix(field, "/key/")
		switch {
		case ofKey:
			word = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
		case field == "idempotency_key":
			word = "idempotency key"
		case field == "ref":
			word = "record reference"
		case field == "id":
			word = "ID"
		}
		words = append(words, Clip(word, maxMember))
	}
	return strings.Join(words, ", ")
}

// maxMember is how much of the name of a field is shown.
const maxMember = 60
