package verifytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

const (
	// Defaults for unset fields of the suite's harness. As in connectortest: in a bubble time
	// is free, in real time it must suffice for a slow machine.
	bubblePatience = time.Minute
	realPatience   = 10 * time.Second
)

// State is one way in which a destination can be wrong after a write.
type State string

// The states.
const (
	Duplicate    State = "duplicate"     // more records, or fewer, than declared
	WrongValue   State = "wrong-value"   // a field has another value
	DroppedField State = "dropped-field" // a field was not stored
	Foreign      State = "foreign"       // a record of another tenant, or of an unknown owner, under the key
	OldVersion   State = "old-version"   // the write is not there, or a replica does not show it yet
	Swapped      State = "swapped"       // two records have each other's values, or stamps
	WrongRecord  State = "wrong-record"  // the write changed another record than its target
	Collateral   State = "collateral"    // a field changed without being requested
)

// States lists all states.
func States() []State {
	return []State{Duplicate, WrongValue, DroppedField, Foreign, OldVersion, Swapped, WrongRecord, Collateral}
}

// Harness configures an audit.
type Harness struct {
	// Suite is the harness of the connector's connectortest run. Its fixture's Put and Alter
	// seed what the connector itself would not write. Required.
	Suite connectortest.Harness
	// Lacks declares the states that the destination cannot have or the harness cannot seed,
	// and why. Default none.
	Lacks map[State]string
	// Legitimate lists further legitimate differences, beside those that follow from the
	// profile. Default none.
	Legitimate []Difference
}

// Difference is a way in which an observation may legitimately differ from the request.
type Difference struct {
	// Name and Reason are printed. Required.
	Name, Reason string
	// Write is the write type. Default create.
	Write intent.WriteType
	// Stored changes the intent before it is written. Default: no change.
	Stored func(w *intent.WriteIntent)
	// After changes the record after the write as the destination itself would. Default: no
	// change.
	After func(f *connectortest.Fixture, w intent.WriteIntent)
	// Declared changes the intent by which the record is judged. Default: as before Stored.
	Declared func(w *intent.WriteIntent)
}

// Tally is the result of an audit.
type Tally struct {
	Wrong      map[State]int // wrong states judged, none of them accepted
	Legitimate int           // legitimate differences judged, none of them refused
}

// Total returns how many wrong states were judged.
func (t Tally) Total() int {
	n := 0
	for _, judged := range t.Wrong {
		n += judged
	}
	return n
}

// Audit audits a connector's reads together with package verify. It fails for
// each wrong state that is accepted, each legitimate difference that is
// refused, and each state that is neither seeded nor declared.
func Audit(t *testing.T, h Harness) Tally {
	t.Helper()
	r := h.examine(t, verifier{judge: verify.Judge, before: verify.JudgeBefore})
	for _, name := range slices.Sorted(maps.Keys(h.Lacks)) {
		t.Logf("declared: no %s: %s", name, h.Lacks[name])
	}
	for _, why := range r.unseeded {
		t.Logf("not seeded: %s", why)
	}
	for _, why := range h.failures(r) {
		t.Error(why)
	}
	t.Logf("audited: %s", r)
	return r.tally
}

// failures lists everything that is wrong with an audit, or nothing.
func (h Harness) failures(r *report) []string {
	all := slices.Concat(r.accepted, r.refused)
	for _, s := range States() {
		if r.tally.Wrong[s] == 0 && h.Lacks[s] == "" {
			all = append(all, fmt.Sprintf("no wrong state %q was judged; have the fixture seed one (Put, Alter, faults), or declare it in Lacks", s))
		}
	}
	if r.tally.Total() == 0 || r.tally.Legitimate == 0 {
		all = append(all, fmt.Sprintf("%d wrong states and %d legitimate differences were judged; that proves nothing", r.tally.Total(), r.tally.Legitimate))
	}
	return all
}

// verifier is the code under audit. The package's own tests insert broken ones here.
type verifier struct {
	judge, before func(verify.Case) verify.Judgement
}

// report is the result of an audit.
type report struct {
	tally    Tally
	verdicts map[State]map[string]int
	accepted []string // wrong states that were accepted
	refused  []string // legitimate differences that were refused
	unseeded []string // forms of states that could not be seeded
}

// String returns one line: the number of each state, and how they were judged.
func (r *report) String() string {
	var parts []string
	for _, s := range States() {
		var counts []string
		for _, verdict := range slices.Sorted(maps.Keys(r.verdicts[s])) {
			counts = append(counts, fmt.Sprintf("%d %s", r.verdicts[s][verdict], verdict))
		}
		if len(counts) > 0 {
			parts = append(parts, fmt.Sprintf("%s %d (%s)", s, r.tally.Wrong[s], strings.Join(counts, ", ")))
		}
	}
	return fmt.Sprintf("%d wrong states, %d accepted: %s; %d legitimate differences, %d refused",
		r.tally.Total(), len(r.accepted), strings.Join(parts, "; "), r.tally.Legitimate, len(r.refused))
}

// scenario is one state to seed, on its own destination.
type scenario struct {
	state State // "" for a legitimate difference
	name  string
	needs []string // fault and Lacks constants of the suite
	do    func(b *bench)
}

func (s scenario) String() string {
	if s.state == "" {
		return "legitimate/" + s.name
	}
	return string(s.state) + "/" + s.name
}

func (h Harness) examine(t *testing.T, v verifier) *report {
	t.Helper()
	if h.Suite.Open == nil || !slices.Contains(h.Suite.Writes, intent.Create) {
		t.Fatal("harness: Suite needs Open, and create among its Writes")
	}
	for s, reason := range h.Lacks {
		if !slices.Contains(States(), s) || reason == "" {
			t.Fatalf("harness: Lacks: %q (%q): want a reason for one of %q", s, reason, States())
		}
	}
	if h.Suite.Patience == 0 {
		h.Suite.Patience = bubblePatience
		if h.Suite.RealTime {
			h.Suite.Patience = realPatience
		}
	}
	r := &report{tally: Tally{Wrong: map[State]int{}}, verdicts: map[State]map[string]int{}}
	for _, s := range slices.Concat(wrongStates(h.Suite), h.legitimate()) {
		h.try(t, s, v, r)
	}
	return r
}

func (h Harness) try(t *testing.T, s scenario, v verifier, r *report) {
	if s.state != "" && h.Lacks[s.state] != "" {
		return // declared
	}
	for _, need := range s.needs {
		if reason, ok := h.Suite.Lacks[need]; ok {
			r.unseeded = append(r.unseeded, fmt.Sprintf("%s: no %s: %s", s, need, reason))
			return
		}
	}
	t.Run(s.String(), func(t *testing.T) {
		do := func(t *testing.T) { s.do(newBench(t, h.Suite, s, v, r)) }
		if h.Suite.RealTime {
			do(t)
			return
		}
		synctest.Test(t, do)
	})
}
