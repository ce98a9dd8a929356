package tool

import (
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
)

// DefaultWait is how long a call waits for its outcome where the tool does not
// say: shorter than the minute after which clients give up.
const DefaultWait = 30 * time.Second

// MaxWait is the longest that a call may wait. Clients that wait longer are few,
// and proxies cut them off.
const MaxWait = 5 * time.Minute

// Type is what a model may give for an argument, as JSON Schema calls it.
type Type string

// The types.
const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
	Array   Type = "array"
	Object  Type = "object"
)

// Tool is one kind of write, as a model sees it.
type Tool struct {
	// Name is what the model calls: 1 to 128 letters, digits, "_", "-" and ".".
	// Required.
	Name string
	// Title is for people who look at a client. Default none.
	Title string
	// Description says to the model what the tool does and when to call it.
	// Required. What it has to know about outcomes is added.
	Description string

	// Destination, Kind and Write are those of the intents. Required.
	Destination, Kind string
	Write             intent.WriteType

	// Arguments is what the model gives. At least one.
	Arguments []Argument
	// Key names the arguments that are the business key, together with
	// Fixed.Key. They are required ones.
	Key []string
	// Fixed is what the configuration says, and no model.
	Fixed Fixed
	// Absent, Ignore and Compare are those of the intents.
	Absent, Ignore []string
	Compare        map[string]intent.Comparison

	// Risk, Reversibility and OnMismatch are those of the intents.
	Risk          intent.Risk
	Reversibility intent.Reversibility
	OnMismatch    intent.MismatchPolicy

	// Operation names the arguments that are the business operation: a second
	// call with the same ones is the same operation, whoever makes it, and is not
	// carried out again. They are required ones. Default none.
	Operation []string
	// Wait is how long a call waits for its outcome. Default [DefaultWait].
	Wait time.Duration
}

// Argument is one argument of a tool.
type Argument struct {
	// Name is what the model calls it: a letter or "_", then letters, digits and
	// "_", 64 at most. Required.
	Name string
	// Description says to the model what it is. Required.
	Description string
	// Type is what may be given. Required.
	Type Type
	// Items is the type of the elements of an array. Default string.
	Items Type
	// Required says that it must be given. Default false.
	Required bool
	// Enum lists what may be given, for strings. Default anything.
	Enum []string
	// To is where it stands in the intent: "key", "expect" or "payload" and a
	// JSON Pointer below it ("expect/address/city"). Default "key/NAME" for an
	// argument of the key, "expect/NAME" for another.
	To string
}

// Fixed is what every call of a tool declares.
type Fixed struct {
	Key, Expect, Payload, Require intent.Fields
}

// WaitFor is how long a call waits: Wait, or [DefaultWait].
func (t Tool) WaitFor() time.Duration {
	if t.Wait <= 0 {
		return DefaultWait
	}
	return min(t.Wait, MaxWait)
}

// place is where an argument stands: in which part, and where there.
type place struct {
	part string // "key", "expect", "payload"
	path intent.Pointer
}

func (p place) pointer() string { return "/" + p.part + string(p.path) }

// placeOf is where the configuration puts an argument.
func (t Tool) placeOf(a Argument) place {
	to := a.To
	if to == "" {
		part := "expect"
		if t.inKey(a.Name) {
			part = "key"
		}
		return place{part, intent.Pointer("").AppendToken(a.Name)}
	}
	part, path, _ := strings.Cut(to, "/")
	return place{part, intent.Pointer("/" + path)}
}

func (t Tool) argument(name string) (Argument, bool) {
	for _, a := range t.Arguments {
		if a.Name == name {
			return a, true
		}
	}
	return Argument{}, false
}

func (t Tool) inKey(name string) bool { return contains(t.Key, name) }

// exact reports whether two spellings of an argument would name two things: it
// is a part of the business key or of the operation.
func (t Tool) exact(name string) bool { return t.inKey(name) || contains(t.Operation, name) }

func contains(all []string, name string) bool {
	for _, one := range all {
		if one == name {
			return true
		}
	}
	return false
}
