package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
)

// maxReadable is the longest idempotency key that is written out; longer ones are a
// digest. Names have at most 255 bytes.
const maxReadable = 200

// Intent makes the intent of one call from its raw arguments. The caller sets tenant,
// workflow, step and call. The idempotency key is set if the tool names its operation. It
// fails with [ArgumentsError], which names the arguments.
func (t Tool) Intent(arguments []byte) (intent.WriteIntent, error) {
	given, err := t.Values(arguments)
	if err != nil {
		return intent.WriteIntent{}, err
	}
	w := t.plain()
	parts := t.parts(&w)
	for _, a := range t.Arguments {
		if v, there := given[a.Name]; there {
			p := t.placeOf(a)
			if text, ok := v.(string); ok && p.part == "context" {
				w.Context = map[string]string{p.path.LastToken(): text}
				continue
			}
			put(parts[p.part], p.path, v)
		}
	}
	for _, part := range []*intent.Fields{&w.Key, &w.Expect, &w.Payload, &w.Require} {
		if len(*part) == 0 {
			*part = nil
		}
	}
	if err := t.valid(w); err != nil {
		return intent.WriteIntent{}, err
	}
	w.IdempotencyKey, err = t.operation(given)
	return w, err
}

// plain is the fixed part of every call's intent.
func (t Tool) plain() intent.WriteIntent {
	return intent.WriteIntent{
		Tool: t.Name, Destination: t.Destination, Kind: t.Kind, Write: t.Write,
		Key: copied(t.Fixed.Key), Expect: copied(t.Fixed.Expect), Payload: copied(t.Fixed.Payload), Require: copied(t.Fixed.Require),
		Absent: slices.Clone(t.Absent), Ignore: slices.Clone(t.Ignore), Compare: maps.Clone(t.Compare),
		Risk: t.Risk, Reversibility: t.Reversibility, OnMismatch: t.OnMismatch,
	}
}

func (t Tool) parts(w *intent.WriteIntent) map[string]intent.Fields {
	return map[string]intent.Fields{"key": w.Key, "expect": w.Expect, "payload": w.Payload}
}

// copied is a copy of the objects of a part, into which arguments may be put.
func copied(f intent.Fields) intent.Fields {
	all := intent.Fields{}
	for name, v := range f {
		all[name] = copyOf(v)
	}
	return all
}

func copyOf(v any) any {
	if m, ok := v.(map[string]any); ok {
		return map[string]any(copied(m))
	}
	return v
}

// put sets a value at a place and creates the objects above it. [Tool.Check] has ensured
// that no value is in the way.
func put(into map[string]any, path intent.Pointer, v any) {
	tokens := slices.Collect(path.Tokens())
	for _, token := range tokens[:len(tokens)-1] {
		inner, ok := into[token].(map[string]any)
		if !ok {
			inner = map[string]any{}
			into[token] = inner
		}
		into = inner
	}
	into[tokens[len(tokens)-1]] = v
}

// operation is the idempotency key of a call: the named arguments as canonical
// JSON, or a digest of that where it does not fit a name.
func (t Tool) operation(given map[string]any) (string, error) {
	if len(t.Operation) == 0 {
		return "", nil
	}
	named := map[string]any{}
	for _, name := range t.Operation {
		named[name] = given[name]
	}
	text, err := intent.Canonical(named)
	if err != nil {
		return "", t.translate(err)
	}
	if len(text) <= maxReadable && !strings.ContainsFunc(string(text), func(r rune) bool { return r < ' ' || r > '~' }) {
		return string(text), nil
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// valid validates the intent, with names that the caller will replace.
func (t Tool) valid(w intent.WriteIntent) error {
	w.Tenant, w.Workflow = "tenant", "workflow"
	return t.translate(w.Validate())
}

// translate describes the faults of a call's intent in terms of arguments.
func (t Tool) translate(err error) error {
	var bad *intent.InvalidError
	if err == nil || !errors.As(err, &bad) {
		return err
	}
	var problems []Problem
	for _, p := range bad.Problems {
		one := Problem{Problem: p.Path + " " + p.Problem, Want: p.Want}
		for _, a := range t.Arguments {
			if at := t.placeOf(a).pointer(); p.Path == at || strings.HasPrefix(p.Path, at+"/") {
				one = Problem{a.Name, strings.TrimSpace(strings.TrimPrefix(p.Path, at) + " " + p.Problem), p.Want}
			}
		}
		problems = append(problems, one)
	}
	return refused(problems)
}

// Explain describes the faults of an intent that this tool made in terms of its
// arguments: an [intent.InvalidError] becomes an [ArgumentsError], every other error is
// returned unchanged.
func (t Tool) Explain(err error) error { return t.translate(err) }

// Values is the arguments of a call by name, validated. It fails with [ArgumentsError].
func (t Tool) Values(arguments []byte) (map[string]any, error) {
	given, problem := decode(arguments)
	if problem != nil {
		return nil, refused([]Problem{*problem})
	}
	if err := refused(t.values(given)); err != nil {
		return nil, err
	}
	return given, nil
}
