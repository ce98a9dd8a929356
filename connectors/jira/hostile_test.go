package jira_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/connectors/jira/jiratest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

func set(t *testing.T, s *jiratest.Site, fs ...jiratest.Fault) {
	t.Helper()
	for _, f := range fs {
		if err := s.Set(f); err != nil {
			t.Fatal(err)
		}
	}
}

func TestScratchDeleteLabelTakenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := stage(t, false)
		<-time.After(10 * time.Minute)
		for _, answered := range []bool{false, true} {
			_ = answered
		}
		set(t, s, jiratest.Fault{Vice: jiratest.LateCommit, Delay: 240 * time.Second})
		time.AfterFunc(20*time.Second, func() {
			s.Edit("OPS-2", map[string]any{"labels": []any{}})
			s.Hide("DEV", false)
		})
		// drop: use DroppedBefore instead
		out := operate(t, c, named(issueIntent(intent.Delete, 0), 3))
		t.Logf("late: %s %s; issues %d", out.Status, out.Text, len(s.Issues()))
	})
	synctest.Test(t, func(t *testing.T) {
		s := jiratest.New(jiratest.Options{Projects: []string{"OPS", "DEV"}})
		inner := connect(t, s, nil)
		if _, err := inner.Write(t.Context(), request(named(issueIntent(intent.Create, 0), 0), nil)); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Minute)
		c := connect(t, s, func(o *jira.Options) {
			o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
				if r.Method == http.MethodDelete {
					s.Edit("OPS-1", map[string]any{"labels": []any{}})
				}
				return nil
			}}
		})
		set(t, s, jiratest.Fault{Vice: jiratest.DroppedBefore})
		out := operate(t, c, named(issueIntent(intent.Delete, 0), 3))
		t.Logf("dropped + label off: %s %s; issues %d", out.Status, out.Text, len(s.Issues()))
	})
}

func TestScratchMovedDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := stage(t, false)
		s.Move("OPS-2", "DEV")
		in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Delete, Key: intent.Fields{"issue": "10002", "project": "OPS"}}, 3)
		out := operate(t, c, in)
		t.Logf("id: %s %s; issues %d sends %d", out.Status, out.Text, len(s.Issues()), s.Sends())
	})
	synctest.Test(t, func(t *testing.T) {
		s := jiratest.New(jiratest.Options{Projects: []string{"OPS", "DEV"}, IndexLag: time.Minute})
		c := connect(t, s, nil)
		if _, err := c.Write(t.Context(), request(named(issueIntent(intent.Create, 0), 0), nil)); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Minute)
		s.Move("OPS-1", "DEV")
		in := named(issueIntent(intent.Delete, 0), 3)
		out := operate(t, c, in)
		t.Logf("ref: %s %s; issues %d sends %d", out.Status, out.Text, len(s.Issues()), s.Sends())
	})
}

func TestScratchGateway404(t *testing.T) {
	for _, dc := range []bool{true} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := stage(t, dc)
			n := 0
			c := connect(t, s, func(o *jira.Options) {
				o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
					if strings.Contains(r.URL.Path, "/properties/readback") {
						n++
						return response(404, `{"code":404,"message":"HTTP 404 Not Found"}`)
					}
					return nil
				}}
			})
			in := named(commentIntent(intent.Create, 1), 3)
			set(t, s, jiratest.Fault{Vice: jiratest.LostAnswer})
			out := operate(t, c, in)
			t.Logf("comment: %s %s; comments %d sends %d", out.Status, out.Text, len(s.Comments("OPS-1")), s.Sends())
		})
		synctest.Test(t, func(t *testing.T) {
			s, _ := stage(t, dc)
			c := connect(t, s, func(o *jira.Options) {
				o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
					if strings.Contains(r.URL.Path, "/issue/OPS-2") {
						return response(404, `{"code":404,"message":"HTTP 404 Not Found"}`)
					}
					return nil
				}}
			})
			in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Delete, Key: intent.Fields{"issue": "OPS-2"}}, 3)
			out := operate(t, c, in)
			t.Logf("delete: %s %s; issues %d sends %d", out.Status, out.Text, len(s.Issues()), s.Sends())
		})
	}
}

func TestScratchUpsert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := stage(t, false)
		in := named(issueIntent(intent.Update, 0), 3)
		in.Write = intent.Upsert
		var reg connectors.Registry
		_ = reg.Register("jira", connectors.Destination{Connector: c, Profiles: c.Profiles()})
		eng := engine.New(ledger.NewMemory(), &reg, nil)
		defer eng.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := eng.Do(ctx, in)
		t.Logf("%v %v %s", err, out.Status, out.Text)
		_ = s
	})
}

func TestScratchPaging(t *testing.T) {
	s := jiratest.New(jiratest.Options{DataCenter: true, PageSize: 2})
	for range 5 {
		if _, err := s.Seed("OPS", map[string]any{"summary": "x", "labels": []any{"Invoice-001"}}); err != nil {
			t.Fatal(err)
		}
	}
	once := false
	c := connect(t, s, func(o *jira.Options) {
		o.Transport = between{s.Transport(), func(r *http.Request, body []byte) *http.Response {
			if strings.HasSuffix(r.URL.Path, "/search") && strings.Contains(string(body), `"startAt":2`) && !once {
				once = true
				s.Remove("OPS-1")
			}
			return nil
		}}
	})
	o, err := c.Read(t.Context(), query(named(issueIntent(intent.Create, 1), 1)))
	t.Logf("%d %v", len(o.Records), err)
	_ = slices.Contains[[]int]
}

func TestScratchLabelsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := jiratest.New(jiratest.Options{IndexLag: time.Minute})
		c := connect(t, s, nil)
		set(t, s, jiratest.Fault{Vice: jiratest.LostAnswer})
		time.AfterFunc(10*time.Second, func() { s.Edit("OPS-1", map[string]any{"labels": []any{"tidy"}}) })
		out := operate(t, c, named(issueIntent(intent.Create, 1), 1))
		t.Logf("%s %s; issues %d", out.Status, out.Text, len(s.Issues()))
	})
}
