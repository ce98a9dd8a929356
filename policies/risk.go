package policies

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
)

// Timeout says what becomes of a held write that is not approved in time.
type Timeout string

// The values of Timeout. The zero value denies.
const (
	OnTimeoutDeny     Timeout = "deny"     // it is settled as expired; nothing is sent
	OnTimeoutEscalate Timeout = "escalate" // it is marked overdue and continues to wait
)

// RiskRule raises the risk class of the writes that it matches. It never lowers one.
type RiskRule struct {
	// Name is shown to the approvers. Default: the number of the rule, from 1.
	Name string
	// Tool, Destination and Kind select the writes, as patterns of [path.Match] in which * and
	// ? match a slash too. Default any. An invalid pattern matches every write;
	// [RiskRule.Check] reports it.
	Tool, Destination, Kind string
	// Writes selects the write types. Default any.
	Writes []intent.WriteType
	// Class is the least careful class that such a write may have. Default approve, which also
	// replaces an invalid class.
	Class intent.Risk
	// Approvers is how many different reviewers must approve it. Default 1.
	Approvers int
	// Within is how long they have for it. Default 24 h.
	Within time.Duration
	// OnTimeout says what follows if they do not. Default deny.
	OnTimeout Timeout
}

// Hold is what rules require before a write is sent. Approvers, Within and OnTimeout are always
// set and apply where Class is approve.
type Hold struct {
	Class     intent.Risk
	Approvers int           // at least 1
	Within    time.Duration // above 0
	OnTimeout Timeout
	// Rules are the names of the rules that matched, in order.
	Rules []string
}

// Classify returns the most careful combination of the intent's own class and every matching
// rule: the most approvers, the shortest time, and denial rather than escalation. It is pure,
// and no rule lowers what the intent or another rule requires.
func Classify(rules []RiskRule, w intent.WriteIntent) Hold {
	h := Hold{Class: atLeast(intent.RiskAuto, w.Risk), Approvers: 1}
	for i, r := range rules {
		if !r.fits(w) {
			continue
		}
		h = h.and(r)
		h.Rules = append(h.Rules, cmp.Or(r.Name, fmt.Sprint(i+1)))
	}
	if h.Within <= 0 {
		h.Within = approveWithin
	}
	h.OnTimeout = cmp.Or(h.OnTimeout, OnTimeoutDeny)
	return h
}

// and combines a hold with one more rule. A rule that raises to less than approve does not
// change how a held write is handled unless it says so.
func (h Hold) and(r RiskRule) Hold {
	class := cmp.Or(r.Class, intent.RiskApprove)
	h.Class = atLeast(h.Class, class)
	h.Approvers = max(h.Approvers, r.Approvers)
	if r.Within > 0 && (h.Within <= 0 || r.Within < h.Within) {
		h.Within = r.Within
	}
	switch {
	case h.OnTimeout == OnTimeoutDeny:
	case r.OnTimeout == OnTimeoutEscalate:
		h.OnTimeout = OnTimeoutEscalate
	case r.OnTimeout != "" || careful(class) == careful(intent.RiskApprove):
		h.OnTimeout = OnTimeoutDeny
	}
	return h
}

// careful orders the classes. An invalid class is the most careful; an intent without one is
// auto.
func careful(c intent.Risk) int {
	switch c {
	case "", intent.RiskAuto:
		return 0
	case intent.RiskLog:
		return 1
	}
	return 2
}

func atLeast(a, b intent.Risk) intent.Risk {
	if careful(b) <= careful(a) {
		return a
	}
	return []intent.Risk{intent.RiskAuto, intent.RiskLog, intent.RiskApprove}[careful(b)]
}

func (r RiskRule) fits(w intent.WriteIntent) bool {
	return matches(r.Tool, w.Tool) && matches(r.Destination, w.Destination) && matches(r.Kind, w.Kind) &&
		(len(r.Writes) == 0 || slices.Contains(r.Writes, w.Write))
}

// matches reports whether a name matches a pattern. Slashes are ordinary characters: "crm/*"
// and "*" match "crm/eu/contacts" as well, since a rule that fails to match by mistake lets a
// write pass.
func matches(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	const letter = "\x01" // occurs in no name
	plain := func(s string) string { return strings.ReplaceAll(s, "/", letter) }
	fits, err := path.Match(plain(pattern), plain(name))
	return fits || err != nil
}

// Check returns what is wrong with a rule, or nil.
func (r RiskRule) Check() error {
	for _, p := range []struct{ field, pattern string }{{"tool", r.Tool}, {"destination", r.Destination}, {"kind", r.Kind}} {
		if _, err := path.Match(p.pattern, ""); err != nil {
			return fmt.Errorf("%s: %q is no pattern; want a name, in which * matches any letters and ? one letter", p.field, p.pattern)
		}
	}
	for _, t := range r.Writes {
		if !slices.Contains([]intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}, t) {
			return fmt.Errorf("writes: %q is no write type; want create, update, upsert or delete", t)
		}
	}
	switch {
	case !slices.Contains([]intent.Risk{"", intent.RiskAuto, intent.RiskLog, intent.RiskApprove}, r.Class):
		return fmt.Errorf("class: %q; want auto, log or approve", r.Class)
	case r.Approvers < 0 || r.Approvers > maxApprovers:
		return fmt.Errorf("approvers: %d; want 1 to %d, or leave it out", r.Approvers, maxApprovers)
	case r.Within < 0:
		return fmt.Errorf("within: %s; want a time above zero, or leave it out", r.Within)
	case !slices.Contains([]Timeout{"", OnTimeoutDeny, OnTimeoutEscalate}, r.OnTimeout):
		return fmt.Errorf("on timeout: %q; want deny or escalate", r.OnTimeout)
	}
	return nil
}
