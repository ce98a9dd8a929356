// Package declared is what the files of declared destinations have in common, whether they are
// reached over HTTP (connectors/rest) or by the tools of an MCP server (connectors/mcp): what a
// profile declares, how fields are compared, lists in answers, and problems with their places.
//
// It knows no request and no tool, and reads no answer by itself.
package declared

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

// WriteTypes are the writes that a file can declare, in the order in which they are listed.
var WriteTypes = []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}

// Profile is the member "profile" of a kind.
type Profile struct {
	At            yamlfile.Place
	StampsUpdates bool              `yaml:"stamps_updates"`
	Settle        yamlfile.Bound    `yaml:"settle"`
	Horizon       yamlfile.Bound    `yaml:"horizon"`
	Recheck       yamlfile.Bound    `yaml:"recheck"`
	Rollback      yamlfile.Bound    `yaml:"rollback"`
	ConfirmReads  int               `yaml:"confirm_reads"`
	Volatile      []yamlfile.Text   `yaml:"volatile"`
	Compare       map[string][]Rule `yaml:"compare"`
	Irreversible  []yamlfile.Text   `yaml:"irreversible"`
	NeverRepeat   []yamlfile.Text   `yaml:"never_repeat"`
	SendTimeout   yamlfile.Span     `yaml:"send_timeout"`
	ReadTimeout   yamlfile.Span     `yaml:"read_timeout"`
}

// Rule is one rule of a comparison.
type Rule struct {
	At        yamlfile.Place
	Rule      string        `yaml:"rule"`
	Tolerance yamlfile.Node `yaml:"tolerance"`
	Precision string        `yaml:"precision"`
	Zone      string        `yaml:"zone"`
}

// Compile makes the profile of a kind that has the writes. What follows from its requests, such
// as unique keys and undoing, is the caller's.
func (f *Profile) Compile(r *yamlfile.Reader, has func(intent.WriteType) bool) connectors.Profile {
	p := connectors.Profile{
		StampsUpdates: f.StampsUpdates,
		Settle:        bound(f.Settle), Horizon: bound(f.Horizon), Recheck: bound(f.Recheck), Rollback: bound(f.Rollback),
		ConfirmReads: f.ConfirmReads, Compare: f.comparisons(r),
		SendTimeout: time.Duration(f.SendTimeout), ReadTimeout: time.Duration(f.ReadTimeout),
	}
	for _, t := range f.Volatile {
		if !intent.Pointer(t.Value).IsValid() || t.Value == "" {
			r.At(t.Place, "is no JSON Pointer; want one such as /updated_at")
		}
		p.Volatile = append(p.Volatile, t.Value)
	}
	writes := func(from []yamlfile.Text) (all []intent.WriteType) {
		for _, t := range from {
			if !has(intent.WriteType(t.Value)) {
				r.At(t.Place, "is no write of this kind")
			}
			all = append(all, intent.WriteType(t.Value))
		}
		return all
	}
	p.Irreversible, p.NeverRepeat = writes(f.Irreversible), writes(f.NeverRepeat)
	for _, w := range WriteTypes {
		if has(w) {
			p.Writes = append(p.Writes, w)
		}
	}
	return p
}

// Compared is the place of a comparison of the field at path, for problems.
func (f *Profile) Compared(path string) yamlfile.Place {
	return yamlfile.Place{Line: f.At.Line, Field: f.At.Field + ".compare." + yamlfile.Clip(path)}
}

func (f *Profile) comparisons(r *yamlfile.Reader) map[string]intent.Comparison {
	all := map[string]intent.Comparison{}
	for _, path := range slices.Sorted(maps.Keys(f.Compare)) {
		if !intent.Pointer(path).IsValid() || path == "" {
			r.At(f.Compared(path), "is no JSON Pointer; want one such as /title")
		}
		rules := intent.Comparison{}
		for _, one := range f.Compare[path] {
			rules = append(rules, one.compile(r))
		}
		if err := rules.Validate(); err != nil {
			r.At(f.Compared(path), "%s", err)
		}
		all[path] = rules
	}
	return all
}

func (f Rule) compile(r *yamlfile.Reader) intent.Rule {
	rule := intent.Rule{Name: intent.RuleName(f.Rule), Precision: f.Precision, Zone: f.Zone}
	if f.Tolerance.There() {
		switch v, _ := r.Scalar(f.Tolerance, f.At.Field+".tolerance"); v := v.(type) {
		case string:
			rule.Tolerance = v
		case json.Number:
			rule.Tolerance = v.String()
		default:
			r.Say(f.Tolerance.Line(), f.At.Field+".tolerance", "want a decimal number, such as 0.01")
		}
	}
	return rule
}

func bound(b yamlfile.Bound) connectors.Bound {
	if !b.Known {
		return connectors.Bound{}
	}
	return connectors.Within(b.Time)
}

// Lasting leaves out of fields what the destination changes by itself.
func Lasting(p connectors.Profile, fields intent.Fields) intent.Fields {
	kept := maps.Clone(fields)
	for _, path := range p.Volatile {
		p := intent.Pointer(path)
		if p.Parent() == "" {
			delete(kept, p.LastToken())
		}
	}
	return kept
}

// Profiles is the profile of each of several kinds, by name. The caller owns the result.
func Profiles[K any](kinds map[string]K, of func(K) connectors.Profile) map[string]connectors.Profile {
	all := map[string]connectors.Profile{}
	for name, k := range kinds {
		p := of(k)
		p.Kind = name
		p.Writes, p.Unique, p.Conditional = slices.Clone(p.Writes), slices.Clone(p.Unique), slices.Clone(p.Conditional)
		p.Volatile, p.Irreversible, p.Undo, p.Reads = slices.Clone(p.Volatile), slices.Clone(p.Irreversible), slices.Clone(p.Undo), slices.Clone(p.Reads)
		p.NeverRepeat, p.ShowsUnused = slices.Clone(p.NeverRepeat), slices.Clone(p.ShowsUnused)
		p.NativeWindow, p.Compare = maps.Clone(p.NativeWindow), maps.Clone(p.Compare)
		all[name] = p
	}
	return all
}

// Summary is the member "summary" of a kind.
type Summary struct {
	At       yamlfile.Place
	Text     yamlfile.Text `yaml:"text,short"`
	Verb     yamlfile.Text `yaml:"verb"`
	Amount   yamlfile.Text `yaml:"amount"`
	Currency yamlfile.Text `yaml:"currency"`
	Minor    bool          `yaml:"minor"`
	Subject  yamlfile.Text `yaml:"subject"`
	Customer yamlfile.Text `yaml:"customer"`
}

// Declared is the summary as it is written, zero where there is none.
func (f *Summary) Declared() connectors.Summary {
	if f == nil {
		return connectors.Summary{}
	}
	return connectors.Summary{Text: f.Text.Value, Verb: f.Verb.Value, Amount: f.Amount.Value, Currency: f.Currency.Value, Minor: f.Minor,
		Subject: f.Subject.Value, Customer: f.Customer.Value}
}

// Compile makes the summary of a kind. known reports whether a write or a read of the kind has a
// field (a JSON Pointer), and fields lists those for the problem.
func (f *Summary) Compile(r *yamlfile.Reader, known func(path string) bool, fields string) connectors.Summary {
	s := f.Declared()
	if f == nil {
		return s
	}
	if !r.Required(f.Text, f.At, "text", "the name of a record, such as order {id}") {
		return connectors.Summary{}
	}
	if err := s.Valid(); err != nil {
		r.At(f.At, "%s", err)
		return connectors.Summary{}
	}
	for _, path := range s.Fields() {
		if !known(path) {
			r.At(f.At, "has the field %s, which is no field of this kind; want one of %s", yamlfile.Clip(path), fields)
		}
	}
	return s
}
