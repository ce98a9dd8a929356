package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

// exported is one line of an export or of a file of outcomes: an intent, a record as `readback
// list --json` prints it, an outcome as `readback submit --json` does, or {destination, kind,
// key, status}. Its content about the world is a claim.
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
	Delegated     bool            `json:"entrusted"`

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

// claims is what an outcome claims about the world. The zero value is no claim.
type claims int

const (
	claimsNone    claims = iota // no claim
	claimsEffect                // it is there, as declared
	claimsNothing               // it is not there: a reviewer refused it, or it was undone
	claimsAbort                 // it is not there: the verifier reports that it was not applied
	claimsHalt                  // the verifier stopped: a reviewer must decide
	claimsMaybe                 // it may be there
)

// status is the status of the write, in one word; "" if the line is only a declaration.
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
	item     uint32
	intent   intent.WriteIntent
	exported exported
	claimed  string // what became of it, in one word
	masked   int    // fields that the export does not show
}

// id is the name of the write in every ledger.
func (w write) id() string { return idOf(w.intent) }

// idOf follows from the structural key; a test compares it with ledger.IDOf.
func idOf(w intent.WriteIntent) string { return "wr_" + w.StructuralKey()[:32] }

// pages are the lists of an export, without what is in them.
type pages struct {
	listed []pageOf
	after  map[string]bool
}

type pageOf struct {
	n      int
	before string
	oldest time.Time
}

// note notes a page.
func (p *pages) note(one page) {
	if !one.listed {
		return
	}
	if p.after == nil {
		p.after = map[string]bool{}
	}
	p.after[one.after] = true
	p.listed = append(p.listed, pageOf{one.n, one.before, one.oldest()})
}

// whole refuses an export that has only some pages of a list, unless those that it has
// reach back beyond a time.
func (p *pages) whole(ps *problems, path string, from time.Time) {
	for _, one := range p.listed {
		if one.before == "" || p.after[one.before] || !from.IsZero() && one.oldest.Before(from) {
			continue
		}
		ps.say(path, one.n, "before", "says that there are more writes; want the further pages of the same list behind it, from `readback list --json --before %s` on: what was declared is not all there", yamlfile.Clip(one.before))
	}
}

// oldest is when the last write of a page came, which is the oldest one; never for a
// page without any.
func (p page) oldest() time.Time {
	var w struct {
		Created time.Time `json:"created"`
	}
	if len(p.lines) == 0 || json.Unmarshal(p.lines[len(p.lines)-1].raw, &w) != nil || w.Created.IsZero() {
		return never
	}
	return w.Created
}

// never is after any time.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// readExport keeps the places of the writes of an export, each once, and gives their
// ids in order.
func (f *File) readExport(ps *problems, path string, note func(page), flags func(write) uint8) (ids []ref) {
	number := f.keep(ps, path)
	if number == 0 {
		return nil
	}
	var lines []line
	understand := func() {
		type understood struct {
			w  write
			ok bool
			id digest
			ps problems
		}
		all := make([]understood, len(lines))
		parallel(len(lines), func(i int) {
			one := &all[i]
			if one.w, one.ok = writeOf(&one.ps, lines[i]); one.ok {
				one.id = digestOf(one.w.id())
			}
		})
		for i, one := range all {
			ps.add(one.ps)
			if one.ok {
				f.add(ps, lines[i], placeName{one.w.intent.Destination, one.w.intent.Kind}, one.w.exported.Created, flags(one.w))
				ids = append(ids, ref{one.id, uint32(len(f.items) - 1)}) //nolint:gosec // files are bounded
			}
		}
		lines = lines[:0]
		if f.progress != nil {
			f.progress(Progress{Doing: "loading " + filepath.Base(path), Done: len(f.items)})
		}
	}
	eachPage(ps, path, number, func(p page) {
		note(p)
		if lines = append(lines, p.lines...); len(lines) >= batch {
			understand()
		}
	})
	understand()
	done, err := f.open()
	if err != nil {
		ps.say(path, 0, "", "%s", err)
		return ids
	}
	defer done()
	f.sort(ids)
	f.once(ps, ids)
	return ids
}

// writes reports whether there are writes that are meant.
func (f *File) writes() bool { return f.meant > 0 && !f.items[0].is(isEffect) }

// eachWrite gives the writes that are meant.
func (f *File) eachWrite(give func(write)) error {
	done, err := f.open()
	if err != nil {
		return err
	}
	defer done()
	for _, it := range f.items {
		if it.is(isOther) || it.is(isDropped) {
			continue
		}
		w, err := f.writeAt(it)
		if err != nil {
			return err
		}
		give(w)
	}
	return nil
}

// once drops all but one of several lines about the same write: pages can overlap. The later one
// with a status counts. ids are those of all writes.
func (f *File) once(ps *problems, ids []ref) {
	for i := 1; i < len(ids); i++ {
		if ids[i].digest != ids[i-1].digest {
			continue
		}
		first, err := f.writeAt(f.items[ids[i-1].item])
		second, errSecond := f.writeAt(f.items[ids[i].item])
		if err := errors.Join(err, errSecond); err != nil {
			ps.say(f.path, 0, "", "%s", err)
			return
		}
		was, err := first.intent.Digest()
		is, errIs := second.intent.Digest()
		dropped := &f.items[ids[i].item]
		switch {
		case err != nil || errIs != nil || was != is:
			ps.say(second.line.file, second.line.n, "intent", "is of the same write as %s, and asks for something else; want one of them", first.line.where())
		case second.claimed != "":
			dropped = &f.items[ids[i-1].item]
		default:
			ids[i].item = ids[i-1].item // a third is compared with the one that counts
		}
		if dropped.flags |= isDropped; !dropped.is(isOther) {
			f.meant--
		}
	}
}

// writeOf reads what was declared, and what was claimed of it; false for what is no
// declaration.
func writeOf(ps *problems, l line) (write, bool) {
	var e exported
	if err := json.Unmarshal(l.raw, &e); err != nil {
		ps.say(l.file, l.n, "", "is no write: %s", err)
		return write{}, false
	}
	body := l.raw
	if len(e.Intent) > 0 {
		body = e.Intent
	}
	switch {
	case e.Tombstone:
		ps.say(l.file, l.n, "", "is a write that was pruned: what it declared is forgotten; take the line out, or make the export before pruning")
		return write{}, false
	case e.Delegated:
		return write{}, false // its caller made it, and may have declared anything
	case len(e.Intent) == 0 && e.Write == "":
		ps.say(l.file, l.n, "intent", "is missing; want an intent, or a write as `readback list --json` prints it")
		return write{}, false
	}
	w, err := intent.DecodeStored(body)
	if err != nil {
		ps.say(l.file, l.n, "intent", "%s", strings.ReplaceAll(err.Error(), "\n", " "))
		return write{}, false
	}
	one := write{line: l, intent: w, exported: e}
	if len(e.Intent) == 0 {
		one.exported = exported{} // a bare intent claims nothing, whatever its members are called
	}
	one.mask()
	if s := one.exported.status(); s != "" && statuses[s] == claimsNone {
		ps.say(l.file, l.n, "status", "is %q; want one of %s", yamlfile.Clip(s), yamlfile.Names(statuses))
	}
	return one, true
}

// masked is the placeholder of a value that an export does not show.
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

// claim is what an outcome claims of a record, where it names no write.
type claim struct {
	group  digest
	item   item // where it is written
	status uint8
}

// readClaims reads a file of outcomes. ids are those of all writes, in order.
func (l *loader) readClaims(path string, ids []ref, count *counter) {
	f := l.f
	number := f.keep(&l.ps, path)
	if number == 0 {
		return
	}
	eachLine(&l.ps, path, number, func(at line) {
		var e exported
		if err := json.Unmarshal(at.raw, &e); err != nil {
			l.ps.say(at.file, at.n, "", "is no outcome: %s", err)
			return
		}
		status := e.status()
		switch {
		case statuses[status] == claimsNone:
			l.ps.say(at.file, at.n, "status", "is %q; want one of %s", yamlfile.Clip(status), yamlfile.Names(statuses))
			return
		case e.ID == "" && (e.Destination == "" || e.Kind == "" || len(e.Key) == 0):
			l.ps.say(at.file, at.n, "", "names no write; want its id, or destination, kind and key")
			return
		}
		count.add(e)
		count.call(e)
		word := uint8(slices.Index(claimWords, status)) //nolint:gosec // there are few
		if e.ID == "" {
			//nolint:gosec // lines and their sizes are bounded
			f.claims = append(f.claims, claim{groupOf(e.Destination, e.Kind, e.Key), item{at: at.at, size: uint32(len(at.raw)), line: uint32(at.n), source: at.source}, word})
			return
		}
		all := among(ids, digestOf(e.ID))
		for _, r := range all {
			f.items[r.item].claim = word
		}
		if len(all) == 0 {
			f.strays = append(f.strays, stray{at.at, e.ID + " (" + at.where() + ")"})
		}
	})
	slices.SortStableFunc(f.claims, func(a, b claim) int { return bytes.Compare(a.group[:], b.group[:]) })
}

// recordName names a record, for display and as an identifier.
func recordName(destination, kind string, key intent.Fields) string {
	text, err := intent.Canonical(map[string]any(key))
	if err != nil {
		text = []byte("(a key that is no JSON)")
	}
	return destination + "/" + kind + " " + string(text)
}
