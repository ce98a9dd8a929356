package jira_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestGatewayInJSON: a gateway's 404 with JSON of its own is not Jira's, so it makes neither a
// second comment nor an unneeded delete.
func TestGatewayInJSON(t *testing.T) {
	cases := map[string]struct {
		path   string
		in     intent.WriteIntent
		reason string
	}{
		"property of a comment": {"/properties/readback", commentIntent(intent.Create, 1), "our own comment would look like another's"},
		"issue":                 {"/issue/OPS-2", intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Delete, Key: intent.Fields{"issue": "OPS-2"}}, "it would look deleted"},
		"comment":               {"/comment/10003", intent.WriteIntent{Kind: jira.KindComment, Write: intent.Delete, Key: intent.Fields{"issue": "OPS-1", "comment": "10003"}}, "likewise"},
	}
	for name, c := range cases {
		for _, body := range []string{`{"code":404,"message":"HTTP 404 Not Found"}`, `{}`, `{"errorMessages":[],"errors":{}}`, `{"errors":["no route"]}`, `null`} {
			t.Run(name+"/"+body, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { gatewaySays(t, body, c.path, c.in, c.reason) })
			})
		}
	}
}

func gatewaySays(t *testing.T, body, path string, in intent.WriteIntent, reason string) {
	s, _ := stage(t, true)
	comments, issues := len(s.Comments("OPS-1")), len(s.Issues())
	c := connect(t, s, func(o *jira.Options) {
		o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, path) {
				return response(404, body)
			}
			return nil
		}}
	})
	if err := s.Set(fault.Fault{Kind: fault.LostAnswer}.Once()); err != nil {
		t.Fatal(err)
	}
	out := operate(t, c, named(in, 3))
	if out.Status == ledger.Verified || len(s.Comments("OPS-1")) > comments+1 || len(s.Issues()) != issues {
		t.Errorf("it ends %s with %d comments and %d issues: %s", out.Status, len(s.Comments("OPS-1")), len(s.Issues()), reason)
	}
}

// TestDeletedBetweenPages: an issue that is deleted between two pages hides another, and the read
// must not look whole.
func TestDeletedBetweenPages(t *testing.T) {
	s := fakejira.New(fakejira.Options{DataCenter: true, PageSize: 2})
	for range 5 {
		if _, err := s.Seed("OPS", map[string]any{"summary": "x", "labels": []any{"Invoice-001"}}); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, s, func(o *jira.Options) {
		o.Transport = between{s.Transport(), func(r *http.Request, body []byte) *http.Response {
			if strings.HasSuffix(r.URL.Path, "/search") && strings.Contains(string(body), `"startAt":2`) {
				s.Remove("OPS-1")
			}
			return nil
		}}
	})
	in := named(issueIntent(intent.Create, 1), 1)
	if o, err := c.Read(t.Context(), query(in)); err == nil {
		t.Errorf("the read finds %d of 4 issues, and no error", len(o.Records))
	}
	if o := read(t, c, in); len(o.Records) != 4 {
		t.Errorf("the next read finds %d of 4", len(o.Records))
	}
}

// TestPermissionIsAskedAfter: permission before the read of issues proves nothing about those
// that were not shown.
func TestPermissionIsAskedAfter(t *testing.T) {
	for deployment, dataCenter := range deployments {
		s, _ := stage(t, dataCenter)
		asked := 0
		c := connect(t, s, func(o *jira.Options) {
			o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
				if strings.HasSuffix(r.URL.Path, "/mypermissions") {
					asked++
				}
				if asked > 0 && strings.Contains(r.URL.Path, "/issue/") {
					s.Hide("OPS", true)
				}
				return nil
			}}
		})
		qs := []connectors.Query{query(byIssue(intent.Delete, intent.Fields{"issue": "OPS-99"}))}
		for len(qs) < 20 { // as many as are read together
			qs = append(qs, query(byIssue(intent.Delete, intent.Fields{"issue": "OPS-1"})))
		}
		qs = append(qs, query(byIssue(intent.Delete, intent.Fields{"issue": "OPS-2"})))
		answers, err := c.ReadMany(t.Context(), qs)
		if err != nil {
			t.Fatal(err)
		}
		if answers[0].Err != nil || len(answers[0].Observation.Records) != 0 {
			t.Errorf("%s: %+v, want absent", deployment, answers[0])
		}
		if last := answers[20]; last.Err == nil {
			t.Errorf("%s: OPS-2 is there and hidden since, and the read finds %d records", deployment, len(last.Observation.Records))
		}
	}
}

// TestMovedAway: an issue that was moved out of the project of the key is not the requested one;
// it is neither deleted nor changed.
func TestMovedAway(t *testing.T) {
	for name, key := range map[string]intent.Fields{
		"id": {"issue": "10001", "project": "OPS"}, "key": {"issue": "OPS-1", "project": "OPS"}, "reference": {"project": "OPS", "reference": "Invoice-000"},
	} {
		for _, w := range []intent.WriteType{intent.Update, intent.Delete} {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := fakejira.New(fakejira.Options{IndexLag: time.Minute, Projects: []string{"OPS", "DEV"}})
					c := connect(t, s, nil)
					if _, err := c.Write(t.Context(), request(named(issueIntent(intent.Create, 0), 0), nil)); err != nil {
						t.Fatal(err)
					}
					<-time.After(10 * time.Minute)
					s.Move("OPS-1", "DEV")
					in := issueIntent(w, 0)
					in.Key = key
					sends := s.Sends()
					out := operate(t, c, named(in, 3))
					if out.Status != ledger.NotApplied || s.Sends() != sends || len(s.Issues()) != 1 {
						t.Errorf("%s after %d sends, and %d issues: %s", out.Status, s.Sends()-sends, len(s.Issues()), out.Text)
					}
				})
			})
		}
	}
}

// TestTransitionOnce: a late transition is not made a second time, even if the workflow would
// allow it.
func TestTransitionOnce(t *testing.T) {
	for deployment, dataCenter := range deployments {
		for _, f := range []fault.Fault{{Kind: fault.LostAnswer}, {Kind: fault.LateCommit}, {Kind: fault.DroppedBefore}, {Kind: fault.BadGateway, How: "409"}, {Kind: fault.BadGateway}} {
			t.Run(deployment+"/"+string(f.Kind)+f.How, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, c := stage(t, dataCenter)
					in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"},
						Expect: intent.Fields{"status": fakejira.Blocked}}, 3)
					if err := s.Set(fault.Fault{Kind: f.Kind, How: f.How, Delay: 3 * time.Minute}.Once()); err != nil {
						t.Fatal(err)
					}
					out := operate(t, c, in)
					<-time.After(time.Hour)
					made := 0
					for _, e := range s.Effects() {
						if e.Op == "transition" {
							made++
						}
					}
					if out.Status != ledger.Verified || made != 1 {
						t.Errorf("%s, and the transition was made %d times: %s", out.Status, made, out.Text)
					}
				})
			})
		}
	}
}

// TestImpossibleEndsAtOnce: what Jira cannot serve is not tried for a day, and the error names
// the field.
func TestImpossibleEndsAtOnce(t *testing.T) {
	cases := map[string]struct {
		in    intent.WriteIntent
		names string
	}{
		"status and summary": {intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"},
			Expect: intent.Fields{"status": fakejira.InProgress, "summary": "x"}}, "/expect/summary"},
		"no edge": {intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"},
			Expect: intent.Fields{"status": fakejira.Archived}}, "/expect/status"},
		"a document": {intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Create, Key: intent.Fields{"project": "OPS", "reference": "a"},
			Expect: intent.Fields{"summary": "x", "description": map[string]any{"type": "doc"}}}, "/expect/description"},
		"a comment without text": {intent.WriteIntent{Kind: jira.KindComment, Write: intent.Create, Key: intent.Fields{"issue": "OPS-1", "reference": "a"},
			Expect: intent.Fields{"visibility": nil}}, "/expect/body"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, connector := stage(t, false)
				sends, began := s.Sends(), time.Now()
				out := operate(t, connector, named(c.in, 3))
				if out.Status != ledger.NotApplied || s.Sends() != sends || time.Since(began) > time.Minute || !strings.Contains(out.Text, c.names) {
					t.Errorf("%s after %d sends and %v (%s), want not applied at once, with %s named", out.Status, s.Sends()-sends, time.Since(began), out.Text, c.names)
				}
			})
		})
	}
}

// TestDeletedOrOnlyLost: an issue whose label is removed after a lost delete is not found by its
// reference any more. That does not mean that it is gone.
func TestDeletedOrOnlyLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakejira.New(fakejira.Options{IndexLag: time.Second})
		c := connect(t, s, nil)
		if _, err := c.Write(t.Context(), request(named(issueIntent(intent.Create, 0), 0), nil)); err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Minute)
		if err := s.Set(fault.Fault{Kind: fault.DroppedBefore}.Once()); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(20*time.Second, func() { s.Edit("OPS-1", map[string]any{"labels": []any{}}) })
		out := operate(t, c, named(issueIntent(intent.Delete, 0), 3))
		if out.Status != ledger.StatusReview || len(s.Issues()) != 1 {
			t.Errorf("%s with %d issues: %s; want a person asked", out.Status, len(s.Issues()), out.Text)
		}
	})
}
