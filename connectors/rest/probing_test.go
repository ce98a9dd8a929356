package rest_test

import (
	"testing"
	"testing/synctest"

	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/probe"
)

// TestProbing: each fake is as its declaration says, and the samples can be removed again.
func TestProbing(t *testing.T) {
	for name, open := range map[string]func() api{
		"github":         func() api { a, _ := gitHub(fakerest.GitHubOptions{}); return a },
		"zendesk":        func() api { a, _ := zendesk(fakerest.ZendeskOptions{}); return a },
		"notion":         func() api { a, _ := notion(fakerest.NotionOptions{}); return a },
		"calendar":       func() api { a, _ := calendar(); return a },
		"salesforce":     func() api { a, _ := salesforce(true); return a },
		"hubspot":        func() api { a, _ := hubSpot("contact"); return a },
		"hubspot, keyed": func() api { a, _ := hubSpot("keyed-contact"); return a },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := open()
				c, p := a.connector(t)
				rep, err := probe.Run(t.Context(), c, p, a.kind, probe.Options{Rounds: 2})
				if err != nil || len(rep.Weaker) > 0 || len(rep.Left) > 0 {
					t.Errorf("error %v\n%s", err, rep.Text())
				}
				for _, o := range a.fake.Now(a.collection) {
					if r, there := a.record(o); there {
						t.Errorf("still there: %+v", r)
					}
				}
				t.Log("\n" + rep.Text())
			})
		})
	}
}

// TestProbingUnderOwnKeys: what is declared of keys and stamps holds on the fakes of the campaign.
func TestProbingUnderOwnKeys(t *testing.T) {
	for _, name := range []string{"github-files/file", "linear-issues/issue", "microsoft-graph-events/event"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := destinations[name]
				con, p := d.api(name, d.open()).connector(t)
				rep, err := probe.Run(t.Context(), con, p, d.kind, probe.Options{Rounds: 2})
				if err != nil || len(rep.Weaker) > 0 || len(rep.Left) > 0 {
					t.Errorf("error %v\n%s", err, rep.Text())
				}
			})
		})
	}
}
