package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/verify"
)

// values is what became of the fields that were sent.
type values struct {
	p       connectors.Profile
	changed map[string]*changedField // by place
	aside   map[string]bool          // places that changed unrequested
	seen    map[string]bool          // fields that were checked
}

// changedField is one field that came back otherwise.
type changedField struct {
	sent, seen string
	rules      string // those of the profile that make it the same
	differs    bool   // no rule does
}

func newValues(p connectors.Profile) *values {
	return &values{p: p, changed: map[string]*changedField{}, aside: map[string]bool{}, seen: map[string]bool{}}
}

// add compares what a write sent with what a read shows.
func (v *values) add(in intent.WriteIntent, got intent.Fields) {
	for name, sent := range in.Expect {
		path := string(intent.Pointer("").AppendToken(name))
		v.seen[path] = true
		alone := intent.WriteIntent{Expect: intent.Fields{name: sent}, Compare: in.Compare}
		exact := alone
		exact.Compare = exactly(v.p.Compare)
		if len(verify.Diff(exact, nil, got)) == 0 {
			continue
		}
		f := v.changed[path]
		if f == nil {
			f = &changedField{sent: written(sent, true), seen: written(got[name], has(got, name))}
			v.changed[path] = f
		}
		f.differs = f.differs || len(verify.Diff(alone, v.p.Compare, got)) > 0
		f.rules = rulesOf(v.p.Compare, path)
	}
}

func has(f intent.Fields, name string) bool {
	_, ok := f[name]
	return ok
}

// exactly is no rule for every place that has some.
func exactly(by map[string]intent.Comparison) map[string]intent.Comparison {
	none := map[string]intent.Comparison{}
	for path := range by {
		none[path] = intent.Comparison{}
	}
	return none
}

// rulesOf names the rules of a field and of what is below it.
func rulesOf(by map[string]intent.Comparison, path string) string {
	var names []string
	for _, at := range slices.Sorted(maps.Keys(by)) {
		if intent.Pointer(path).Contains(intent.Pointer(at)) {
			for _, rule := range by[at] {
				names = append(names, string(rule.Name))
			}
		}
	}
	return strings.Join(names, ", ")
}

func written(v any, there bool) string {
	if !there {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%v", v)
	}
	return visible.Cut(string(text), maxValue)
}

func (v *values) collateral(found []verify.Mismatch) {
	for _, m := range found {
		v.aside[m.Path] = true
	}
}

// text writes the lines about values.
func (v *values) text(r *run) {
	for _, path := range slices.Sorted(maps.Keys(v.changed)) {
		f := v.changed[path]
		about, measured := "value of "+path, fmt.Sprintf("sent %s, seen %s", f.sent, f.seen)
		if f.differs {
			r.line(about, measured, orNone(f.rules, "exact"), Weaker)
			continue
		}
		r.line(about, measured+", the same by "+f.rules, f.rules, OK)
	}
	if same := len(v.seen) - len(v.changed); same > 0 {
		r.line("values", fmt.Sprintf("%d fields come back as they were sent", same), "exact", OK)
	}
	declared := orNone(strings.Join(v.p.Volatile, ", "), "none")
	if len(v.aside) > 0 {
		r.line("fields that change by themselves", strings.Join(slices.Sorted(maps.Keys(v.aside)), ", "), declared, Weaker)
	}
}

func orNone(text, none string) string {
	if text == "" {
		return none
	}
	return text
}
