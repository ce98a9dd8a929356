package mcp

import (
	"maps"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// trials refuses writes of which no call could be accepted: a call is made for each,
// its intent is derived as that of a real one, and shown to [Connector.Check]. The
// values are made up, and nothing that is refused for one of them is a problem.
func (l *loader) trials(f *fileContract) {
	for _, tool := range slices.Sorted(maps.Keys(l.c.tools)) {
		w := l.c.tools[tool]
		if err := l.c.never(w); err != nil {
			l.At(f.Kinds[w.kind.name].Writes[string(w.write)].At, "would have every call of %s refused: %v", tool, err)
		}
	}
}

// never is why no call of a tool can be accepted, neither with all that is expected
// nor with the key alone; nil where one may be.
func (c *Contract) never(w *write) error {
	before := connectors.Record{Fields: intent.Fields{}}
	key, all := intent.Fields{}, intent.Fields{}
	for _, name := range w.kind.keys {
		key[name] = w.key[name].example()
	}
	for _, sources := range []map[string]source{w.expect, w.require} {
		for _, s := range sources {
			if s.replace != nil {
				return nil // it depends on the text of the record
			}
			before.Fields[s.before] = "x"
		}
	}
	for name, s := range w.expect {
		if _, isKey := key[name]; !isKey && w.write != intent.Delete {
			all[name] = s.example()
		}
	}
	try := func(expect intent.Fields) error {
		in := intent.WriteIntent{Kind: w.kind.name, Write: w.write, Key: key, Expect: expect}
		if w.kind.each {
			keys := w.kind.exampleKeys()
			elements, err := w.kind.keysIn(keys)
			if err != nil {
				return err
			}
			in.Key = intent.Fields{eachKey: keys}
			in.Expect = intent.Fields{eachRecords: map[string]any{elements[0].label: map[string]any(expect)}}
		}
		args, err := w.build(in)
		if err != nil {
			return err
		}
		if in, err = c.Derive(w.tool, args, &connectors.Observation{Records: []connectors.Record{before}}); err != nil {
			return err
		}
		return (&Connector{contract: c}).Check(in)
	}
	err := try(all)
	if err != nil && try(nil) == nil {
		return nil
	}
	return err
}

// example is a value that a source can have.
func (s source) example() any {
	if s.fixed {
		return s.value
	}
	return "x"
}
