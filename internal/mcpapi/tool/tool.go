package tool

import (
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
)

// DefaultWait is how long a call waits for its outcome by default: less than the minute
// after which clients give up.
const DefaultWait = 30 * time.Second

// MaxWait is the longest wait of a call. Few clients wait longer, and proxies cut them
// off.
const MaxWait = 5 * time.Minute

// Type is the type of an argument, as JSON Schema names it.
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
	// Name is the tool's name: 1 to 128 letters, digits, "_", "-" and ".". Required.
	Name string
	// Title is for the users of a client. Default none.
	Title string
	// Description describes to the model what the tool does and when to call it.
	// Required. What it needs to know about outcomes is added.
	Description string

	// Destination, Kind and Write are those of the intents. Required.
	Destination, Kind string
	Write             intent.WriteType

	// Arguments are the model's arguments. At least one.
	Arguments []Argument
	// Key names the arguments that are the business key, together with Fixed.Key. They
	// must be required ones.
	Key []string
	// Fixed is set by the configuration, and by no model.
	Fixed Fixed
	// Absent, Ignore and Compare are those of the intents.
	Absent, Ignore []string
	Compare        map[string]intent.Comparison

	// Risk, Reversibility and OnMismatch are those of the intents.
	Risk          intent.Risk
	Reversibility intent.Reversibility
	OnMismatch    intent.MismatchPolicy

	// Operation names the arguments that are the business operation: a second call with
	// the same ones, by any caller, is the same operation, and is not carried out again.
	// They must be required ones. Default none.
	Operation []string
	// Wait is how long a call waits for its outcome. Default [DefaultWait].
	Wait time.Duration
}

// Argument is one argument of a tool.
type Argument struct {
	// Name is its name for the model: a letter or "_", then letters, digits and "_", 64
	// at most. Required.
	Name string
	// Description describes it to the model. Required.
	Description string
	// Type is its type. Required.
	Type Type
	// Items is the type of the elements of an array. Default string.
	Items Type
	// Required makes it mandatory. Default false.
	Required bool
	// Enum lists the allowed values, for strings. Default anything.
	Enum []string
	// To is its place in the intent: "key", "expect" or "payload" and a JSON Pointer
	// below it ("expect/address/city"), or "context/reason": why the model asks, for the
	// person who approves. Default "key/NAME" for an argument of the key, "expect/NAME"
	// for another.
	To string
}

// reasonPlace is where a model's reason is put. It is the model's claim: it is not sent, has
// no part in what the write is, and is shown to reviewers as a claim.
const (
	reasonPlace = "context/reason"
	maxReason   = 256 // bytes: the longest value of a context
)

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

// place is where an argument is put: the part, and the path in it.
type place struct {
	part string // "key", "expect", "payload", "context"
	path intent.Pointer
}

func (p place) pointer() string { return "/" + p.part + string(p.path) }

// placeOf is the configured place of an argument.
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

// exact reports whether two spellings of an argument name two things: it is a part of the
// business key or of the operation.
func (t Tool) exact(name string) bool { return t.inKey(name) || contains(t.Operation, name) }

func contains(all []string, name string) bool {
	for _, one := range all {
		if one == name {
			return true
		}
	}
	return false
}
