package mcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

const (
	// carried is the member in which an intent carries the arguments of a call
	// as they were given, where key and expectation do not hold all of them: in
	// its payload, and for a delete, which has none, as text in its key.
	carried = "arguments"
	// eachKey is the one field of the business key where one call writes several
	// records: the list of their keys as canonical JSON.
	eachKey = "each"
	// eachRecords is the field that holds these records, by their labels.
	eachRecords = "records"
)

// Passes reports whether a call of a tool with a contract writes nothing: the contract names an
// argument that makes it a read.
func (c *Contract) Passes(tool string, args intent.Fields) bool {
	w, ok := c.tools[tool]
	if !ok || w.passes == nil {
		return false
	}
	v, there := w.passes.argument.get(map[string]any(args))
	return there && declared.Same(v, w.passes.equals)
}

// Derive makes the intent of a call; the caller sets destination, origin and the rest. before is
// the result of a read of [Contract.ReadsBack], nil where none was needed. The error wraps
// [ErrArguments]; nothing is sent then.
func (c *Contract) Derive(tool string, args intent.Fields, before *connectors.Observation) (intent.WriteIntent, error) {
	w, ok := c.tools[tool]
	if !ok {
		return intent.WriteIntent{}, arguments("the tool %q has no contract", tool)
	}
	if _, others := w.notCompared(args); len(others) > 0 {
		return intent.WriteIntent{}, arguments("%s: no read could show whether it was stored, since the contract does not say where it is stored. Leave it out, or list it under not_checked of %s in the contract", strings.Join(others, ", "), tool)
	}
	if w.kind.each {
		return w.deriveEach(args)
	}
	return w.derive(args, before)
}

// ReadsBack is the key by which the record must be read before the intent of a
// call can be made; false where it need not be.
func (c *Contract) ReadsBack(tool string, args intent.Fields) (intent.WriteIntent, bool, error) {
	w, ok := c.tools[tool]
	if !ok || !w.readsBack() {
		return intent.WriteIntent{}, false, nil
	}
	key, err := w.keyOf(args)
	return intent.WriteIntent{Kind: w.kind.name, Write: w.write, Key: key}, true, err
}

func (w *write) derive(args intent.Fields, before *connectors.Observation) (intent.WriteIntent, error) {
	in := intent.WriteIntent{Kind: w.kind.name, Write: w.write}
	var err error
	if in.Key, err = w.keyOf(args); err != nil {
		return in, err
	}
	if v, set := w.stamp.get(map[string]any(args)); w.stamp.set && set && v != nil {
		return in, arguments("%s is set; readback puts its own mark there", w.stamp.text())
	}
	if in.Expect, err = w.fields(w.expect, args, before); err != nil {
		return in, err
	}
	if in.Require, err = w.fields(w.require, args, before); err != nil {
		return in, err
	}
	if len(in.Expect) == 0 && w.write != intent.Delete {
		in.Expect = maps.Clone(in.Key)
	}
	return w.carry(in, args)
}

// keyOf is the business key of a call that writes one record.
func (w *write) keyOf(args intent.Fields) (intent.Fields, error) {
	key := intent.Fields{}
	for _, name := range w.kind.keys {
		v, there := w.key[name].from(map[string]any(args), nil)
		if s, ok := declared.ScalarText(v); !there || !ok || s == "" {
			return nil, arguments("%s names the record (%s); want a text that is not empty, or a number", w.key[name].path.text(), name)
		}
		key[name] = v
	}
	return key, nil
}

// from is the value of an argument, or a fixed one.
func (s source) from(inner any, outer any) (any, bool) {
	switch {
	case s.fixed:
		return s.value, true
	case s.outer:
		return s.path.get(outer)
	}
	return s.path.get(inner)
}

// fields takes values together; what an argument that was left out would give is
// left out.
func (w *write) fields(sources map[string]source, args intent.Fields, before *connectors.Observation) (intent.Fields, error) {
	var all intent.Fields
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s := sources[name]
		var v any
		there := true
		var err error
		switch {
		case s.replace != nil:
			v, err = s.replace.apply(name, args, before)
		case s.before != "":
			v, err = fieldBefore(s.before, before)
		default:
			v, there = s.from(map[string]any(args), nil)
		}
		if err != nil {
			return nil, err
		}
		if there {
			if all == nil {
				all = intent.Fields{}
			}
			all[name] = v
		}
	}
	return all, nil
}

// fieldBefore is a field of the one record that was read before the call.
func fieldBefore(name string, before *connectors.Observation) (any, error) {
	if before == nil || len(before.Records) != 1 {
		return nil, arguments("the record that it is about is not there, or there are several; nothing was sent")
	}
	v, there := before.Records[0].Fields[name]
	if !there {
		return nil, arguments("the current record shows no %s; nothing was sent", name)
	}
	return v, nil
}

// apply is the text of the record before with the pieces replaced, one after the other, each at
// its first occurrence. Tools that document an exact replacement do the same. A piece that does
// not occur, or occurs twice, is refused, since its result is unknown.
func (r *replace) apply(name string, args intent.Fields, before *connectors.Observation) (any, error) {
	was, err := fieldBefore(name, before)
	if err != nil {
		return nil, err
	}
	text, ok := was.(string)
	list, listed := r.each.get(map[string]any(args))
	edits, isList := list.([]any)
	if !ok || !listed || !isList || len(edits) == 0 || len(edits) > maxElements {
		return nil, arguments("%s is no list of edits, or the record shows no text to edit", r.each.text())
	}
	text = r.lines(text)
	for i, e := range edits {
		o, okOld := r.old.get(e)
		n, okNew := r.new.get(e)
		from, isText := o.(string)
		to, isNew := n.(string)
		if !okOld || !okNew || !isText || !isNew || from == "" {
			return nil, arguments("edit %d has no old and new text", i+1)
		}
		from, to = r.lines(from), r.lines(to)
		switch strings.Count(text, from) {
		case 0:
			return nil, arguments("the old text of edit %d is not exactly in the current record; read the record again. Nothing was sent", i+1)
		case 1:
			text = strings.Replace(text, from, to, 1)
		default:
			return nil, arguments("the old text of edit %d is in the record more than once; give more of what is around it. Nothing was sent", i+1)
		}
	}
	return text, nil
}

// lines is a text with the line ends that the tool makes itself.
func (r *replace) lines(text string) string {
	if r.lf {
		return strings.ReplaceAll(text, "\r\n", "\n")
	}
	return text
}

// carry puts the arguments into the intent where key and expectation alone would not reproduce
// them, so that what is sent is what was requested.
func (w *write) carry(in intent.WriteIntent, args intent.Fields) (intent.WriteIntent, error) {
	again, err := w.build(in)
	if err == nil && declared.Same(map[string]any(again), map[string]any(args)) {
		return in, nil
	}
	if w.write == intent.Delete {
		text, err := intent.Canonical(map[string]any(args))
		if err != nil {
			return in, fmt.Errorf("%w: %w", ErrArguments, err)
		}
		in.Key[carried] = string(text)
		return in, nil
	}
	in.Payload = intent.Fields{carried: map[string]any(args)}
	return in, nil
}
