package mcp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

// Check refuses an intent that no tool can serve. What an intent carries as
// arguments must lead to its own key and expectation: nothing is read back for
// another call than the one that is made.
func (c *Connector) Check(in intent.WriteIntent) error {
	if c.writeOnly && in.Kind == WriteOnlyKind {
		return checkWriteOnly(in)
	}
	k, w, err := c.find(in)
	if err != nil {
		return err
	}
	if len(in.Absent) > 0 {
		return connectors.WrongField("/absent", invalid("/absent: no tool takes single fields away; want none"))
	}
	if in.Want() != 1 {
		return invalid("/count: a call of a tool is about one record, or one set of them; want 1")
	}
	if err := k.checkKey(in); err != nil {
		return err
	}
	args, err := w.build(in)
	if err != nil {
		return fmt.Errorf("%w: %w", intent.ErrInvalid, err)
	}
	return w.agrees(in, args)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", intent.ErrInvalid, fmt.Errorf(format, args...))
}

// find returns the kind and write of an intent.
func (c *Connector) find(in intent.WriteIntent) (*kind, *write, error) {
	k, err := c.kindOf(in)
	if err != nil {
		return nil, nil, err
	}
	w, ok := k.writes[in.Write]
	if !ok {
		return nil, nil, invalid("/write: the kind %q has no %s; it has %v", k.name, in.Write, k.profile.Writes)
	}
	return k, w, nil
}

func (c *Connector) kindOf(in intent.WriteIntent) (*kind, error) {
	k, ok := c.contract.kinds[in.Kind]
	if !ok {
		return nil, invalid("/kind: the contract %s has no kind %q; it has %s", c.contract.name, in.Kind, strings.Join(c.contract.Kinds(), ", "))
	}
	return k, nil
}

// checkKey wants exactly the fields of the key.
func (k *kind) checkKey(in intent.WriteIntent) error {
	names := k.keys
	if k.each {
		names = []string{eachKey}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Key)) {
		if !slices.Contains(names, name) && !(name == carried && in.Write == intent.Delete) {
			return connectors.WrongField("/key/"+name, invalid("/key/%s is no field of the key of %s; it has %s", name, k.name, strings.Join(names, ", ")))
		}
	}
	for _, name := range names {
		if _, there := in.Key[name]; !there {
			return connectors.WrongField("/key/"+name, invalid("/key/%s is missing; the key of %s has %s", name, k.name, strings.Join(names, ", ")))
		}
	}
	if !k.each {
		return nil
	}
	_, err := k.keysOf(in)
	if err != nil {
		return fmt.Errorf("%w: %w", intent.ErrInvalid, err)
	}
	return nil
}

// agrees fails where arguments that an intent carries mean another record or
// another state than it declares.
func (w *write) agrees(in intent.WriteIntent, args intent.Fields) error {
	key, expect, err := w.meant(args)
	if err != nil {
		return fmt.Errorf("%w: /payload/%s: %w", intent.ErrInvalid, carried, err)
	}
	for name, v := range key {
		if !declared.Same(v, in.Key[name]) {
			return invalid("/key/%s is another than the arguments name", name)
		}
	}
	if w.write == intent.Delete {
		return nil
	}
	for name, v := range expect {
		got, there := in.Expect[name]
		if !there {
			got, there = in.Payload[name]
		}
		if !there || !declared.Same(v, got) {
			return invalid("/expect/%s is another than the arguments lead to", name)
		}
	}
	return nil
}

// meant is the key that arguments name and the part of the expectation that
// follows from them alone.
func (w *write) meant(args intent.Fields) (key, expect intent.Fields, err error) {
	if !w.kind.each {
		if key, err = w.keyOf(args); err != nil {
			return nil, nil, err
		}
		expect = intent.Fields{}
		for name, s := range w.expect {
			if v, there := s.from(map[string]any(args), nil); there && s.argument() {
				expect[name] = v
			}
		}
		return key, expect, nil
	}
	all, err := w.elements(map[string]any(args))
	if err != nil {
		return nil, nil, err
	}
	key, err = eachKeyOf(w.kind.keys, all)
	return key, intent.Fields{eachRecords: recordsOf(all)}, err
}

// errNoRecord: the record to change was not found.
var errNoRecord = errors.New("the record to change was not found")

// Arguments are those that a tool is called with for an intent, but for what
// only a send knows: the stamp, a key, the record's own id.
func (c *Connector) Arguments(in intent.WriteIntent) (intent.Fields, error) {
	_, w, err := c.find(in)
	if err != nil {
		return nil, err
	}
	return w.build(in)
}

// SameCall reports whether an intent was made of a call of that tool at that
// destination with those arguments, however the record stood.
func (c *Connector) SameCall(in intent.WriteIntent, destination, tool string, args intent.Fields) bool {
	_, w, err := c.find(in)
	if err != nil || in.Destination != destination || w.tool != tool {
		return false
	}
	made, err := w.build(in)
	return err == nil && declared.Same(map[string]any(made), map[string]any(args))
}
