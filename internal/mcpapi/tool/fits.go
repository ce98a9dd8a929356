package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// Fits says whether the destinations that there are take the tool's writes, as a
// [CheckError]. It makes calls of sample arguments and shows their intents to the
// connector. Nothing is sent. Where every call would be refused for what it is, and
// not for the value of an argument, the tool can never work. A destination may demand
// values that no sample has, so that a refused value says nothing.
func (t Tool) Fits(reg *connectors.Registry) error {
	conn, p, err := reg.Lookup(t.Destination, t.Kind)
	field := "kind"
	if err == nil {
		err, field = p.Check(t.Write), "write"
	} else if !slices.Contains(reg.Names(), t.Destination) {
		field = "destination"
	}
	if err != nil {
		return &CheckError{t.Name, []Fault{{field, fmt.Sprintf("does not fit: %v", err)}}}
	}
	all := t.try(conn, t.Arguments)
	required := slices.DeleteFunc(slices.Clone(t.Arguments), func(a Argument) bool { return !a.Required })
	if all == nil || errors.Is(all, errNoIntent) || t.try(conn, required) == nil {
		return nil
	}
	field = "kind"
	if at, named := t.named(t.Arguments, all); named {
		if !t.never(conn, at) {
			return nil
		}
		field = fmt.Sprintf("arguments[%d]", at)
	} else if t.depends(conn, all) {
		return nil
	}
	return &CheckError{t.Name, []Fault{{field, fmt.Sprintf("does not fit: every call would be refused: %v", all)}}}
}

// errNoIntent: the tool itself refuses the samples, which is for [Tool.Check] to say.
var errNoIntent = errors.New("no intent")

// try calls the tool with samples of some arguments. Where the connector refuses the
// value of an argument, it gets the next one. The error is the last refusal.
func (t Tool) try(conn connectors.Connector, arguments []Argument) error {
	next := make([]int, len(arguments))
	for {
		w, err := t.sampled(arguments, next)
		if err != nil {
			return errors.Join(errNoIntent, err)
		}
		if err = verify.Check(conn, w); err == nil {
			return nil
		}
		at, named := t.named(arguments, err)
		if !named || next[at] == len(arguments[at].samples())-1 {
			return err
		}
		next[at]++
	}
}

// sampled is the intent of a call with the samples that are chosen.
func (t Tool) sampled(arguments []Argument, chosen []int) (intent.WriteIntent, error) {
	given := map[string]any{}
	for i, a := range arguments {
		given[a.Name] = a.samples()[min(chosen[i], len(a.samples())-1)]
	}
	text, err := json.Marshal(given)
	if err != nil {
		return intent.WriteIntent{}, err
	}
	w, err := t.Intent(text)
	w.Tenant, w.Workflow = "tenant", "workflow"
	return w, err
}

// named is the argument that a refusal is about: it names the place, as a JSON
// Pointer or in dots. Of several it is the one whose place is longest.
func (t Tool) named(arguments []Argument, refusal error) (at int, named bool) {
	longest := 0
	for i, a := range arguments {
		place := t.placeOf(a).pointer()
		dotted := strings.ReplaceAll(strings.TrimPrefix(place, "/"), "/", ".")
		if len(place) > longest && (strings.Contains(refusal.Error(), place) || strings.Contains(refusal.Error(), dotted)) {
			at, named, longest = i, true, len(place)
		}
	}
	return at, named
}

// never reports whether no value of an argument would do. The field is unknown where
// the connector refuses values of all types in the same words. The argument has the
// wrong type where a value of another one would pass.
func (t Tool) never(conn connectors.Connector, at int) bool {
	a := t.Arguments[at]
	words := map[string]bool{}
	for _, other := range []Type{String, Integer, Boolean, Array, Object} {
		typed := t
		typed.Arguments = slices.Clone(t.Arguments)
		typed.Arguments[at].Type, typed.Arguments[at].Enum = other, nil
		err := typed.try(conn, typed.Arguments)
		switch {
		case errors.Is(err, errNoIntent):
			continue
		case err == nil:
			return other != a.Type && !(other == Integer && a.Type == Number)
		}
		if about, named := t.named(t.Arguments, err); !named || about != at {
			return other != a.Type // this place is not the trouble any more
		}
		words[wordsOf(err)] = true
	}
	return len(words) == 1
}

// depends reports whether a refusal that names no argument is another one for other
// values: then it is about them.
func (t Tool) depends(conn connectors.Connector, refusal error) bool {
	for i := 1; i < len(texts); i++ {
		w, err := t.sampled(t.Arguments, slices.Repeat([]int{i}, len(t.Arguments)))
		if err != nil {
			continue
		}
		if err = verify.Check(conn, w); err == nil || wordsOf(err) != wordsOf(refusal) {
			return true
		}
	}
	return false
}

// wordsOf is a refusal without the sample values that it repeats.
func wordsOf(refusal error) string {
	text := refusal.Error()
	for _, sample := range texts {
		text = strings.ReplaceAll(text, sample, "")
	}
	return text
}

// texts are the samples of a string: what the fields of destinations commonly hold.
var texts = []string{"SAMPLE-1", "sample@example.com", "2026-01-02T03:04:05Z", "2026-01-02", "10007", "12.50", "true", "USD", "https://example.com/sample", "<sample@example.com>", "/sample/sample.txt"}

// samples are values that a model could give for an argument, at least one.
func (a Argument) samples() []any {
	switch a.Type {
	case Integer:
		return []any{1}
	case Number:
		return []any{1, 1.5}
	case Boolean:
		return []any{true, false}
	case Object:
		return []any{map[string]any{}, map[string]any{"sample": "SAMPLE-1"}}
	case Array:
		all := []any{[]any{}}
		for _, item := range (Argument{Type: a.itemType()}).samples() {
			all = append(all, []any{item})
		}
		return all
	}
	from := texts
	if len(a.Enum) > 0 {
		from = a.Enum
	}
	all := make([]any, len(from))
	for i, text := range from {
		all[i] = text
	}
	return all
}
