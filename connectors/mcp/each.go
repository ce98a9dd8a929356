package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

// maxElements is how many records one call may write: one call has one outcome, which must stay
// readable.
const maxElements = 200

// element is one of the records that a call writes.
type element struct {
	key   intent.Fields
	label string
	// fields is what is expected of it, the key included.
	fields intent.Fields
}

// elements takes the arguments of a call apart.
func (w *write) elements(args map[string]any) ([]element, error) {
	outer, err := listAt(args, w.each)
	if err != nil {
		return nil, err
	}
	var all []element
	seen := map[string]bool{}
	add := func(inner, around any) error {
		e, err := w.element(inner, around)
		switch {
		case err != nil:
			return err
		case seen[e.label]:
			return arguments("%s names the record %q twice", w.each.text(), e.label)
		case len(all) == maxElements:
			return arguments("%s has more than %d records; make several calls of it", w.each.text(), maxElements)
		}
		seen[e.label] = true
		all = append(all, e)
		return nil
	}
	for _, o := range outer {
		inner := []any{o}
		if w.within.set {
			if inner, err = listAt(o, w.within); err != nil {
				return nil, err
			}
		}
		for _, i := range inner {
			if err := add(i, o); err != nil {
				return nil, err
			}
		}
	}
	if len(all) == 0 {
		return nil, arguments("%s is empty: there is nothing to write", w.each.text())
	}
	return all, nil
}

func listAt(doc any, p path) ([]any, error) {
	v, there := p.get(doc)
	list, ok := v.([]any)
	if !there || !ok {
		return nil, arguments("%s is no list", p.text())
	}
	return list, nil
}

func (w *write) element(inner, outer any) (element, error) {
	e := element{key: intent.Fields{}, fields: intent.Fields{}}
	for _, name := range w.kind.keys {
		v, there := w.key[name].from(inner, outer)
		if s, ok := declared.ScalarText(v); !there || !ok || s == "" {
			return e, arguments("a record of %s has no %s; want a text that is not empty, or a number", w.each.text(), name)
		}
		e.key[name], e.fields[name] = v, v
	}
	for name, s := range w.expect {
		if v, there := s.from(inner, outer); there {
			e.fields[name] = v
		}
	}
	var err error
	e.label, err = labelOf(w.kind.keys, e.key)
	return e, err
}

// bare is the key as it is in the list of keys: the value of a single field, or an object.
func bare(names []string, key intent.Fields) any {
	if len(names) == 1 {
		return key[names[0]]
	}
	return map[string]any(key)
}

// labelOf names one of several records: by its key where that is a valid member name, otherwise
// by a digest of it.
func labelOf(names []string, key intent.Fields) (string, error) {
	if len(names) == 1 {
		if s, ok := key[names[0]].(string); ok && plainLabel(s) {
			return s, nil
		}
	}
	text, err := intent.Canonical(bare(names, key))
	if err != nil {
		return "", arguments("a key cannot be written as JSON")
	}
	if s := string(text); plainLabel(s) && len(names) > 1 {
		return s, nil
	}
	sum := sha256.Sum256(text)
	return "sha256-" + hex.EncodeToString(sum[:]), nil
}

func plainLabel(s string) bool {
	return s != "" && len(s) <= maxLabel && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) && !strings.HasPrefix(s, "sha256-")
}

func (w *write) deriveEach(args intent.Fields) (intent.WriteIntent, error) {
	in := intent.WriteIntent{Kind: w.kind.name, Write: w.write}
	all, err := w.elements(map[string]any(args))
	if err != nil {
		return in, err
	}
	if in.Key, err = eachKeyOf(w.kind.keys, all); err != nil {
		return in, err
	}
	if w.write != intent.Delete {
		in.Expect = intent.Fields{eachRecords: recordsOf(all)}
		if in.Compare, err = w.kind.comparisons(all); err != nil {
			return in, err
		}
	}
	return w.carry(in, args)
}

func eachKeyOf(names []string, all []element) (intent.Fields, error) {
	keys := make([]any, 0, len(all))
	for _, e := range all {
		keys = append(keys, bare(names, e.key))
	}
	text, err := intent.Canonical(keys)
	if err != nil {
		return nil, arguments("the keys cannot be written as JSON")
	}
	return intent.Fields{eachKey: string(text)}, nil
}

func recordsOf(all []element) map[string]any {
	m := map[string]any{}
	for _, e := range all {
		m[e.label] = map[string]any(e.fields)
	}
	return m
}

// comparisons spells the comparisons of fields out for each record.
func (k *kind) comparisons(all []element) (map[string]intent.Comparison, error) {
	if len(k.compare) == 0 {
		return nil, nil
	}
	if len(all)*len(k.compare) > intent.MaxPaths {
		return nil, arguments("more than %d fields would have to be compared; make several calls of it", intent.MaxPaths)
	}
	m := map[string]intent.Comparison{}
	for _, e := range all {
		for at, rules := range k.compare {
			m[string(intent.Pointer("").AppendToken(eachRecords).AppendToken(e.label))+at] = rules
		}
	}
	return m, nil
}

// keysOf reads the list of keys of an intent.
func (k *kind) keysOf(w intent.WriteIntent) ([]element, error) {
	text, ok := w.Key[eachKey].(string)
	if !ok {
		return nil, noPlace("/key/"+eachKey, "/key has no %s: want the list of keys as JSON text", eachKey)
	}
	all, err := k.keysIn(text)
	if err != nil {
		return nil, connectors.WrongValue("/key/"+eachKey, k.exampleKeys(), err)
	}
	return all, nil
}

// exampleKeys is a list of one key.
func (k *kind) exampleKeys() string {
	key := intent.Fields{}
	for _, name := range k.keys {
		key[name] = "x"
	}
	text, err := intent.Canonical([]any{bare(k.keys, key)})
	if err != nil {
		panic(err) // texts alone
	}
	return string(text)
}

func (k *kind) keysIn(text string) ([]element, error) {
	var holder intent.Fields
	if err := json.Unmarshal([]byte(`{"keys":`+text+`}`), &holder); err != nil || len(holder) != 1 {
		return nil, arguments("/key/%s is no JSON", eachKey)
	}
	list, ok := holder["keys"].([]any)
	if !ok || len(list) == 0 || len(list) > maxElements {
		return nil, arguments("/key/%s is no list of 1 to %d keys", eachKey, maxElements)
	}
	var all []element
	seen := map[string]bool{}
	for _, v := range list {
		e, err := k.keyed(v)
		if err != nil {
			return nil, err
		}
		if seen[e.label] {
			return nil, arguments("/key/%s names %q twice", eachKey, e.label)
		}
		seen[e.label] = true
		all = append(all, e)
	}
	return all, nil
}

func (k *kind) keyed(v any) (element, error) {
	key := intent.Fields{}
	if len(k.keys) == 1 {
		key[k.keys[0]] = v
	} else if m, ok := object(v); ok && len(m) == len(k.keys) {
		key = m
	}
	for _, name := range k.keys {
		if s, ok := declared.ScalarText(key[name]); !ok || s == "" {
			return element{}, arguments("/key/%s has an element without %s", eachKey, name)
		}
	}
	label, err := labelOf(k.keys, key)
	return element{key: key, label: label, fields: intent.Fields{}}, err
}
