package saga

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// fakeDestinations are destinations with the profiles that a test needs: "crm" can undo what it creates,
// "press" can never take anything back, "dumb" cannot undo by itself, "box" has keys that are
// made for each record, at "hook" nothing can be read.
type fakeDestinations struct{}

func (fakeDestinations) Check(w intent.WriteIntent) error {
	if err := w.Validate(); err != nil {
		return err
	}
	_, err := fakeDestinations{}.Profile(w)
	return err
}

func (fakeDestinations) Profile(w intent.WriteIntent) (connectors.Profile, error) {
	create := []intent.WriteType{intent.Create}
	switch w.Destination {
	case "crm":
		return connectors.Profile{Undo: create}, nil
	case "press":
		return connectors.Profile{Irreversible: create, Undo: create}, nil
	case "dumb":
		return connectors.Profile{}, nil
	case "hook":
		return connectors.Profile{WriteOnly: true}, nil
	case "box":
		return connectors.Profile{Undo: create, FreshKeys: true}, nil
	}
	return connectors.Profile{}, fmt.Errorf("/destination: %w %q", connectors.ErrUnknownDestination, w.Destination)
}

// at is a step that creates a record of its own.
func at(name, destination string, class intent.Reversibility, after ...string) Step {
	return Step{Name: name, After: after, Intent: intent.WriteIntent{Tool: "t", Destination: destination, Kind: "k",
		Key: intent.Fields{"id": name}, Write: intent.Create, Expect: intent.Fields{"a": "b"}, Reversibility: class}}
}

func with(s Step, change func(*Step)) Step {
	change(&s)
	return s
}

func planned(steps ...Step) Plan { return Plan{Tenant: "acme", ID: "saga-1", Steps: steps} }

func TestOrder(t *testing.T) {
	hard := func(s *Step) { s.Revert = Hard }
	for name, tt := range map[string]struct {
		reason string
		plan   Plan
		want   string
	}{
		"as written":        {"what is equal keeps its order", planned(at("b", "crm", c), at("a", "crm", c)), "b a"},
		"classes":           {"compensable, pivot, retryable", planned(at("r", "crm", r), at("p", "crm", p), at("c", "crm", c)), "c p r"},
		"hardest last":      {"the hardest to take back come last", planned(with(at("a", "crm", c), hard), at("b", "crm", c)), "b a"},
		"irreversible last": {"of the retryable ones too", planned(at("p", "crm", p), at("mail", "press", r), at("log", "crm", r)), "p log mail"},
		"dependencies":      {"as far as dependencies allow", planned(at("b", "crm", c, "a"), at("a", "crm", c), at("d", "crm", c, "b")), "a b d"},
		"default is pivot":  {"who says nothing gets a pivot", planned(at("x", "crm", ""), at("c", "crm", c)), "c x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, steps, err := tt.plan.check(fakeDestinations{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range steps {
				got = append(got, s.Name)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%s: got %v, want %s", tt.reason, got, tt.want)
			}
		})
	}
}

// A plan with too many steps or members is refused while it is read, whatever follows.
func TestPlansAreReadWithinBounds(t *testing.T) {
	var members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&members, `"m%d":1,`, i)
	}
	for text, want := range map[string]string{
		`{"tenant":"a","id":"b","steps":[` + strings.Repeat("{},", 80_000) + "%%":                                     "has more than 32 steps",
		`{"tenant":"a","id":"b","steps":[{"name":"s","intent":{` + strings.TrimSuffix(members.String(), ",") + `}}]}`: "has more than 64 members; want a write intent",
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200v; want %q", err, want)
		}
	}
}

func TestRefusedPlans(t *testing.T) {
	undo := &intent.WriteIntent{Write: intent.Delete}
	sameRecord := func(s *Step) { s.Intent.Key = intent.Fields{"id": "one"} }
	sameOperation := func(s *Step) { s.Intent.IdempotencyKey = "wire:7" }
	many := make([]Step, MaxSteps+1)
	for i := range many {
		many[i] = at(fmt.Sprintf("s%d", i), "crm", c)
	}
	for name, tt := range map[string]struct {
		plan       Plan
		step, path string
		says       string
	}{
		"no tenant":         {Plan{ID: "x", Steps: []Step{at("a", "crm", c)}}, "", "/tenant", "is missing"},
		"no id":             {Plan{Tenant: "x", Steps: []Step{at("a", "crm", c)}}, "", "/id", "is missing"},
		"no steps":          {planned(), "", "/steps", "has 0 steps"},
		"too many steps":    {planned(many...), "", "/steps", "want 1 to 32"},
		"no name":           {planned(at("", "crm", c)), "", "/steps/0/name", "is missing"},
		"bad name":          {planned(at(" a", "crm", c)), " a", "/steps/0/intent/step", "printable ASCII"},
		"name twice":        {planned(at("a", "crm", c), with(at("a", "crm", c), func(s *Step) { s.Intent.Key = intent.Fields{"id": "b"} })), "a", "/steps/1/name", "is that of step 0 too"},
		"unknown after":     {planned(at("a", "crm", c, "z")), "a", "/steps/0/after/0", "there is no such step"},
		"after twice":       {planned(at("a", "crm", c), at("b", "crm", c, "a", "a")), "b", "/steps/1/after/1", "twice"},
		"after itself":      {planned(at("a", "crm", c, "a")), "a", "/steps/0/after", "a -> a"},
		"cycle":             {planned(at("x", "crm", c), at("a", "crm", c, "x", "c"), at("b", "crm", c, "a"), at("c", "crm", c, "b")), "a", "/steps/1/after", "a -> b -> c -> a"},
		"invalid intent":    {planned(with(at("a", "crm", c), func(s *Step) { s.Intent.Expect = nil })), "a", "/steps/0/intent/expect", "want"},
		"unknown place":     {planned(at("a", "moon", c)), "a", "/steps/0/intent", "unknown destination"},
		"two pivots":        {planned(at("a", "crm", p), at("b", "crm", "")), "b", "/steps/1/intent/reversibility", `step "a" is one too`},
		"no way back":       {planned(at("a", "dumb", c)), "a", "/steps/0/undo", "cannot undo"},
		"irreversible":      {planned(at("a", "press", c)), "a", "/steps/0/intent/reversibility", "can never be taken back"},
		"never, undone":     {planned(with(at("a", "crm", c), func(s *Step) { s.Revert = Never })), "a", "/steps/0/intent/reversibility", "revert says"},
		"bad revert":        {planned(with(at("a", "crm", c), func(s *Step) { s.Revert = "maybe" })), "a", "/steps/0/revert", `"maybe"`},
		"a write-only step": {planned(at("a", "crm", c), at("tell", "hook", r)), "tell", "/steps/1/intent/destination", "nothing can be read"},
		"undo of a pivot":   {planned(with(at("a", "crm", p), func(s *Step) { s.Undo = undo })), "a", "/steps/0/undo", "never undone"},
		"undo elsewhere":    {planned(with(at("a", "crm", c), func(s *Step) { s.Undo = &intent.WriteIntent{Write: intent.Delete, Key: intent.Fields{"id": "z"}} })), "a", "/steps/0/undo/key", "another record"},
		"invalid undo":      {planned(with(at("a", "crm", c), func(s *Step) { s.Undo = &intent.WriteIntent{Write: "burn"} })), "a", "/steps/0/undo/write", "one of"},
		"pivot too early":   {planned(at("p", "crm", p), at("c", "crm", c, "p")), "c", "/steps/1/after/0", `"p", which is the pivot`},
		"retry too early":   {planned(at("r", "crm", r), at("p", "crm", p, "r")), "p", "/steps/1/after/0", "the hardest to take back last"},
		"hard too early":    {planned(with(at("h", "crm", c), func(s *Step) { s.Revert = Hard }), at("e", "crm", c, "h")), "e", "/steps/1/after/0", "hard to take back"},
		"mail too early":    {planned(at("mail", "press", r), at("log", "crm", r, "mail")), "log", "/steps/1/after/0", "impossible to take back"},
		"one record":        {planned(with(at("a", "crm", c), sameRecord), with(at("b", "crm", c), sameRecord)), "b", "/steps/1/after", "the same record"},
		"one operation":     {planned(with(at("a", "crm", c), sameOperation), with(at("b", "crm", c, "a"), sameOperation)), "b", "/steps/1/intent/idempotency_key", "a repeat of the first"},
		"negative grace":    {planned(with(at("a", "crm", c), func(s *Step) { s.Grace = -1 })), "a", "/steps/0/grace", "0 to"},
		"grace too long":    {planned(with(at("a", "crm", c), func(s *Step) { s.Grace = MaxGrace + 1 })), "a", "/steps/0/grace", "0 to"},
		"other tenant":      {planned(with(at("a", "crm", c), func(s *Step) { s.Intent.Tenant = "else" })), "a", "/steps/0/intent/tenant", "contradicts the plan"},
		"other workflow":    {planned(with(at("a", "crm", c), func(s *Step) { s.Intent.Workflow = "wf-9" })), "a", "/steps/0/intent/workflow", "contradicts the plan"},
		"other step":        {planned(with(at("a", "crm", c), func(s *Step) { s.Intent.Step = "b" })), "a", "/steps/0/intent/step", "contradicts the plan"},
		"a parent":          {planned(with(at("a", "crm", c), func(s *Step) { s.Intent.Compensates = "wr_1" })), "a", "/steps/0/intent/compensates", "is set"},
		"no calls left":     {planned(with(at("a", "crm", c), func(s *Step) { s.Intent.Call = maxCall })), "a", "/steps/0/intent/call", "numbers for repeats"},
		"undo of a tenant":  {planned(with(at("a", "crm", c), func(s *Step) { s.Undo = &intent.WriteIntent{Tenant: "else", Write: intent.Delete} })), "a", "/steps/0/undo/tenant", "contradicts the plan"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := tt.plan.check(fakeDestinations{})
			var wrong *PlanError
			if !errors.As(err, &wrong) || !errors.Is(err, ErrPlan) {
				t.Fatalf("got %v, want a PlanError", err)
			}
			if wrong.Step != tt.step || wrong.Path != tt.path || !strings.Contains(err.Error(), tt.says) || wrong.Problem == "" {
				t.Errorf("step %q at %s: %v\nwant step %q at %s, with %q", wrong.Step, wrong.Path, err, tt.step, tt.path, tt.says)
			}
		})
	}
}

// A plan with the same requests in the same order is accepted if the rules are alike: two steps
// of one record in order, fresh keys, an undoing of its own.
func TestAcceptedPlans(t *testing.T) {
	sameRecord := func(s *Step) { s.Intent.Key = intent.Fields{"id": "one"} }
	dense := make([]Step, MaxSteps)
	for i := range dense {
		dense[i] = at(fmt.Sprintf("s%d", i), "crm", c)
		for j := range i {
			dense[i].After = append(dense[i].After, dense[j].Name)
		}
	}
	for name, plan := range map[string]Plan{
		"one record, in order":       planned(with(at("a", "crm", c), sameRecord), at("b", "crm", c, "a"), with(at("d", "crm", c, "b"), sameRecord)),
		"one box":                    planned(with(at("a", "box", c), sameRecord), with(at("b", "box", c), sameRecord)),
		"an undoing of its own":      planned(with(at("a", "dumb", c), func(s *Step) { s.Undo = &intent.WriteIntent{Write: intent.Delete} })),
		"a pivot that is a letter":   planned(at("a", "crm", c), at("mail", "press", p)),
		"every step after every one": planned(dense...),
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := plan.check(fakeDestinations{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	text := `{"tenant":"acme","id":"saga-1","correlation_id":"order 7","steps":[
		{"name":"a","revert":"hard","grace":"5m","intent":{"tool":"t","destination":"dumb","kind":"k","key":{"id":1},"write":"create","expect":{"n":1.50},"reversibility":"compensable"},
		 "undo":{"write":"delete"}},
		{"name":"b","after":["a"],"intent":{"tenant":"acme","tool":"t","destination":"crm","kind":"k","key":{"id":2},"write":"create","expect":{"n":1}}}]}`
	p, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Steps[0]; s.Grace != 5*time.Minute || s.Revert != Hard || s.Intent.Workflow != "saga-1" || s.Intent.CorrelationID != "order 7" ||
		s.Undo.Tool != "t" || s.Undo.Step != "a" || s.Undo.Destination != "dumb" || !slices.Equal(p.Steps[1].After, []string{"a"}) {
		t.Errorf("%+v", p)
	}
	again, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	q, err := Decode(again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, q); diff != "" {
		t.Errorf("another plan after encoding it: %s", diff)
	}
	one, err := p.digest()
	two, err2 := q.digest()
	if err != nil || err2 != nil || one != two {
		t.Errorf("digests %s and %s (%v, %v)", one, two, err, err2)
	}
}

func TestDecodeRefuses(t *testing.T) {
	step := func(more string) string {
		return `{"tenant":"acme","id":"x","steps":[{"name":"a","intent":{"tool":"t","destination":"crm","kind":"k","key":{"id":1},"write":"delete"}` + more + `}]}`
	}
	for name, tt := range map[string]struct{ text, path string }{
		"no JSON":         {`{`, ""},
		"unknown":         {`{"tenant":"acme","id":"x","stepz":[]}`, "/stepz"},
		"unknown in step": {step(`,"afterr":[]`), "/steps/0/afterr"},
		"twice":           {`{"tenant":"acme","tenant":"b","id":"x","steps":[]}`, "/tenant"},
		"a wrong type":    {`{"tenant":"acme","id":7,"steps":[]}`, "/id"},
		"no intent":       {`{"tenant":"acme","id":"x","steps":[{"name":"a"}]}`, "/steps/0/intent"},
		"bad grace":       {step(`,"grace":"soon"`), "/steps/0/grace"},
		"undo no object":  {step(`,"undo":7`), "/steps/0/undo"},
		"undo null":       {step(`,"undo":null`), "/steps/0/undo"},
		"undo unknown":    {step(`,"undo":{"write":"delete","and":1}`), "/steps/0/undo/and"},
		"intent twice":    {`{"tenant":"acme","id":"x","steps":[{"name":"a","intent":{"tool":"t","tool":"u"}}]}`, "/steps/0/intent/tool"},
		"no tenant":       {`{"id":"x","steps":[{"name":"a","intent":{}}]}`, "/tenant"},
		"too large":       {strings.Repeat(" ", MaxPlan+1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(tt.text))
			var wrong *PlanError
			if !errors.As(err, &wrong) || wrong.Path != tt.path {
				t.Errorf("got %v, want a PlanError at %q", err, tt.path)
			}
		})
	}
}

func TestAnotherPlanHasAnotherDigest(t *testing.T) {
	digest := func(p Plan) string {
		p, err := p.filled()
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := planned(at("a", "crm", c), at("b", "crm", c, "a"))
	for name, tt := range map[string]struct {
		plan Plan
		same bool
	}{
		"itself":     {planned(at("a", "crm", c), at("b", "crm", c, "a")), true},
		"deadline":   {planned(with(at("a", "crm", c), func(s *Step) { s.Intent.Deadline = time.Now() }), at("b", "crm", c, "a")), true},
		"order":      {planned(at("b", "crm", c, "a"), at("a", "crm", c)), false},
		"after":      {planned(at("a", "crm", c), at("b", "crm", c)), false},
		"class":      {planned(at("a", "crm", c), at("b", "crm", p, "a")), false},
		"grace":      {planned(with(at("a", "crm", c), func(s *Step) { s.Grace = 1 }), at("b", "crm", c, "a")), false},
		"revert":     {planned(with(at("a", "crm", c), func(s *Step) { s.Revert = Hard }), at("b", "crm", c, "a")), false},
		"undo":       {planned(with(at("a", "crm", c), func(s *Step) { s.Undo = &intent.WriteIntent{Write: intent.Delete} }), at("b", "crm", c, "a")), false},
		"expected":   {planned(with(at("a", "crm", c), func(s *Step) { s.Intent.Expect = intent.Fields{"a": "c"} }), at("b", "crm", c, "a")), false},
		"call":       {planned(with(at("a", "crm", c), func(s *Step) { s.Intent.Call = 1 }), at("b", "crm", c, "a")), false},
		"fewer":      {planned(at("a", "crm", c)), false},
		"a new name": {planned(at("A", "crm", c), at("b", "crm", c, "A")), false},
	} {
		if got := digest(tt.plan) == digest(base); got != tt.same {
			t.Errorf("%s: same digest: %t, want %t", name, got, tt.same)
		}
	}
}
