package jira_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/readbacktest/fault"
)

var (
	writes      = []intent.WriteType{intent.Create, intent.Update, intent.Delete}
	deployments = map[string]bool{"cloud": false, "datacenter": true}
	kinds       = []string{jira.KindIssue, jira.KindComment}
)

func variants() map[fault.Kind][]string {
	return map[fault.Kind][]string{
		fault.UnreadableRead: fakejira.Unreadable(),
		fault.Throttled:      {"retry-after", "reset"},
	}
}

func lacks(kind string) map[string]string {
	l := map[string]string{
		connectortest.LacksNullField: "Jira shows a field that is not set as null; one that was never written looks the same",
	}
	if kind == jira.KindComment {
		l[string(fault.LaggingRead)] = "comments are listed from the database, there is no index to lag"
	}
	return l
}

// TestConnector runs the suite in fake time, on Cloud and Data Center, with an index that is up
// to date and with one that always lags.
func TestConnector(t *testing.T) {
	for name, dataCenter := range deployments {
		for _, kind := range kinds {
			for lagName, lag := range map[string]time.Duration{"fresh": 0, "behind": 3 * time.Second} {
				if kind == jira.KindComment && lag > 0 {
					continue // no index takes part
				}
				t.Run(name+"/"+kind+"/"+lagName, func(t *testing.T) {
					connectortest.Run(t, connectortest.Harness{
						Open: func(t *testing.T) *connectortest.Fixture {
							s := fakejira.New(fakejira.Options{DataCenter: dataCenter, IndexLag: lag, Projects: []string{"OPS", "DEV"}})
							return fixture(t, s, connect(t, s, nil), kind)
						},
						Writes: writes, Variants: variants(), Lacks: lacks(kind),
					})
				})
			}
		}
	}
}

// TestConnectorOverHTTP runs it once in real time, over a real network.
func TestConnectorOverHTTP(t *testing.T) {
	for name, dataCenter := range deployments {
		for _, kind := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				without, forms := lacks(kind), maps.Clone(variants())
				without[string(fault.Unreachable)] = "a server cannot refuse connections that it has taken"
				// A GET on a kept connection that is cut is made again by
				// net/http, as it may be.
				forms[fault.UnreadableRead] = slices.DeleteFunc(fakejira.Unreadable(), func(how string) bool { return how == "cut" })
				connectortest.Run(t, connectortest.Harness{
					Open: func(t *testing.T) *connectortest.Fixture {
						s := fakejira.New(fakejira.Options{DataCenter: dataCenter, Projects: []string{"OPS", "DEV"}})
						server := httptest.NewServer(s)
						t.Cleanup(server.Close)
						transport := http.DefaultTransport.(*http.Transport).Clone()
						t.Cleanup(transport.CloseIdleConnections)
						c := connect(t, s, func(o *jira.Options) { o.URL, o.Transport = server.URL, transport })
						return fixture(t, s, c, kind)
					},
					Writes: writes, Variants: forms, Lacks: without, RealTime: true,
					// A busy machine must reach the server in this time, or what
					// comes late is never sent.
					SendTimeout: 500 * time.Millisecond,
				})
			})
		}
	}
}
