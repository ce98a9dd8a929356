package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// Fits checks whether the registered destinations take the tool's writes, and returns a
// [CheckError] if not. The destination must have such a kind and such writes, and some
// call of the tool must make an intent that the connector accepts. It opens no
// connection.
func (t Tool) Fits(reg *connectors.Registry) error {
	if faults, _ := t.trials(reg); len(faults) > 0 {
		return &CheckError{t.Name, faults}
	}
	return nil
}

// Doubts lists what the schema of a tool that fits lets a model give, or leave out, and
// the destination refuses in every call.
func (t Tool) Doubts(reg *connectors.Registry) []Fault {
	_, doubts := t.trials(reg)
	return doubts
}

func (t Tool) trials(reg *connectors.Registry) (faults, doubts []Fault) {
	conn, p, err := reg.Lookup(t.Destination, t.Kind)
	field := "kind"
	if err == nil {
		err, field = p.Check(t.Write), "write"
	} else if !slices.Contains(reg.Names(), t.Destination) {
		field = "destination"
	}
	if err != nil {
		return []Fault{{field, fmt.Sprintf("does not fit: %v", err)}}, nil
	}
	return trial{t, conn, p}.all()
}

// trial makes calls of a tool with made-up arguments, and checks whether the destination
// would accept them.
//
// If a made-up value is refused, another value might be accepted: then the connector's
// own example is tried, and without one the call counts as accepted.
type trial struct {
	Tool

	conn    connectors.Connector
	profile connectors.Profile
}

// refusal is why no call with certain arguments is accepted.
type refusal struct {
	// argument is the argument concerned, "" for none.
	argument string
	// value reports that it is about the values of its enum.
	value bool
	field string
	err   error
}

// all finds a set of arguments that is accepted, starting with all of them and leaving
// out optional ones that are refused.
func (t trial) all() (faults, doubts []Fault) {
	required, given := t.Arguments[:0:0], slices.Clone(t.Arguments)
	for _, a := range t.Arguments {
		if a.Required {
			required = append(required, a)
		}
	}
	for r := t.call(given); r != nil; r = t.call(given) {
		a, there := t.argument(r.argument)
		if !there || a.Required {
			if t.anyOf(required, given) {
				return nil, doubts // these arguments exclude each other
			}
			return []Fault{{r.field, fmt.Sprintf("readback would refuse every call: %v", r.err)}}, nil
		}
		if alone := t.call(with(required, a)); alone != nil && alone.argument == a.Name {
			doubts = append(doubts, Fault{r.field, fmt.Sprintf("readback would refuse every call that gives %s: %v", a.Name, r.err)})
		}
		given = slices.DeleteFunc(given, func(other Argument) bool { return other.Name == a.Name })
	}
	return nil, append(append(doubts, t.least(required, given)...), t.choices(given)...)
}

// anyOf reports whether the required arguments are accepted, alone or with one of the
// others.
func (t trial) anyOf(required, given []Argument) bool {
	if t.call(required) == nil {
		return true
	}
	return len(t.helpers(required, given)) > 0
}

// helpers are the optional arguments with each of which the required ones are
// accepted.
func (t trial) helpers(required, given []Argument) (all []Argument) {
	for _, a := range given {
		if !a.Required && t.call(with(required, a)) == nil {
			all = append(all, a)
		}
	}
	return all
}

// least checks whether the required arguments alone are enough.
func (t trial) least(required, given []Argument) []Fault {
	r := t.call(required)
	if r == nil {
		return nil
	}
	helpers := t.helpers(required, given)
	switch len(helpers) {
	case 0:
		return []Fault{{"arguments", fmt.Sprintf("readback would refuse a call that gives the required ones alone: %v", r.err)}}
	case 1:
		return []Fault{{t.fieldOf(helpers[0].Name), fmt.Sprintf("is optional, and readback would refuse every call without %s: %v; want required: true", helpers[0].Name, r.err)}}
	}
	var names []string
	for _, a := range helpers {
		names = append(names, a.Name)
	}
	return []Fault{{"arguments", fmt.Sprintf("leave all of %s optional, and readback would refuse a call without any: %v; want required: true for one of them", strings.Join(names, ", "), r.err)}}
}

// choices tries each value of each enum.
func (t trial) choices(given []Argument) (doubts []Fault) {
	for i, a := range given {
		for n, one := range a.Enum {
			only := slices.Clone(given)
			only[i].Enum = []string{one}
			if r := t.call(only); r != nil && r.argument == a.Name && r.value {
				doubts = append(doubts, Fault{fmt.Sprintf("%s.enum[%d]", t.fieldOf(a.Name), n), fmt.Sprintf("is %q, which readback would refuse: %v", clip(one), r.err)})
			}
		}
	}
	return doubts
}

func with(all []Argument, a Argument) []Argument { return append(slices.Clone(all), a) }

// maxTries bounds the calls of one trial: each but the last replaces a value.
const maxTries = 3 * maxArguments

// call makes one call, and repeats it with other values as long as only a value was
// refused. It returns nil if the call is accepted, or might be with unknown values.
func (t trial) call(with []Argument) *refusal {
	given, enums := map[string]any{}, map[string][]string{}
	for _, a := range with {
		given[a.Name] = a.sample()
		if len(a.Enum) > 0 {
			given[a.Name], enums[a.Name] = a.Enum[0], a.Enum[1:]
		}
	}
	for try := range maxTries {
		err := t.accepts(given)
		var arguments *ArgumentsError
		var at *connectors.FieldError
		switch {
		case errors.As(err, &arguments):
			if try > 0 { // made-up values that do not fit together
				return nil
			}
			p := arguments.Problems[0]
			return &refusal{argument: p.Argument, field: t.fieldOf(p.Argument), err: errors.New(p.String())}
		case !errors.As(err, &at) || !strings.HasPrefix(at.Path, "/"):
			return nil
		}
		a, below, there := t.given(given, at.Path, !at.Value)
		r := &refusal{argument: a.Name, value: at.Value, field: t.fieldAt(at.Path), err: at.Err}
		switch {
		case !there && at.Value && !t.isFixed(at.Path):
			return nil
		case !there:
			return r
		case !at.Value && below != "" && !a.declares(below):
			return nil // a member of a value that the tool does not describe
		case !at.Value:
			return r
		case len(a.Enum) > 0:
			if len(enums[a.Name]) == 0 {
				return r
			}
			given[a.Name], enums[a.Name] = enums[a.Name][0], enums[a.Name][1:]
		default:
			other, ok := replaced(given[a.Name], below, at.Example)
			if !ok || len(t.value(a, decoded(other))) > 0 {
				return nil
			}
			given[a.Name] = other
		}
	}
	return nil
}

// accepts makes the intent of a call, as a real call does, and checks as the engine does
// whether the destination takes it.
func (t trial) accepts(given map[string]any) error {
	text, err := json.Marshal(given)
	if err != nil {
		return err
	}
	w, err := t.Intent(text)
	if err != nil {
		return err
	}
	w.Tenant, w.Workflow, w.Step = "tenant", "workflow", "step"
	return verify.Fits(t.conn, t.profile, w)
}

// given finds the argument that puts its value at a place of the intent or above it, and
// the path from there; if within, also one that puts it below.
func (t Tool) given(given map[string]any, path string, within bool) (a Argument, below string, there bool) {
	for _, a := range t.Arguments {
		if _, there := given[a.Name]; !there {
			continue
		}
		at := t.placeOf(a).pointer()
		below, under := strings.CutPrefix(path, at)
		switch {
		case under && (below == "" || below[0] == '/'):
			return a, below, true
		case within && strings.HasPrefix(at, path+"/") && strings.Count(path, "/") > 1:
			return a, "", true
		}
	}
	return Argument{}, "", false
}

// isFixed reports whether a place of the intent is the same in every call.
func (t Tool) isFixed(path string) bool {
	for part, fields := range map[string]intent.Fields{"key": t.Fixed.Key, "expect": t.Fixed.Expect, "payload": t.Fixed.Payload, "require": t.Fixed.Require} {
		for _, at := range leaves("/"+part, fields) {
			if path == at || strings.HasPrefix(path, at+"/") {
				return true
			}
		}
	}
	return false
}

// fieldAt is the field of the tool that fills a place of the intent, or could.
func (t Tool) fieldAt(path string) string {
	all := map[string]any{}
	for _, a := range t.Arguments {
		all[a.Name] = nil
	}
	if a, _, there := t.given(all, path, true); there {
		return t.fieldOf(a.Name)
	}
	part, below, _ := strings.Cut(path[1:], "/")
	switch {
	case t.isFixed(path):
		name, _, _ := strings.Cut(below, "/")
		return "fixed." + part + "." + intent.Pointer("/"+name).LastToken()
	case part == "expect", part == "payload":
		return "arguments"
	}
	return part
}

// declares reports whether the tool describes what is below an argument: the
// elements of a list that are single values.
func (a Argument) declares(below string) bool {
	return a.Type == Array && a.itemType() != Object && strings.Count(below, "/") == 1
}

// replaced is a value with another one at a place below; false if there is no such place,
// or it is the same already.
func replaced(v any, below string, other any) (any, bool) {
	if other == nil {
		return nil, false
	}
	if below == "" {
		return other, fmt.Sprint(v) != fmt.Sprint(other)
	}
	list, isList := v.([]any)
	i, err := strconv.Atoi(below[1:])
	if !isList || err != nil || i < 0 || i >= len(list) || fmt.Sprint(list[i]) == fmt.Sprint(other) {
		return nil, false
	}
	list = slices.Clone(list)
	list[i] = other
	return list, true
}

// decoded is a value as it is in decoded arguments.
func decoded(v any) any {
	text, err := json.Marshal(map[string]any{"v": v})
	if err != nil {
		return nil
	}
	all, _ := decode(text)
	return all["v"]
}
