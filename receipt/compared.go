package receipt

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// Compared lists which fields of the records that were read were compared, and which were not.
// Paths are JSON Pointers into a record.
type Compared struct {
	// Fields are those that were compared with the declared ones, the business key included.
	// Default none: there was no record to compare.
	Fields []Field `json:"fields,omitzero"`
	// Absent are fields that had to be absent. Default none.
	Absent []string `json:"absent,omitzero"`
	// Ignored are fields that the intent excludes from comparison. Default none.
	Ignored []string `json:"ignored,omitzero"`
	// NotCompared are fields that were sent and that no read compares, and those that the
	// destination changes by itself. Default none.
	NotCompared []string `json:"not_compared,omitzero"`
	// Others describes all further fields: "as_before" if they were compared with a read from
	// before the first send, else "not_compared". Default: there was no record.
	Others string `json:"others,omitzero"`
}

// The values of [Compared.Others].
const (
	OthersAsBefore    = "as_before"
	OthersNotCompared = "not_compared"
)

// Field is one field and how it was compared.
type Field struct {
	Path string `json:"path"`
	// Rules are the rules of the comparison in order, each as in an intent. Default exact
	// equality.
	Rules intent.Comparison `json:"rules,omitzero"`
	// From is "intent" if the rules are the intent's, and "destination" if they are those that
	// the destination is configured with when the receipt is issued. Default: there are none.
	From string `json:"from,omitzero"`
}

// compared describes what the read of a sighting was compared with.
func (s sighting) compared(p connectors.Profile) *Compared {
	w, records := s.of.shown, len(s.obs.Records)
	c := &Compared{Ignored: slices.Sorted(slices.Values(w.Ignore))}
	for _, path := range s.of.rec.NotChecked {
		path = redact.ShownText(path)
		if !slices.Contains(w.Ignore, path) {
			c.NotCompared = append(c.NotCompared, path)
		}
	}
	if records == 0 {
		return c
	}
	c.Absent = slices.Sorted(slices.Values(w.Absent))
	ways := make(map[string]Field)
	for _, declared := range []intent.Fields{w.Key, w.Expect} {
		fieldsOf(ways, "", declared, w, p)
	}
	for _, path := range slices.Sorted(maps.Keys(ways)) {
		c.Fields = append(c.Fields, ways[path])
	}
	if c.Others = OthersNotCompared; s.asBefore() {
		c.Others = OthersAsBefore
		c.NotCompared = append(c.NotCompared, p.Volatile...)
		slices.Sort(c.NotCompared)
		c.NotCompared = slices.Compact(c.NotCompared)
	}
	return c
}

// asBefore reports whether fields that the intent does not name were compared with those of a
// read from before the first send.
func (s sighting) asBefore() bool {
	var before struct {
		Records []json.RawMessage `json:"records"`
	}
	if json.Unmarshal(s.of.rec.Before, &before) != nil || len(before.Records) == 0 {
		return false
	}
	w := s.of.intent.Write
	return s.event.Verdict == verdictStale || s.event.Verdict == verdictVerified && (w == intent.Update || w == intent.Upsert)
}

// fieldsOf lists the declared fields, each as deep as it was compared: an object is compared
// member by member, unless rules apply to the whole.
func fieldsOf(all map[string]Field, at intent.Pointer, declared map[string]any, w intent.WriteIntent, p connectors.Profile) {
	for name, value := range declared {
		path := at.AppendToken(name)
		if slices.Contains(w.Ignore, string(path)) {
			continue
		}
		f := Field{Path: string(path)}
		if rules, has := w.Compare[f.Path]; has {
			f.Rules, f.From = rules, fromIntent
		} else if rules := p.Compare[f.Path]; len(rules) > 0 {
			f.Rules, f.From = rules, fromDestination
		}
		if below, is := value.(map[string]any); is && len(below) > 0 && len(f.Rules) == 0 {
			fieldsOf(all, path, below, w, p)
			continue
		}
		if len(f.Rules) == 0 {
			f.Rules, f.From = nil, ""
		}
		all[f.Path] = f
	}
}

const (
	fromIntent      = "intent"
	fromDestination = "destination"
)

// check returns what is wrong with the description of the comparison.
func (c *Compared) check(records int) error {
	others := []string{OthersAsBefore, OthersNotCompared}
	if records == 0 {
		others = []string{""}
	}
	switch {
	case !slices.Contains(others, c.Others):
		return invalid("compared/others", "%s; one of %q is wanted", clip(c.Others), others)
	case (len(c.Fields) > 0 || len(c.Absent) > 0) && records == 0:
		return invalid("compared/fields", "there was no record to compare")
	case len(c.Fields) == 0 && records > 0:
		return invalid("compared/fields", "the business key at least is compared")
	}
	for _, f := range c.Fields {
		if f.Path == "" || (f.From != "") != (len(f.Rules) > 0) || !slices.Contains([]string{"", fromIntent, fromDestination}, f.From) {
			return invalid("compared/fields", "%s has rules from %s", clip(f.Path), clip(f.From))
		}
	}
	return nil
}

// Difference is one field that a later read observed different from the declared one.
type Difference struct {
	// Path is a JSON Pointer into the record, or "/count"; Problem is the outcome's word for it
	// ("differs", "not there", "changed").
	Path    string `json:"path"`
	Problem string `json:"problem"`
	// Declared is the value that was declared, or was there before, Found the one that was read.
	// Default there is none.
	Declared *Text `json:"declared,omitzero"`
	Observed *Text `json:"found,omitzero"`
}

// differencesOf are the mismatches of a read, as stored in the ledger.
func differencesOf(stored []byte, values bool) (all []Difference, err error) {
	found, err := verify.Decode(redact.Shown(stored))
	if err != nil {
		return nil, fmt.Errorf("what a later read found cannot be read: %w", err)
	}
	for _, m := range found {
		d := Difference{Path: m.Path, Problem: m.Problem}
		for _, v := range []struct {
			value json.RawMessage
			into  **Text
		}{{m.Want, &d.Declared}, {m.Got, &d.Observed}} {
			if len(v.value) == 0 {
				continue
			}
			t, err := textOf(v.value, values)
			if err != nil {
				return nil, fmt.Errorf("what a later read found cannot be read: %w", err)
			}
			*v.into = &t
		}
		all = append(all, d)
	}
	return all, nil
}

// About returns nil if the receipt is about this very intent, or [ErrAnother] with the
// difference. The vault has the keys of the ledger. It is needed if the intent has sensitive
// values ([IntentDigest]), else it may be nil. Without the key About fails with
// [redact.ErrNoKey].
func (s Statement) About(w intent.WriteIntent, v *redact.Vault) error {
	if len(s.Subject) != 1 {
		return another("it has %d subjects", len(s.Subject))
	}
	if key := w.StructuralKey(); key != s.Predicate.Write.StructuralKey {
		return another("its structural key is %.16s…, and that of the intent (tenant, workflow, step, tool and call) is %.16s…", s.Predicate.Write.StructuralKey, key)
	}
	digest, err := w.Digest()
	if err != nil {
		return err
	}
	have := s.Subject[0].Digest.String()
	key := intent.DigestKey(have)
	switch {
	case v.SameIntent(s.Predicate.Tenant, digest, have):
		return nil
	case key == "":
		return another("the digest of its intent is %.16s…, and that of the intent given is %.16s…: the same write was declared otherwise", have, digest)
	case !v.Has(key):
		return fmt.Errorf("%w: the intent has sensitive values, and its digest is made with the redaction key %q of the ledger; a holder of that key can compare the intent, and the structural key, which is the same, names the write", redact.ErrNoKey, key)
	}
	return another("the digest of the intent given is not that of its intent: the same write was declared otherwise")
}
