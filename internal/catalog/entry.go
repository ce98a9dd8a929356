package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/policies"
)

// errUnknown means that there is no entry of that name.
var errUnknown = errors.New("not in the catalogue")

// Entry is one kind of record of one system, in words and as JSON.
type Entry struct {
	Name   string `json:"name"`
	System string `json:"system"`
	Kind   string `json:"kind"`
	Type   string `json:"type,omitempty"`
	// Promises are what readback can promise, by write type.
	Promises []policies.Guarantee `json:"promises"`
	// Declared is the profile.
	Declared []Declared `json:"declared"`
	Claims   []Claim    `json:"claims"`
}

// Declared is one thing that the profile declares, in words.
type Declared struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Claim is what is known about one topic.
type Claim struct {
	About  connectors.Topic `json:"about"`
	Says   string           `json:"says"`
	Source string           `json:"source"`
	// Assumed: not published; a cautious default of ours.
	Assumed bool `json:"assumed"`
}

// Of makes an entry of a sheet.
func Of(s connectors.Sheet) Entry {
	e := Entry{Name: s.Name, System: s.System, Kind: s.Kind, Type: s.Type, Declared: declared(s.Profile)}
	for _, w := range writes(s.Profile) {
		e.Promises = append(e.Promises, policies.Explain(s.Profile, w))
	}
	for _, topic := range connectors.Topics() {
		for _, c := range s.Claims {
			if c.About == topic {
				e.Claims = append(e.Claims, Claim(c))
			}
		}
	}
	return e
}

// Find is the entry of that name. The error wraps [errUnknown] and lists the
// names.
func Find(sheets []connectors.Sheet, name string) (Entry, error) {
	var names []string
	for _, s := range sheets {
		if s.Name == name {
			return Of(s), nil
		}
		names = append(names, s.Name)
	}
	return Entry{}, fmt.Errorf("%w: %q; there are %s", errUnknown, name, strings.Join(names, ", "))
}

func writes(p connectors.Profile) []intent.WriteType {
	all := []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}
	return slices.DeleteFunc(all, func(w intent.WriteType) bool { return p.Check(w) != nil })
}

// declared is the profile in words. It also lists what is not declared: readers want to know
// that.
func declared(p connectors.Profile) []Declared {
	all := []Declared{
		{"writes", list(writes(p))},
		{"native idempotency", windows(p.NativeWindow)},
		{"unique keys", list(p.Unique)},
		{"conditional writes", list(p.Conditional)},
		{"stamp", stamp(p)},
		{"reads", paths(p.Reads)},
		{"settle time", bound(p.Settle)},
		{"undecided for", orNone(bound(p.Open), p.Open)},
		{"horizon", bound(p.Horizon)},
		{"takes effects back", orNone(bound(p.Rollback), p.Rollback)},
		{"recheck", orNone(bound(p.Recheck), p.Recheck)},
		{"reads that must agree", fmt.Sprint(p.Confirm())},
		{"undo", list(p.Undo)},
		{"irreversible", list(p.Irreversible)},
		{"never sent again", list(p.NeverRepeat)},
		{"fields that it changes itself", cmp.Or(strings.Join(p.Volatile, ", "), "none")},
		{"fields compared by rules", cmp.Or(strings.Join(slices.Sorted(maps.Keys(p.Compare)), ", "), "none")},
		{"bulk reads", bulk(p.BulkLimit)},
		{"rate", rate(p.Rate)},
		{"time for a send, a read", fmt.Sprintf("%s, %s", report.Short(p.SendFor()), report.Short(p.ReadFor()))},
	}
	if len(p.Sensitive) > 0 { // no destination declares this; its configuration does
		all = append(all, Declared{"sensitive fields", strings.Join(p.Sensitive, ", ")})
	}
	return all
}

func list(all []intent.WriteType) string {
	var words []string
	for _, w := range all {
		words = append(words, string(w))
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

func windows(by map[intent.WriteType]time.Duration) string {
	var words []string
	for _, w := range slices.Sorted(maps.Keys(by)) {
		words = append(words, fmt.Sprintf("%s for %s", w, report.Short(by[w])))
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

func stamp(p connectors.Profile) string {
	switch {
	case p.Stamped && p.StampsUpdates:
		return "on creates and updates"
	case p.Stamped:
		return "on creates"
	}
	return "none"
}

func paths(reads []connectors.ReadPath) string {
	var words []string
	for _, r := range reads {
		words = append(words, fmt.Sprintf("%s by %s (%s%s)", r.Path, r.By, cmp.Or(string(r.Strength), "weak"), apart(r.Independent)))
	}
	return cmp.Or(strings.Join(words, ", "), "not known")
}

// apart describes a way of reading beyond a call of its own, which is not mentioned since it is
// true of all.
func apart(i connectors.Independence) string {
	switch i {
	case connectors.OtherLogin:
		return ", with another login than writes"
	case connectors.OtherInterface:
		return ", through another interface than writes"
	case connectors.OtherServer:
		return ", at another server than writes"
	}
	return ""
}

func bound(b connectors.Bound) string {
	d, declared := b.Declared()
	if !declared {
		return "not declared"
	}
	return report.Short(d)
}

func orNone(text string, b connectors.Bound) string {
	if d, _ := b.Declared(); d <= 0 {
		return "none"
	}
	return text
}

func bulk(limit int) string {
	if limit <= 0 {
		return "none"
	}
	return fmt.Sprintf("%d at a time", limit)
}

func rate(r connectors.Rate) string {
	if r.Calls <= 0 {
		return "not known"
	}
	return fmt.Sprintf("%d calls in %s", r.Calls, report.Short(r.Per))
}
