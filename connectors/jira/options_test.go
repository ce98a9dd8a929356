package jira_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
)

func TestNewNamesTheOption(t *testing.T) {
	good := jira.Options{URL: "https://jira.example.org", Token: token}
	cases := map[string]struct {
		change func(o *jira.Options)
		names  string
		reason string
	}{
		"nothing":         {func(o *jira.Options) {}, "", "two options are enough"},
		"no address":      {func(o *jira.Options) { o.URL = "" }, "URL", "there is nowhere to go"},
		"no scheme":       {func(o *jira.Options) { o.URL = "jira.example.org" }, "URL", "a name is no address"},
		"plain":           {func(o *jira.Options) { o.URL = "http://jira.example.org" }, "URL", "the token would go in the clear"},
		"plain, here":     {func(o *jira.Options) { o.URL = "http://127.0.0.1:8080" }, "", "it does not leave the machine"},
		"secret in it":    {func(o *jira.Options) { o.URL = "https://me:secret@jira.example.org" }, "URL", "addresses are shown"},
		"query":           {func(o *jira.Options) { o.URL = "https://jira.example.org/?a=b" }, "URL", "paths are appended"},
		"with a path":     {func(o *jira.Options) { o.URL = "https://api.atlassian.com/ex/jira/1-2-3/" }, "", "scoped tokens need it"},
		"no token":        {func(o *jira.Options) { o.Token = nil }, "Token", "no request succeeds without one"},
		"deployment":      {func(o *jira.Options) { o.Deployment = "server" }, "Deployment", "an unknown word"},
		"property":        {func(o *jira.Options) { o.Property = "a b" }, "Property", "it is part of URLs"},
		"project":         {func(o *jira.Options) { o.Project = "ops" }, "Project", "keys are in capital letters"},
		"issue":           {func(o *jira.Options) { o.Issue = "12" }, "Issue", "a key says the project"},
		"browse":          {func(o *jira.Options) { o.BrowseURL = "x" }, "BrowseURL", "people are sent there"},
		"negative settle": {func(o *jira.Options) { o.Settle = -1 }, "", "it means undeclared"},
		"negative time":   {func(o *jira.Options) { o.ReadTimeout = -1 }, "ReadTimeout", "nothing takes less than no time"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := good
			c.change(&o)
			_, err := jira.New(o)
			switch {
			case c.names == "" && err != nil:
				t.Errorf("%v, want it taken: %s", err, c.reason)
			case c.names != "" && (!errors.Is(err, jira.ErrOptions) || !strings.Contains(err.Error(), "option "+c.names)):
				t.Errorf("%v, want an error that names %s: %s", err, c.names, c.reason)
			case err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("%v shows the secret", err)
			}
		})
	}
}

func TestProfiles(t *testing.T) {
	s := fakejira.New(fakejira.Options{})
	p := connect(t, s, func(o *jira.Options) { o.Settle, o.Horizon = -1, -1 }).Profiles()[jira.KindIssue]
	if _, declared := p.Settle.Declared(); declared {
		t.Error("a negative Settle is declared")
	}
	if _, declared := p.Horizon.Declared(); declared {
		t.Error("a negative Horizon is declared")
	}
	for kind, p := range connect(t, s, nil).Profiles() {
		for path, rules := range p.Compare {
			if err := rules.Validate(); err != nil {
				t.Errorf("%s: the comparison of %s: %v", kind, path, err)
			}
		}
		if !slices.Equal(p.Writes, writes) {
			t.Errorf("%s: the profile has the writes %v, want %v: there is no upsert", kind, p.Writes, writes)
		}
		if kind == jira.KindIssue && slices.Contains(p.Unique, intent.Update) {
			t.Error("an update may be a transition, which is not harmless to repeat")
		}
		if slices.Contains(p.Unique, intent.Create) || len(p.NativeWindow) > 0 || len(p.Conditional) > 0 || p.FreshKeys {
			t.Errorf("%s: the profile promises what Jira does not have: %+v", kind, p)
		}
	}
	if p := connect(t, s, func(o *jira.Options) { o.Deployment = jira.DataCenter }).Profiles()[jira.KindIssue]; p.BulkLimit != 0 {
		t.Error("a Data Center has no bulk fetch")
	}
}

func TestSheets(t *testing.T) {
	names := map[string]bool{}
	for _, s := range jira.Sheets() {
		names[s.Name] = true
		for _, topic := range connectors.Topics() {
			if !slices.ContainsFunc(s.Claims, func(c connectors.Claim) bool { return c.About == topic }) {
				t.Errorf("%s says nothing about %s", s.Name, topic)
			}
		}
		for _, c := range s.Claims {
			if strings.Contains(s.System, "Data Center") && strings.Contains(c.Source, "/cloud/") && !c.Assumed {
				t.Errorf("%s: what a page about Cloud says is taken for known: %s", s.Name, c.Says)
			}
			if c.Says == "" || c.Source == "" || !slices.Contains(connectors.Topics(), c.About) {
				t.Errorf("%s: a claim without words, source or topic: %+v", s.Name, c)
			}
		}
		if s.Type != "jira" || s.Profile.Kind != s.Kind || s.System == "" {
			t.Errorf("%s is not complete", s.Name)
		}
	}
	if len(names) != 4 {
		t.Errorf("%d sheets, want four", len(names))
	}
}

func TestProbe(t *testing.T) {
	cases := map[string]struct {
		change func(s *fakejira.Site, o *jira.Options)
		is     error
		reason string
	}{
		"good":           {func(_ *fakejira.Site, o *jira.Options) { o.Project = "OPS" }, nil, "all can be seen"},
		"no project":     {func(*fakejira.Site, *jira.Options) {}, nil, "none was named"},
		"hidden project": {func(s *fakejira.Site, o *jira.Options) { o.Project = "OPS"; s.Hide("OPS", true) }, jira.ErrNoAccess, "it cannot be seen"},
		"wrong address":  {func(_ *fakejira.Site, o *jira.Options) { o.URL += "/wrong" }, jira.ErrUnreadable, "no Jira answers there"},
		"no token": {func(_ *fakejira.Site, o *jira.Options) {
			o.Token = func(context.Context) (string, error) { return "", nil }
		}, nil, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := fakejira.New(fakejira.Options{})
			err := connect(t, s, func(o *jira.Options) { c.change(s, o) }).Probe(t.Context())
			switch {
			case name == "no token":
				if err == nil || s.Sends() > 0 {
					t.Errorf("%v; an empty token sends an anonymous request", err)
				}
			case !errors.Is(err, c.is):
				t.Errorf("%v, want %v: %s", err, c.is, c.reason)
			}
			if s.Sends() > 0 {
				t.Error("a probe has written")
			}
		})
	}
}

// TestSample: samples can be written and queried.
func TestSample(t *testing.T) {
	s, _ := stage(t, false)
	c := connect(t, s, func(o *jira.Options) { o.Project, o.Issue = "OPS", "OPS-1" })
	for _, kind := range kinds {
		for _, w := range writes {
			in, err := c.Sample(kind, w, "a1")
			if err != nil {
				t.Fatal(err)
			}
			in = named(in, 1)
			if err := in.Validate(); err != nil {
				t.Fatalf("%s of %s: %v", w, kind, err)
			}
			before := read(t, c, in)
			if _, err := c.Write(t.Context(), request(in, &before)); err != nil {
				t.Errorf("%s of %s: %v", w, kind, err)
			}
			if o := read(t, c, in); !happened(in, before, o) {
				t.Errorf("%s of %s is not there: %v", w, kind, o.Records)
			}
		}
	}
	if _, err := connect(t, s, nil).Sample(jira.KindIssue, intent.Create, "a"); !errors.Is(err, jira.ErrSample) || !strings.Contains(err.Error(), "Project") {
		t.Errorf("%v, want it to name the option Project", err)
	}
	if _, err := c.Sample(jira.KindIssue, intent.Upsert, "a"); !errors.Is(err, jira.ErrSample) {
		t.Errorf("%v, want an error: there is no upsert", err)
	}
}
