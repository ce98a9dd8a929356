package jira_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// operate runs one write through the engine until it is settled or in review, and then continues
// until its rechecks are done.
func operate(t *testing.T, c interface {
	connectors.Connector
	Profiles() map[string]connectors.Profile
}, in intent.WriteIntent) engine.Outcome {
	t.Helper()
	var reg connectors.Registry
	if err := reg.Register("jira", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		t.Fatal(err)
	}
	book := ledger.NewMemory()
	eng := engine.New(book, &reg, nil)
	defer eng.Close()
	var out engine.Outcome
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var err error
		out, err = eng.Do(ctx, in)
		cancel()
		if err == nil && out.Status != ledger.InProgress {
			break
		}
		<-time.After(20 * time.Second)
		if _, err := eng.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if out.Status == ledger.Verified {
		for range 3 { // the rechecks
			<-time.After(20 * time.Minute)
			if _, err := eng.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if out, err = eng.Do(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestThroughEngine: whatever is lost, lagging or late, there is never a second issue, and a
// verified one is there as declared.
func TestThroughEngine(t *testing.T) {
	verified, review := ledger.Verified, ledger.StatusReview
	cases := map[string]struct {
		faults []fault.Fault
		lag    time.Duration
		want   ledger.Status
		sends  int
		reason string
	}{
		"nothing wrong":         {nil, 0, verified, 1, "one send"},
		"index behind":          {nil, 2 * time.Minute, verified, 1, "the answer names the issue, which is read itself"},
		"answer lost":           {[]fault.Fault{{Kind: fault.LostAnswer}}, 0, verified, 1, "the label finds it"},
		"answer lost, behind":   {[]fault.Fault{{Kind: fault.LostAnswer}}, 2 * time.Minute, verified, 1, "the label finds it when the index has caught up"},
		"body cut, behind":      {[]fault.Fault{{Kind: fault.CutBody}}, 2 * time.Minute, verified, 1, "a yes without a name"},
		"502, behind":           {[]fault.Fault{{Kind: fault.BadGateway}}, 4 * time.Minute, verified, 1, ""},
		"503, behind":           {[]fault.Fault{{Kind: fault.BadGateway, How: "503"}}, 4 * time.Minute, verified, 1, ""},
		"409":                   {[]fault.Fault{{Kind: fault.BadGateway, How: "409"}}, time.Minute, verified, 1, ""},
		"late, behind":          {[]fault.Fault{{Kind: fault.LateCommit, Delay: 3 * time.Minute}}, 2 * time.Minute, verified, 1, "within the horizon"},
		"dropped":               {[]fault.Fault{{Kind: fault.DroppedBefore}}, 2 * time.Minute, verified, 2, "absence is conclusive after settle and horizon"},
		"phantom":               {[]fault.Fault{{Kind: fault.PhantomSuccess}}, 2 * time.Minute, review, 1, "the answer named an issue that is not there"},
		"refused once":          {[]fault.Fault{{Kind: fault.Throttled}}, 0, verified, 2, "nothing was applied"},
		"redirected":            {[]fault.Fault{{Kind: fault.Refused, How: "301"}}, 0, verified, 2, "found absent in the end"},
		"field dropped":         {[]fault.Fault{{Kind: fault.DroppedField}}, 0, review, 1, "it is not as declared"},
		"duplicate":             {[]fault.Fault{{Kind: fault.DuplicateBehindOurBack}}, 0, review, 1, "two are there"},
		"duplicate, behind":     {[]fault.Fault{{Kind: fault.DuplicateBehindOurBack}}, 2 * time.Minute, review, 1, "the recheck sees the second"},
		"reads fail for a time": {[]fault.Fault{{Kind: fault.LostAnswer}, {Kind: fault.UnreadableRead, How: "html"}, {Kind: fault.UnreadableRead, How: "503"}}, 0, verified, 1, "a failed read shows nothing"},
	}
	for name, c := range cases {
		for deployment, dataCenter := range deployments {
			t.Run(deployment+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := fakejira.New(fakejira.Options{DataCenter: dataCenter, IndexLag: c.lag})
					for _, f := range c.faults {
						if err := s.Set(f.Once()); err != nil {
							t.Fatal(err)
						}
					}
					in := named(issueIntent(intent.Create, 1), 1)
					out := operate(t, connect(t, s, nil), in)
					if out.Status != c.want || s.Sends() != c.sends {
						t.Errorf("%s after %d sends (%s), want %s after %d: %s", out.Status, s.Sends(), out.Text, c.want, c.sends, c.reason)
					}
					ours := 0
					for _, e := range s.Effects() {
						if !e.Itself && e.Op == "create" {
							ours++
						}
					}
					if ours > 1 {
						t.Errorf("%d issues were made by us", ours)
					}
				})
			})
		}
	}
}

// TestSettleTooShort: if the index lags more than the options say, a second issue can be made;
// then the recheck sends it to review.
func TestSettleTooShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakejira.New(fakejira.Options{IndexLag: 25 * time.Minute})
		if err := s.Set(fault.Fault{Kind: fault.LostAnswer}.Once()); err != nil {
			t.Fatal(err)
		}
		out := operate(t, connect(t, s, nil), named(issueIntent(intent.Create, 1), 1))
		if out.Status != ledger.StatusReview || len(s.Issues()) != 2 {
			t.Errorf("%s with %d issues (%s), want two found by the recheck", out.Status, len(s.Issues()), out.Text)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := fakejira.New(fakejira.Options{IndexLag: 25 * time.Minute})
		if err := s.Set(fault.Fault{Kind: fault.LostAnswer}.Once()); err != nil {
			t.Fatal(err)
		}
		c := connect(t, s, func(o *jira.Options) { o.Settle = time.Hour })
		out := operate(t, c, named(issueIntent(intent.Create, 1), 1))
		if out.Status != ledger.Verified || len(s.Issues()) != 1 {
			t.Errorf("%s with %d issues (%s), want one where Settle is as it is", out.Status, len(s.Issues()), out.Text)
		}
	})
}

// TestUpdatesThroughEngine: updates, transitions, deletes and comments with a lost answer are
// made once, and so are their undos.
func TestUpdatesThroughEngine(t *testing.T) {
	for deployment, dataCenter := range deployments {
		for _, f := range []fault.Fault{{}, {Kind: fault.LostAnswer}, {Kind: fault.DroppedBefore}, {Kind: fault.BadGateway, How: "409"}, {Kind: fault.Refused, How: "409"}, {Kind: fault.LateCommit}} {
			for _, op := range operations() {
				t.Run(strings.Join([]string{deployment, op.name, string(f.Kind) + f.How}, "/"), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s, c := stage(t, dataCenter)
						in := named(op.in, 3)
						if f.Kind != fault.None {
							if err := s.Set(fault.Fault{Kind: f.Kind, How: f.How, Delay: 20 * time.Second}.Once()); err != nil {
								t.Fatal(err)
							}
						}
						effects := len(s.Effects())
						out := operate(t, c, in)
						if out.Status != ledger.Verified {
							t.Errorf("%s: %s", out.Status, out.Text)
						}
						if made := len(s.Effects()) - effects; made != 1 && op.write == intent.Create || made < 1 || made > 2 {
							t.Errorf("%d effects", made)
						}
					})
				})
			}
		}
	}
}

// TestByReferenceThroughEngine: an update by reference is verified when the
// index cannot hide anything any more.
func TestByReferenceThroughEngine(t *testing.T) {
	for _, w := range []intent.WriteType{intent.Update, intent.Delete} {
		synctest.Test(t, func(t *testing.T) {
			s, c := stage(t, false)
			<-time.After(10 * time.Minute)
			began := time.Now()
			out := operate(t, c, named(issueIntent(w, 0), 3))
			if out.Status != ledger.Verified || s.Sends() != 3 {
				t.Errorf("%s: %s after %d sends: %s", w, out.Status, s.Sends(), out.Text)
			}
			t.Logf("%s: verified after %v", w, out.Settled.Sub(began))
		})
	}
}

// meddled has another actor act right after the first send, before anything is read.
type meddled struct {
	*jira.Connector
	act func()
}

func (m *meddled) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	receipt, err := m.Connector.Write(ctx, r)
	if act := m.act; act != nil {
		m.act = nil
		act()
	}
	return receipt, err
}

// TestCompensationUndoesOnlyOurEffect: what another actor wrote stays, whatever
// became of our send.
func TestCompensationUndoesOnlyOurEffect(t *testing.T) {
	theirs := map[string]any{"summary": "another actor's"}
	alike := map[string]any{"summary": "Changed"} // as the update declares it
	for name, c := range map[string]struct {
		write intent.WriteType
		fault fault.Fault
		edit  map[string]any
		want  ledger.Status
	}{
		"lost send":                     {intent.Update, fault.Fault{Kind: fault.DroppedBefore}, theirs, ledger.StatusReview},
		"refused":                       {intent.Update, fault.Fault{Kind: fault.Refused}, theirs, ledger.NotApplied},
		"conflict":                      {intent.Update, fault.Fault{Kind: fault.Refused, How: "409"}, theirs, ledger.StatusReview},
		"lost send, and alike":          {intent.Update, fault.Fault{Kind: fault.DroppedBefore}, alike, ledger.StatusReview},
		"refused, and alike":            {intent.Update, fault.Fault{Kind: fault.Refused}, alike, ledger.NotApplied},
		"phantom success":               {intent.Update, fault.Fault{Kind: fault.PhantomSuccess}, theirs, ledger.StatusReview},
		"answer lost":                   {intent.Update, fault.Fault{Kind: fault.LostAnswer}, theirs, ledger.StatusReview},
		"answered, then changed":        {intent.Update, fault.Fault{}, theirs, ledger.StatusReview},
		"answered, a field lost":        {intent.Update, fault.Fault{Kind: fault.DroppedField}, nil, ledger.Compensated},
		"create, then changed":          {intent.Create, fault.Fault{}, theirs, ledger.StatusReview},
		"create, a field lost":          {intent.Create, fault.Fault{Kind: fault.DroppedField}, nil, ledger.Compensated},
		"create, lost and then changed": {intent.Create, fault.Fault{Kind: fault.DroppedField}, theirs, ledger.StatusReview},
	} {
		for deployment, dataCenter := range deployments {
			t.Run(deployment+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, conn := stage(t, dataCenter)
					in, key := issueIntent(intent.Create, 1), "OPS-3"
					if c.write == intent.Update {
						in, key = issueIntent(intent.Update, 0), "OPS-2"
						in.Key = intent.Fields{"issue": key}
					}
					in = named(in, 3)
					in.Reversibility, in.OnMismatch = intent.Compensable, intent.MismatchCompensate
					<-time.After(10 * time.Minute)
					if c.fault.Kind != fault.None {
						if err := s.Set(c.fault.Once()); err != nil {
							t.Fatal(err)
						}
					}
					before := fieldsOf(s, key)
					left := before
					out := operate(t, &meddled{conn, func() {
						if c.edit != nil {
							s.Edit(key, c.edit)
						}
						left = fieldsOf(s, key)
					}}, in)
					if c.want == ledger.Compensated {
						left = before
					}
					if got := fieldsOf(s, key); out.Status != c.want || !gocmp.Equal(left, got) {
						t.Errorf("%s (%s), want %s; left %v, want %v", out.Status, out.Text, c.want, got, left)
					}
				})
			})
		}
	}
}

// fieldsOf are what an issue holds of what the writes here name, nil for no issue.
func fieldsOf(s *fakejira.Site, key string) map[string]any {
	for _, i := range s.Issues() {
		if i.Key == key {
			f := map[string]any{}
			for _, name := range []string{"summary", "description", "labels", "priority", "environment"} {
				f[name] = i.Fields[name]
			}
			return f
		}
	}
	return nil
}
