package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
)

const (
	// maxTools is how many tools one configuration may have. A model that sees more than
	// a hundred picks the wrong one; ten times that is a configuration error.
	maxTools = 1000
	// maxArguments is how many arguments a tool may have: models fill in longer forms
	// wrongly.
	maxArguments = 64
	// maxName is the longest name of a tool, and maxArgument that of an argument: the
	// protocol's own bound, and the one common to model vendors.
	maxName     = 128
	maxArgument = 64
	// maxDescription bounds the description of a tool and of an argument, in bytes: every
	// list of tools carries all of it.
	maxDescription = 4096
)

var (
	nameExpr     = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9_.-]{1,%d}$`, maxName))
	argumentExpr = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z_][A-Za-z0-9_]{0,%d}$`, maxArgument-1))
)

// GetOutcome is the name of the tool that every server has; no other may have it.
const GetOutcome = "get_outcome"

// checking collects the faults of one tool.
type checking struct {
	Tool

	faults []Fault
}

func (c *checking) say(field, format string, args ...any) {
	c.faults = append(c.faults, Fault{field, fmt.Sprintf(format, args...)})
}

// Check returns all faults of a tool by itself, as a [CheckError]. [Tool.Fits] checks
// whether its destination takes such writes.
func (t Tool) Check() error {
	c := &checking{Tool: t}
	c.names()
	for i, a := range t.Arguments {
		c.argument(fmt.Sprintf("arguments[%d]", i), a)
	}
	c.lists()
	c.places()
	if len(c.faults) == 0 {
		c.samples()
	}
	if len(c.faults) == 0 {
		return nil
	}
	return &CheckError{t.Name, c.faults}
}

// CheckAll checks tools together: no name twice, not too many. It returns the
// faults by the place of the tool.
func CheckAll(all []Tool) map[int][]Fault {
	faults := map[int][]Fault{}
	first := map[string]int{}
	for i, t := range all {
		var bad *CheckError
		if errors.As(t.Check(), &bad) {
			faults[i] = bad.Faults
		}
		if at, twice := first[t.Name]; twice {
			faults[i] = append(faults[i], Fault{"name", fmt.Sprintf("is %q, as that of tool %d; want another one", clip(t.Name), at+1)})
		} else {
			first[t.Name] = i
		}
	}
	if len(all) > maxTools {
		faults[maxTools] = append(faults[maxTools], Fault{"", fmt.Sprintf("is one of %d; want at most %d", len(all), maxTools)})
	}
	return faults
}

func (c *checking) names() {
	switch {
	case c.Name == "":
		c.say("name", "is missing; want what the model calls, such as create_ticket")
	case !nameExpr.MatchString(c.Name):
		c.say("name", "is %q; want 1 to %d letters, digits, _, - and .", clip(c.Name), maxName)
	case c.Name == GetOutcome:
		c.say("name", "is %s, which every server has already; want another one", GetOutcome)
	}
	switch n := len(c.Description); {
	case strings.TrimSpace(c.Description) == "":
		c.say("description", "is missing; want what a model must know to call it: what it does, and when")
	case n > maxDescription:
		c.say("description", "has %d bytes; want at most %d", n, maxDescription)
	}
	if len(c.Title) > maxName {
		c.say("title", "has %d bytes; want at most %d", len(c.Title), maxName)
	}
	if c.Destination == "" {
		c.say("destination", "is missing; want the name of one of the destinations")
	}
	if c.Kind == "" {
		c.say("kind", "is missing; want a kind of record that the destination has")
	}
	if !slices.Contains([]intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}, c.Write) {
		c.say("write", "is %q; want create, update, upsert or delete", clip(string(c.Write)))
	}
	if c.Wait < 0 || c.Wait > MaxWait {
		c.say("wait", "is %s; want 0 to %s", c.Wait, MaxWait)
	}
	if n := len(c.Arguments); n > maxArguments {
		c.say("arguments", "has %d; want at most %d", n, maxArguments)
	}
}

func (c *checking) argument(field string, a Argument) {
	if !argumentExpr.MatchString(a.Name) {
		c.say(field+".name", "is %q; want a letter or _, then letters, digits and _, %d at most", clip(a.Name), maxArgument)
	}
	if n := len(a.Description); strings.TrimSpace(a.Description) == "" || n > maxDescription {
		c.say(field+".description", "is missing or longer than %d bytes; want what it is, in words for a model", maxDescription)
	}
	types := []Type{String, Integer, Number, Boolean, Array, Object}
	if !slices.Contains(types, a.Type) {
		c.say(field+".type", "is %q; want one of %v", clip(string(a.Type)), types)
	}
	switch {
	case a.Items != "" && a.Type != Array:
		c.say(field+".items", "is for arrays; want it left out, or type array")
	case a.Items == Array || a.Items != "" && !slices.Contains(types, a.Items):
		c.say(field+".items", "is %q; want string, integer, number, boolean or object", clip(string(a.Items)))
	}
	if len(a.Enum) > 0 && a.Type != String {
		c.say(field+".enum", "is for strings; want it left out, or type string")
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(a.Enum))); len(unique) != len(a.Enum) || slices.Contains(a.Enum, "") {
		c.say(field+".enum", "has an empty or a repeated value; want each once")
	}
	c.to(field+".to", a)
}

func (c *checking) to(field string, a Argument) {
	part, path, below := strings.Cut(a.To, "/")
	switch {
	case a.To == "":
		part = c.placeOf(a).part
	case a.To == reasonPlace:
		if c.inKey(a.Name) || a.Type != String {
			c.say(field, "is %s, which is a text and no part of the key; want type string, and the name taken out of key", reasonPlace)
		}
		return
	case !below || path == "" || !slices.Contains([]string{"key", "expect", "payload"}, part) || !intent.Pointer("/"+path).IsValid():
		c.say(field, "is %q; want key, expect or payload and a path below it, such as expect/address/city, or %s", clip(a.To), reasonPlace)
		return
	}
	switch {
	case part == "key" && !c.inKey(a.Name):
		c.say(field, "is %q, and key does not name %s; want it listed there", clip(a.To), a.Name)
	case part != "key" && c.inKey(a.Name):
		c.say(field, "is %q, and key names %s; want key/…, or the name taken out there", clip(a.To), a.Name)
	case part == "key" && strings.Contains(path, "/"):
		c.say(field, "is %q; want one name below key: a business key holds single values", clip(a.To))
	case part != "key" && c.Write == intent.Delete:
		c.say(field, "is in %s; a delete has a key and nothing else", part)
	}
}

// lists checks the lists of argument names.
func (c *checking) lists() {
	if len(c.Key) == 0 && len(c.Fixed.Key) == 0 {
		c.say("key", "is missing; want the arguments by which the destination can be asked for the record")
	}
	for _, l := range []struct {
		field string
		names []string
		why   string
	}{
		{"key", c.Key, "without it the record cannot be asked for"},
		{"operation", c.Operation, "without it there is no name for the operation"},
	} {
		for i, name := range l.names {
			at := fmt.Sprintf("%s[%d]", l.field, i)
			a, there := c.Tool.argument(name)
			switch {
			case !there:
				c.say(at, "is %q, which no argument is called; want the name of one", clip(name))
			case !a.Required:
				c.say(at, "is %s, which is not required; want required: true there, since %s", name, l.why)
			case a.Type == Array || a.Type == Object:
				c.say(at, "is %s, which is an %s; want a single value", name, a.Type)
			case slices.Index(l.names, name) < i:
				c.say(at, "is %s for the second time; want it once", name)
			}
		}
	}
}

// places finds values that are put at the same place, or one below another.
func (c *checking) places() {
	taken := map[string]string{}
	for part, fields := range map[string]intent.Fields{"key": c.Fixed.Key, "expect": c.Fixed.Expect, "payload": c.Fixed.Payload} {
		for _, at := range leaves("/"+part, fields) {
			taken[at] = "fixed." + part
		}
	}
	names := map[string]bool{}
	for i, a := range c.Arguments {
		field := fmt.Sprintf("arguments[%d]", i)
		if names[a.Name] {
			c.say(field+".name", "is %q for the second time; want another one", clip(a.Name))
		}
		names[a.Name] = true
		at := c.placeOf(a).pointer()
		for other, who := range taken {
			if at == other || strings.HasPrefix(at, other+"/") || strings.HasPrefix(other, at+"/") {
				c.say(field+".to", "puts %s at %s, where %s puts something already; want one of them", clip(a.Name), at, who)
				break
			}
		}
		taken[at] = "argument " + clip(a.Name)
	}
}

// leaves lists the places of values that are no objects, and of empty objects.
func leaves(at string, fields map[string]any) []string {
	var all []string
	for name, v := range fields {
		below := at + string(intent.Pointer("").AppendToken(name))
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			all = append(all, leaves(below, m)...)
			continue
		}
		all = append(all, below)
	}
	return all
}

// samples makes an intent of all arguments at once: its faults are the tool's.
func (c *checking) samples() {
	given := map[string]any{}
	for _, a := range c.Arguments {
		given[a.Name] = a.sample()
	}
	text, err := json.Marshal(given)
	if err == nil {
		_, err = c.Intent(text)
	}
	var bad *ArgumentsError
	if errors.As(err, &bad) {
		for _, p := range bad.Problems {
			c.say(cmp.Or(c.fieldOf(p.Argument), settingOf(p)), "makes no intent: %s; want %s", strings.TrimSpace(p.Argument+" "+p.Problem), p.Want)
		}
	}
}

// settingOf is the field of the tool that is the same in every intent, "" for none.
func settingOf(p Problem) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(p.Problem, "/"), " ")
	if p.Argument == "" && slices.Contains([]string{"kind", "risk", "reversibility", "on_mismatch"}, name) {
		return name
	}
	return ""
}

// fieldOf is the field of the tool for an argument, "" for none.
func (t Tool) fieldOf(argument string) string {
	for i, a := range t.Arguments {
		if a.Name == argument {
			return fmt.Sprintf("arguments[%d]", i)
		}
	}
	return ""
}

// sample is a value that the schema accepts.
func (a Argument) sample() any {
	switch a.Type {
	case Integer, Number:
		return 1
	case Boolean:
		return true
	case Array:
		return []any{Argument{Type: a.itemType()}.sample()}
	case Object:
		return map[string]any{}
	}
	if len(a.Enum) > 0 {
		return a.Enum[0]
	}
	return "x"
}
