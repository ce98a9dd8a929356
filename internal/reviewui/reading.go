package reviewui

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// reading is one read of the destination: what was found and how it differs.
type reading struct {
	there    bool
	before   bool // it was made before the send
	obs      connectors.Observation
	cut      string // the stub that is stored for evidence that is too large
	problems []problem
	compared bool // its verdict is from a comparison of every declared field
	required bool // it is from a comparison of every field that the intent requires
	failed   bool // a later read failed
}

// problem is a recorded mismatch; null and absent differ.
type problem struct {
	verify.Mismatch
	wanted, got bool
}

// readingOf is the last read that succeeded.
func readingOf(r ledger.Record, events []ledger.Event) reading {
	last := report.LastReadOf(r, events)
	if len(last.Evidence) == 0 {
		return reading{}
	}
	return decodeReading(last)
}

func decodeReading(last report.LastRead) reading {
	before := last.Before
	n := reading{before: before, failed: last.Failed, problems: problemsOf(last.Mismatches)}
	fields := len(n.problems) < verify.MaxMismatches &&
		slices.ContainsFunc(n.problems, func(p problem) bool { return p.Problem == verify.Differs || p.Problem == verify.NotThere })
	switch last.Verdict {
	case verify.Verified.String(), verify.Collateral.String():
		n.compared = true
	case verify.Vacuous.String():
		n.compared, n.required = true, before
	case verify.Indeterminate.String():
		n.required = before
	case verify.Mismatched.String(), verify.Stale.String(): // before the send: from what is required
		n.compared, n.required = fields && !before, fields && before
	}
	n.obs, n.cut, n.there = report.Seen(last.Evidence)
	return n
}

func problemsOf(text json.RawMessage) []problem {
	recorded, err := verify.Decode(text)
	if err != nil {
		return nil
	}
	var all []problem
	for _, m := range recorded {
		p := problem{wanted: len(m.Want) > 0, got: len(m.Got) > 0}
		p.Path, p.Problem, p.Want, p.Got = m.Path, m.Problem, decoded(m.Want), decoded(m.Got)
		all = append(all, p)
	}
	return all
}

func decoded(text json.RawMessage) any {
	if len(text) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return report.Safe(string(text))
	}
	return v
}

// at is the recorded problem of a field: there, above it or below; deeper is the place
// below it.
func at(problems []problem, path string) (m *problem, deeper string) {
	for i := range problems {
		p := problems[i].Path
		if p == "" || !related(path, p) || problems[i].Problem == verify.Changed || problems[i].Problem == verify.Count {
			continue
		}
		if len(p) > len(path) {
			deeper = p
		}
		return &problems[i], deeper
	}
	return nil, ""
}

// related reports whether two places are the same, or one contains the other.
func related(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// under reports whether a place is one of these, or inside one.
func under(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return p == path || strings.HasPrefix(path, p+"/") })
}

// leaf is one value of an object.
type leaf struct {
	path  string
	value any
}

// leaves are the values of an object, by place; lists are one value.
func leaves(all []leaf, at intent.Pointer, m map[string]any) []leaf {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		path := at.AppendToken(name)
		if sub, ok := m[name].(map[string]any); ok && len(sub) > 0 {
			all = leaves(all, path, sub)
			continue
		}
		all = append(all, leaf{string(path), m[name]})
	}
	return all
}
