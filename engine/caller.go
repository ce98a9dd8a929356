package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// Names that only readback itself uses, for its change notices. A caller that could write there
// could forge notices, and a caller that could take a notice's structural key could suppress
// it.
const (
	OwnDestinations = "webhook:"
	OwnTools        = "readback."
)

// foreignNames refuses names that are not for callers: a destination or a tool that begins with
// [OwnDestinations] or [OwnTools]. "" is allowed. The error wraps [intent.ErrInvalid] and names
// the field.
func foreignNames(destination, tool string) error {
	for _, c := range []struct{ path, name, own string }{
		{"/destination", destination, OwnDestinations}, {"/tool", tool, OwnTools},
	} {
		if strings.HasPrefix(c.name, c.own) {
			return &intent.InvalidError{Problems: []intent.Problem{{Path: c.path,
				Problem: "begins with " + c.own + ", as what readback writes itself does", Want: "another name"}}}
		}
	}
	return nil
}

// foreign refuses an intent with such names from a caller of an API.
func foreign(ctx context.Context, w intent.WriteIntent) error {
	if Caller(ctx).Role == "" {
		return nil
	}
	return foreignNames(w.Destination, w.Tool)
}

// Role is what a caller may do.
type Role string

// The roles. The zero value is a caller in this process, which may do everything.
const (
	RoleAgent    Role = "agent"    // declares writes, and never decides about them
	RoleReviewer Role = "reviewer" // decides about writes of others, and requests none
	RoleOperator Role = "operator" // decides, overrides and stops
	RoleAuditor  Role = "auditor"  // reads everything, and changes nothing
)

// asking lists the roles that may request writes.
var asking = []Role{"", RoleAgent, RoleOperator}

// asks refuses a caller that may not request writes.
func (p Principal) asks() error {
	if slices.Contains(asking, p.Role) {
		return nil
	}
	return fmt.Errorf("%w: the role of the credentials is %q, which asks for no writes; want %s or %s", ErrForbidden, p.Role, RoleAgent, RoleOperator)
}

// Principal identifies the credentials of a call.
type Principal struct {
	// Name is recorded with the caller's requests and decisions. "" means unknown.
	Name string
	Role Role
	// Scope bounds what the caller may write. Default nil: everything that the role may.
	Scope *Scope
}

type principalKey struct{}

// As returns a context whose calls are made by the given principal.
func As(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Caller returns the principal that makes the calls of a context.
func Caller(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// Scope bounds the writes that a caller may request, within what its role may do. Nil and an
// empty list bound nothing.
type Scope struct {
	Destinations []string           `json:"destinations,omitempty"`
	Kinds        []string           `json:"kinds,omitempty"`
	Writes       []intent.WriteType `json:"writes,omitempty"`
	Tools        []string           `json:"tools,omitempty"`
	// Max lists the ceilings; all of them apply to every write.
	Max []Ceiling `json:"max,omitempty"`
}

// Ceiling is the maximum of a field of a write.
type Ceiling struct {
	// Field is a JSON Pointer into the record, as in an intent: "/amount". Where it meets a
	// list it continues in each element.
	Field string `json:"field"`
	// Most is a decimal, such as "500" or "99.95". An amount below zero is compared without its
	// sign.
	Most string `json:"most"`
}

// ScopeError says why a write is outside its caller's scope. Nothing was recorded. It wraps
// [ErrForbidden].
type ScopeError struct {
	// Field is the place in the intent, a JSON Pointer.
	Field string
	text  string
}

func (e *ScopeError) Error() string { return e.text }

// Unwrap returns [ErrForbidden].
func (e *ScopeError) Unwrap() error { return ErrForbidden }

// Bounds of a scope. No operator reads a longer list of names, and a name in an intent has at
// most 255 bytes.
const (
	maxScopeNames = 50
	maxCeilings   = 20
	maxScopeName  = 255
)

// Check returns what is wrong with a scope by itself, and how to fix it.
func (s *Scope) Check() error {
	if s == nil {
		return nil
	}
	for _, l := range s.lists() {
		if len(l.names) > maxScopeNames {
			return fmt.Errorf("the scope has %d %ss; want at most %d", len(l.names), l.what, maxScopeNames)
		}
		for i, name := range l.names {
			switch {
			case name == "" || len(name) > maxScopeName || strings.TrimSpace(name) != name:
				return fmt.Errorf("the scope has the %s %.60q; want a name of 1 to %d bytes without blanks at its ends", l.what, name, maxScopeName)
			case slices.Contains(l.names[:i], name):
				return fmt.Errorf("the scope has the %s %q twice; want it once", l.what, name)
			}
		}
	}
	for _, w := range s.Writes {
		if !slices.Contains(writeTypes, w) {
			return fmt.Errorf("the scope has the write type %.60q; want create, update, upsert or delete", w)
		}
	}
	if len(s.Max) > maxCeilings {
		return fmt.Errorf("the scope has %d ceilings; want at most %d", len(s.Max), maxCeilings)
	}
	for i, c := range s.Max {
		switch most, ok := verify.Decimal(c.Most); {
		case len(c.Field) > maxScopeName || !strings.HasPrefix(c.Field, "/") || !intent.Pointer(c.Field).IsValid():
			return fmt.Errorf("the scope has a ceiling on %.60q; want a JSON Pointer to a field, such as /amount", c.Field)
		case !ok || len(c.Most) > maxScopeName || most.Sign() < 0:
			return fmt.Errorf("the ceiling on %s is %.60q; want a decimal of at least 0, such as 500 or 99.95", c.Field, c.Most)
		case slices.ContainsFunc(s.Max[:i], func(other Ceiling) bool { return other.Field == c.Field }):
			return fmt.Errorf("the scope has two ceilings on %s; want one", c.Field)
		}
	}
	return nil
}

var writeTypes = []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}

// list is one list of a scope, and the write's value for it.
type list struct {
	field, what string
	names       []string
}

func (s *Scope) lists() []list {
	writes := make([]string, len(s.Writes))
	for i, w := range s.Writes {
		writes[i] = string(w)
	}
	return []list{{"/destination", "destination", s.Destinations}, {"/kind", "kind", s.Kinds}, {"/write", "write type", writes}, {"/tool", "tool", s.Tools}}
}

// String describes the scope in one line, for operators.
func (s *Scope) String() string {
	if s == nil {
		return "everything"
	}
	var parts []string
	for _, l := range s.lists() {
		if len(l.names) > 0 {
			parts = append(parts, l.what+" "+strings.Join(l.names, ", "))
		}
	}
	for _, c := range s.Max {
		parts = append(parts, c.Field+" at most "+c.Most)
	}
	return cmp.Or(strings.Join(parts, "; "), "everything")
}

// Covers fails with a [ScopeError] for a write that is outside the scope.
func (s *Scope) Covers(w intent.WriteIntent) error {
	if err := s.Names(w.Destination, w.Kind, w.Write, w.Tool); err != nil || s == nil {
		return err
	}
	for _, c := range s.Max {
		if err := c.covers(w); err != nil {
			return err
		}
	}
	return nil
}

// CoversCall is Covers for a write that its caller makes itself with a tool. Without an intent
// (nil) only the tool is known: that does not suffice for a scope that bounds anything else.
func (s *Scope) CoversCall(tool string, w *intent.WriteIntent) error {
	switch {
	case s == nil:
		return nil
	case w != nil:
		named := *w
		named.Tool = tool
		return s.Covers(named)
	case len(s.Destinations)+len(s.Kinds)+len(s.Writes)+len(s.Max) > 0:
		return &ScopeError{"/intent", "the intent is missing; the scope of this token (" + s.String() + ") needs it: declare the write as intent"}
	}
	return s.Names("", "", "", tool)
}

// Names is Covers without the ceilings, for a write of which only the names are known.
func (s *Scope) Names(destination, kind string, write intent.WriteType, tool string) error {
	if s == nil {
		return nil
	}
	has := []string{destination, kind, string(write), tool}
	for i, l := range s.lists() {
		if len(l.names) > 0 && !slices.Contains(l.names, has[i]) {
			return &ScopeError{l.field, fmt.Sprintf("this token may not write to %s %.60q; its scope lists %s", l.what, has[i], strings.Join(l.names, ", "))}
		}
	}
	return nil
}

// Shows reports whether a recorded write is within the scope by its names. Amounts bound
// requests, not reads, and a record's amounts may be sealed.
func (s *Scope) Shows(r ledger.Record) bool {
	w, err := intent.DecodeStored(r.Intent)
	if err != nil { // pruned, or a write that its caller makes itself: its type is unknown
		w.Write = ""
	}
	return s.Names(r.Destination, r.Kind, w.Write, r.Tool) == nil
}

// Reaches reports whether any write to a destination is within the scope.
func (s *Scope) Reaches(destination string) bool {
	return s == nil || len(s.Destinations) == 0 || slices.Contains(s.Destinations, destination)
}

// covers checks every place where the field may be. Letter case is ignored: for some
// destinations "Amount" is the same field. Required pre-state values are bounded too, but are
// not sent.
func (c Ceiling) covers(w intent.WriteIntent) error {
	most, ok := verify.Decimal(c.Most)
	if !ok {
		return &ScopeError{c.Field, "the ceiling of this token on " + c.Field + " is no number"}
	}
	sent := false
	for _, part := range []struct {
		at     string
		fields intent.Fields
		sent   bool
	}{{"/key", w.Key, true}, {"/expect", w.Expect, true}, {"/payload", w.Payload, true}, {"/require", w.Require, false}} {
		tokens := slices.Collect(intent.Pointer(c.Field).Tokens())
		exact, err := c.within(part.at, map[string]any(part.fields), tokens, most)
		if err != nil {
			return err
		}
		sent = sent || exact && part.sent
	}
	if !sent {
		return &ScopeError{"/expect" + c.Field, fmt.Sprintf("%s is missing; this token may write only what has a number of at most %s there", "/expect"+c.Field, c.Most)}
	}
	return nil
}

// within refuses values above the ceiling below a value, and reports whether the field is there
// under exactly its name: in a list, in every element.
func (c Ceiling) within(at string, v any, tokens []string, most *big.Rat) (exact bool, err error) {
	if all, isList := v.([]any); isList {
		exact = len(all) > 0
		for i, each := range all {
			below, err := c.within(fmt.Sprintf("%s/%d", at, i), each, tokens, most)
			if err != nil {
				return false, err
			}
			exact = exact && below
		}
		return exact, nil
	}
	if len(tokens) == 0 {
		if n, ok := verify.Decimal(v); !ok || n.Abs(n).Cmp(most) > 0 {
			return false, &ScopeError{at, fmt.Sprintf("%s is no number of at most %s, which this token may write there", at, c.Most)}
		}
		return true, nil
	}
	members, _ := v.(map[string]any) // otherwise it is not there
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !strings.EqualFold(name, tokens[0]) {
			continue
		}
		below, err := c.within(at+string(intent.Pointer("").AppendToken(name)), members[name], tokens[1:], most)
		if err != nil {
			return false, err
		}
		exact = exact || below && name == tokens[0]
	}
	return exact, nil
}
