package sagamatrix

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// TestAlone runs the step of each destination through the engine alone, once for each fault. It
// compares the table of results of faults, which the matrix uses, with the engine and the
// destination's record.
func TestAlone(t *testing.T) {
	for _, p := range plans {
		for _, step := range steps {
			for _, v := range append([]faultKind{""}, faultKinds...) {
				if v != "" && !knows(step, v) {
					continue
				}
				t.Run(p.name+"/"+step+"/"+string(v), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { alone(t, p, step, v) })
				})
			}
		}
	}
}

func alone(t *testing.T, p plan, step string, v faultKind) {
	w, err := opened(p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(time.Hour) // what is there was there for long
	book := ledger.NewMemory()
	one := newProcess(t.Context(), "one", point{})
	m := &mischief{world: w, step: step, fault: v}
	e, err := m.engine(book, one)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	in := p.intent(w, step)
	in.Tenant, in.Workflow, in.Step = tenant, "alone", step
	if _, err := e.Do(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := worked(t.Context(), book, e, one, 3*time.Hour); err != nil {
		t.Fatal(err)
	}
	out, err := e.Do(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if v != "" && !m.met {
		t.Errorf("the fault was never met")
	}
	a := w[step].account()
	if a.twice(v) {
		t.Errorf("done twice: %+v", a)
	}
	if got, want := out.Status, leadsTo(step, v, in); got != want {
		t.Errorf("%s (%s), want %s; there is %+v", got, out.Text, want, a)
	}
	if want := map[ledger.Status]status{ledger.Verified: asDeclared, ledger.NotApplied: asBefore, ledger.Compensated: asBefore}[out.Status]; want != "" && a.Status != want {
		t.Errorf("%s, and the destination is %s: %+v", out.Status, a.Status, a)
	}
}

// leadsTo is the expected result of a step whose destination has the fault once, with no other
// failure.
func leadsTo(step string, v faultKind, in intent.WriteIntent) ledger.Status {
	switch v {
	case refused:
		return ledger.NotApplied
	case duplicate:
		return ledger.StatusReview
	case noField:
		if in.OnMismatch == intent.MismatchCompensate {
			return ledger.Compensated
		}
		return ledger.StatusReview
	case otherForm: // another actor may have stored that value
		return ledger.StatusReview
	case rollback:
		if step == ticket { // the first read shows it, a later one does not
			return ledger.StatusReview
		}
		fallthrough
	case phantom:
		if step == ticket || step == contact { // it was answered, and had no effect
			return ledger.StatusReview
		}
		fallthrough
	case dropped, cutShort:
		if step == letter { // a mail cannot be taken back: a reviewer sends the second
			return ledger.StatusReview
		}
	}
	return ledger.Verified
}
