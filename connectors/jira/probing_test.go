package jira_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors/jira"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/internal/probe"
)

// TestProbing: a site is as the connector declares, with the largest allowed lag of its index,
// and the samples are removed again.
func TestProbing(t *testing.T) {
	for name, dataCenter := range deployments {
		for _, kind := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := fakejira.New(fakejira.Options{DataCenter: dataCenter, IndexLag: 30 * time.Second, Projects: []string{"OPS", "DEV"}})
					if _, err := s.Seed("OPS", map[string]any{"summary": "the issue of the comments"}); err != nil {
						t.Fatal(err)
					}
					c := connect(t, s, func(o *jira.Options) { o.Project, o.Issue = "OPS", "OPS-1" })
					rep, err := probe.Run(t.Context(), c, c.Profiles()[kind], kind, probe.Options{Rounds: 2})
					if err != nil || len(rep.Weaker) > 0 || len(rep.Left) > 0 {
						t.Errorf("error %v\n%s", err, rep.Text())
					}
					if issues, comments := len(s.Issues()), len(s.Comments("OPS-1")); issues != 1 || comments != 0 {
						t.Errorf("%d issues and %d comments are there, want the one issue", issues, comments)
					}
					t.Log("\n" + rep.Text())
				})
			})
		}
	}
}
