package eval

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

// exported is one line of an export or of a file of outcomes: an intent, a record
// as `readback list --json` prints it, an outcome as `readback submit --json`
// does, or {destination, kind, key, status}. What it says of the world is a claim.
type exported struct {
	ID            string          `json:"id"`
	StructuralKey string          `json:"structural_key"`
	Intent        json.RawMessage `json:"intent"`
	Status        string          `json:"status"`
	State         string          `json:"state"`
	Settlement    string          `json:"settlement"`
	Verdict       string          `json:"verdict"`
	Sends         int             `json:"sends"`
	Unsent        int             `json:"unsent"`
	Reads         int             `json:"reads"`
	Replayed      bool            `json:"replayed"`
	Created       time.Time       `json:"created"`
	LastSend      time.Time       `json:"last_send"`
	SettledAt     time.Time       `json:"settled_at"`
	Tombstone     bool            `json:"tombstone"`
	Entrusted     bool            `json:"entrusted"`

	Destination string        `json:"destination"`
	Kind        string        `json:"kind"`
	Key         intent.Fields `json:"key"`
	Write       string        `json:"write"`
	Stamp       string        `json:"stamp"`
}

// statuses are the words for what became of a write, and what each claims of its
// effect.
var statuses = map[string]claims{
	"verified":    claimsEffect,
	"reported":    claimsMaybe,
	"accepted":    claimsMaybe,
	"abandoned":   claimsMaybe,
	"review":      claimsHalt,
	"held":        claimsHalt,
	"in_progress": claimsMaybe,
	"unverified":  claimsMaybe,
	"entrusted":   claimsMaybe,
	"not_applied": claimsAbort,
	"compensated": claimsNothing,
	"denied":      claimsNothing,
	"expired":     claimsNothing,
	"refused":     claimsNothing,
}

// claims is what an outcome says of the world. The zero value is that nothing is
// said.
type claims int

const (
	claimsNone    claims = iota // nobody says anything
	claimsEffect                // it is there, as declared
	claimsNothing               // it is not there: a person refused it, or it was undone
	claimsAbort                 // it is not there: the verifier says that it was not applied
	claimsHalt                  // the verifier stopped: a person is to decide
	claimsMaybe                 // it may be there
)

// status is what became of the write, in one word; "" where the line is a
// declaration alone.
func (e exported) status() string {
	switch {
	case e.Status != "":
		return e.Status
	case e.State == "settled":
		return e.Settlement
	case e.State == "held", e.State == "review", e.State == "entrusted":
		return e.State
	case e.State != "":
		return "in_progress"
	}
	return ""
}

// write is one declared write of an export.
type write struct {
	line     line
	intent   intent.WriteIntent
	exported exported
	masked   int // fields that the export does not show
}

// id is the name of the write in every ledger.
func (w write) id() string { return idOf(w.intent) }

// idOf follows from the structural key; a test compares it with ledger.IDOf.
func idOf(w intent.WriteIntent) string { return "wr_" + w.StructuralKey()[:32] }

// readExport reads what was declared, all of it: an export that has only some pages
// of a list is refused, unless those that it has reach back beyond a time.
func readExport(ps *problems, path string, from time.Time) []write {
	_, pages := readPages(ps, path)
	var lines []line
	for _, p := range pages {
		for _, raw := range p.lines {
			lines = append(lines, line{path, p.line.n, raw})
		}
		if p.before == "" || goesOn(pages, p) || !from.IsZero() && p.oldest().Before(from) {
			continue
		}
		ps.say(path, p.line.n, "before", "says that there are more writes; want the further pages of the same list behind it, from `readback list --json --before %s` on: what was declared is not all there", yamlfile.Clip(p.before))
	}
	return readWrites(ps, lines)
}

// goesOn reports whether there is the page that begins where one ends.
func goesOn(pages []page, p page) bool {
	return slices.ContainsFunc(pages, func(other page) bool { return other.listed && other.after == p.before })
}

// oldest is when the last write of a page came, which is the oldest one; never for a
// page without any.
func (p page) oldest() time.Time {
	var w struct {
		Created time.Time `json:"created"`
	}
	if len(p.lines) == 0 || json.Unmarshal(p.lines[len(p.lines)-1], &w) != nil || w.Created.IsZero() {
		return never
	}
	return w.Created
}

// never is after any time.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// once keeps one of several lines about the same write: pages can overlap. The
// later one counts, which says what became of it.
func once(ps *problems, all []write) []write {
	at := map[string]int{}
	var kept []write
	for _, w := range all {
		i, twice := at[w.id()]
		if !twice {
			at[w.id()] = len(kept)
			kept = append(kept, w)
			continue
		}
		was, err := kept[i].intent.Digest()
		is, errIs := w.intent.Digest()
		switch {
		case err != nil || errIs != nil || was != is:
			ps.say(w.line.file, w.line.n, "intent", "is of the same write as %s, and asks for something else; want one of them", kept[i].line.where())
		case w.exported.status() != "":
			kept[i] = w
		}
	}
	return kept
}

// readWrites reads what was declared, and what was claimed of it.
func readWrites(ps *problems, lines []line) []write {
	var all []write
	for _, l := range lines {
		var e exported
		if err := json.Unmarshal(l.raw, &e); err != nil {
			ps.say(l.file, l.n, "", "is no write: %s", err)
			continue
		}
		body := l.raw
		if len(e.Intent) > 0 {
			body = e.Intent
		}
		switch {
		case e.Tombstone:
			ps.say(l.file, l.n, "", "is a write that was pruned: what it declared is forgotten; take the line out, or make the export before pruning")
			continue
		case e.Entrusted:
			continue // its caller made it, and may have declared anything
		case len(e.Intent) == 0 && e.Write == "":
			ps.say(l.file, l.n, "intent", "is missing; want an intent, or a write as `readback list --json` prints it")
			continue
		}
		w, err := intent.DecodeStored(body)
		if err != nil {
			ps.say(l.file, l.n, "intent", "%s", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		one := write{line: l, intent: w, exported: e}
		if len(e.Intent) == 0 {
			one.exported = exported{} // a bare intent claims nothing, whatever its members are called
		}
		one.mask()
		if s := one.exported.status(); s != "" && statuses[s] == claimsNone {
			ps.say(l.file, l.n, "status", "is %q; want one of %s", yamlfile.Clip(s), yamlfile.Names(statuses))
		}
		all = append(all, one)
	}
	all = once(ps, all)
	slices.SortStableFunc(all, func(a, b write) int { return a.exported.Created.Compare(b.exported.Created) })
	return all
}

// masked is what stands for a value that an export does not show.
var masked = regexp.MustCompile("redacted:[0-9a-f]{16}")

// mask leaves out of the comparison what the export does not show.
func (w *write) mask() {
	for _, f := range []intent.Fields{w.intent.Expect, w.intent.Payload, w.intent.Require} {
		for _, path := range maskedIn("", f) {
			w.intent.Ignore = append(w.intent.Ignore, path)
			w.masked++
		}
	}
}

func maskedIn(at intent.Pointer, v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		if masked.MatchString(v) {
			all = append(all, string(at))
		}
	case intent.Fields:
		return maskedIn(at, map[string]any(v))
	case map[string]any:
		for name, m := range v {
			if masked.MatchString(name) {
				all = append(all, string(at.AppendToken(name)))
				continue
			}
			all = append(all, maskedIn(at.AppendToken(name), m)...)
		}
	case []any:
		for _, m := range v {
			if len(maskedIn(at, m)) > 0 {
				return append(all, string(at))
			}
		}
	}
	return all
}

// claim is what was said of one write.
type claim struct {
	line   line
	status string
	id     string
	// record is the place and key where the line names no write.
	record string
	stamp  string
}

// readClaims reads a file of outcomes.
func readClaims(ps *problems, path string) ([]claim, []exported) {
	var all []claim
	var raw []exported
	for _, l := range readLines(ps, path) {
		var e exported
		if err := json.Unmarshal(l.raw, &e); err != nil {
			ps.say(l.file, l.n, "", "is no outcome: %s", err)
			continue
		}
		c := claim{line: l, status: e.status(), id: e.ID, stamp: e.Stamp}
		switch {
		case statuses[c.status] == claimsNone:
			ps.say(l.file, l.n, "status", "is %q; want one of %s", yamlfile.Clip(c.status), yamlfile.Names(statuses))
			continue
		case e.ID == "" && (e.Destination == "" || e.Kind == "" || len(e.Key) == 0):
			ps.say(l.file, l.n, "", "names no write; want its id, or destination, kind and key")
			continue
		case e.ID == "":
			c.record = recordName(e.Destination, e.Kind, e.Key)
		}
		all, raw = append(all, c), append(raw, e)
	}
	return all, raw
}

// recordName names a record for a person, and for us.
func recordName(destination, kind string, key intent.Fields) string {
	text, err := intent.Canonical(map[string]any(key))
	if err != nil {
		text = []byte("(a key that is no JSON)")
	}
	return destination + "/" + kind + " " + string(text)
}
