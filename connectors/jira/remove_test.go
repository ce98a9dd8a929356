package jira_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/connectors/jira/jiratest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// TestRemove: one of two issues is named by its own key, and only where it is
// ours and nobody has touched it.
func TestRemove(t *testing.T) {
	_, c := stage(t, false)
	in := named(issueIntent(intent.Create, 0), 0)
	seen := read(t, c, in).Records[0]
	undo, err := c.Remove(in, seen)
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(intent.Fields{"issue": "OPS-2"}, undo.Key); d != "" || undo.Write != intent.Delete || undo.Require["id"] != seen.Ref || undo.Require["updated"] == nil {
		t.Errorf("%+v: %s", undo, d)
	}
	changed := func(fields intent.Fields) connectors.Record {
		r := seen
		r.Fields = maps.Clone(seen.Fields)
		maps.Copy(r.Fields, fields)
		return r
	}
	strange := seen
	strange.Stamp = ""
	for name, f := range map[string]func() (intent.WriteIntent, error){
		"a clone":   func() (intent.WriteIntent, error) { return c.Remove(in, strange) },
		"an update": func() (intent.WriteIntent, error) { return c.Remove(named(issueIntent(intent.Update, 0), 0), seen) },
		"worked on": func() (intent.WriteIntent, error) {
			return c.Remove(in, changed(intent.Fields{"updated": "2099-01-01T00:00:00Z"}))
		},
		"times not shown": func() (intent.WriteIntent, error) { return c.Remove(in, changed(intent.Fields{"created": nil})) },
		"no key":          func() (intent.WriteIntent, error) { return c.Remove(in, changed(intent.Fields{"issue": ""})) },
	} {
		if undo, err := f(); !errors.Is(err, jira.ErrNoUndo) {
			t.Errorf("%s: %v, %v; want it refused", name, undo, err)
		}
	}
}

// TestSurplusIssueIsRemoved: the index was further behind than the options say,
// and a second issue was made. Where that is asked for the first one goes.
func TestSurplusIssueIsRemoved(t *testing.T) {
	for deployment, dataCenter := range deployments {
		for name, touched := range map[string]bool{"as made": false, "worked on": true} {
			t.Run(deployment+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { removeSurplus(t, dataCenter, touched) })
			})
		}
	}
}

func removeSurplus(t *testing.T, dataCenter, touched bool) {
	s := jiratest.New(jiratest.Options{DataCenter: dataCenter, IndexLag: 12 * time.Minute})
	if err := s.Set(jiratest.Fault{Vice: jiratest.LostAnswer}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, s, nil)
	var reg connectors.Registry
	if err := reg.Register("jira", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		t.Fatal(err)
	}
	eng := engine.New(ledger.NewMemory(), &reg, &engine.Options{Policies: append([]policies.Policy{policies.RemoveSurplus()}, policies.Standard()...)})
	defer eng.Close()
	in := named(issueIntent(intent.Create, 1), 1)
	in.Reversibility, in.OnMismatch = intent.Compensable, intent.MismatchCompensate
	resume := func(until func(engine.Outcome) bool) (out engine.Outcome) {
		for range 300 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			out, _ = eng.Do(ctx, in) // the last one counts
			cancel()
			if until(out) {
				break
			}
			<-time.After(time.Minute)
			if _, err := eng.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	first := resume(func(o engine.Outcome) bool { return o.Status == engine.StatusVerified })
	if len(s.Issues()) != 2 {
		t.Fatalf("setup: %s, %d issues", first.Text, len(s.Issues()))
	}
	if touched {
		<-time.After(time.Minute)
		s.Edit("OPS-1", map[string]any{"environment": "somebody's"})
	}
	last := resume(func(engine.Outcome) bool { return false })
	left := s.Issues()
	if touched {
		if last.Status != engine.StatusReview || len(left) != 2 {
			t.Errorf("%s with %d issues: %s", last.Status, len(left), last.Text)
		}
		return
	}
	if last.Status != engine.StatusVerified || len(left) != 1 || left[0].ID != first.Ref || last.Ref != first.Ref {
		t.Errorf("%s, %s: %+v left, want %s", last.Status, last.Text, left, first.Ref)
	}
}
