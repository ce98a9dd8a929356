package jira_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/internal/verifytest"
)

// TestAudit: no wrong state of an issue or a comment is verified, and no right one is refused,
// with an index that is up to date and with one that always lags.
func TestAudit(t *testing.T) {
	for name, dataCenter := range deployments {
		for _, kind := range kinds {
			for lagName, lag := range map[string]time.Duration{"fresh": 0, "behind": 3 * time.Second} {
				if kind == jira.KindComment && lag > 0 {
					continue // no index takes part
				}
				t.Run(name+"/"+kind+"/"+lagName, func(t *testing.T) {
					verifytest.Audit(t, verifytest.Harness{Suite: connectortest.Harness{
						Open: func(t *testing.T) *connectortest.Fixture {
							s := fakejira.New(fakejira.Options{DataCenter: dataCenter, IndexLag: lag, Projects: []string{"OPS", "DEV"}})
							return seedable(fixture(t, s, connect(t, s, nil), kind), s, kind)
						},
						Writes: writes, Variants: variants(), Lacks: lacks(kind),
					}})
				})
			}
		}
	}
}

// seedable is the suite's fixture with what the audit seeds.
func seedable(f *connectortest.Fixture, s *fakejira.Site, kind string) *connectortest.Fixture {
	if kind == jira.KindComment {
		f.Put = func(fields intent.Fields, stamp string) error {
			body, ok := fields["body"].(string)
			if !ok {
				return errors.New("a comment has a body")
			}
			mark := map[string]any{"reference": fields["reference"], "stamp": stamp}
			return s.SeedComment("OPS-1", body, map[string]any{"readback": mark})
		}
		return f
	}
	f.Alter = func(key, fields intent.Fields) error {
		for _, r := range f.Records(key) {
			s.Edit(r.Ref, asJira(s, r.Ref, key, fields))
		}
		return nil
	}
	return f
}

// asJira writes fields as Jira keeps them: the labels beside those of ours.
func asJira(s *fakejira.Site, ref string, key, fields intent.Fields) map[string]any {
	all := map[string]any{}
	for name, v := range fields {
		switch name {
		case "priority":
			all[name] = map[string]any{"name": v}
		case "labels":
			labels := append([]any{}, v.([]any)...)
			for _, i := range s.Issues() {
				old, _ := i.Fields["labels"].([]any)
				for _, l := range old {
					if i.ID == ref && (l == key["reference"] || strings.HasPrefix(l.(string), "rb-")) {
						labels = append(labels, l)
					}
				}
			}
			all[name] = labels
		default:
			all[name] = v
		}
	}
	return all
}
