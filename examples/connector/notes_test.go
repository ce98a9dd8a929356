package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// api is the fake: it makes every note that it is asked for.
type api struct {
	mu  sync.Mutex
	all []intent.Fields
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method == http.MethodGet {
		_ = json.NewEncoder(w).Encode(map[string]any{"notes": a.under(r.FormValue("number"))})
		return
	}
	note := intent.Fields{}
	if err := json.NewDecoder(r.Body).Decode(&note); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(a.add(note))
}

func (a *api) add(note intent.Fields) intent.Fields {
	note = maps.Clone(note)
	note["id"] = fmt.Sprint("n-", len(a.all)+1)
	a.all = append(a.all, note)
	return note
}

func (a *api) under(number any) []intent.Fields {
	found := []intent.Fields{}
	for _, note := range a.all {
		if note["number"] == number {
			found = append(found, note)
		}
	}
	return found
}

// The connector passes the suite. The proxy injects the faults of networks, and those of a store
// that do not need its help.
func TestConnector(t *testing.T) {
	note := func(w intent.WriteType, n int) intent.WriteIntent {
		return intent.WriteIntent{Kind: "note", Write: w, Tool: "note", Key: intent.Fields{"number": fmt.Sprint("N-", n)},
			Expect: intent.Fields{"title": fmt.Sprint("title ", n), "text": "a text"}}
	}
	connectortest.Run(t, connectortest.Harness{
		Writes: []intent.WriteType{intent.Create},
		Lacks: map[string]string{
			string(fault.LaggingRead): "the API has no replicas", string(fault.Rollback): "it takes nothing back",
			connectortest.LacksFindStamp: "it lists by number alone", connectortest.LacksNullField: "no member is null",
			connectortest.LacksChange: "notes are not changed",
		},
		Open: func(t *testing.T) *connectortest.Fixture {
			a := &api{}
			proxy := readbacktest.NewProxy(t, a, readbacktest.Options{Field: "title", Key: func(r *http.Request) string {
				note := intent.Fields{}
				_ = json.NewDecoder(r.Body).Decode(&note)
				return fmt.Sprint(note["number"])
			}})
			d, err := newNotes("http://127.0.0.1:1", func(context.Context) (string, error) { return "secret", nil }, proxy.Transport())
			if err != nil {
				t.Fatal(err)
			}
			records := func(key intent.Fields) (all []connectors.Record) {
				a.mu.Lock()
				defer a.mu.Unlock()
				for _, fields := range a.under(key["number"]) {
					r := connectors.Record{Ref: fields["id"].(string), Fields: maps.Clone(fields)}
					r.Stamp, _ = fields["mark"].(string)
					delete(r.Fields, "mark")
					all = append(all, r)
				}
				return all
			}
			return &connectortest.Fixture{
				Connector: d.Connector, Profile: d.Profiles["note"], Intent: note, Records: records, Sends: proxy.Sends,
				Near: func(n int) []intent.WriteIntent {
					return connectortest.Near(note, "number", fmt.Sprint("n-", n), fmt.Sprint("N-", n, "0"), "N-")
				},
				Set: func(k fault.Kind, how string) error {
					return proxy.Set(fault.Fault{Kind: k, How: how, Times: 1, Delay: 2 * time.Second}) // longer than the suite waits for an answer
				},
				Seed: func(w intent.WriteIntent) {
					a.mu.Lock()
					defer a.mu.Unlock()
					fields := maps.Clone(w.Expect)
					maps.Copy(fields, w.Key)
					a.add(fields)
				},
				Effects: func(key intent.Fields) int { return proxy.Landed(key["number"].(string)) },
			}
		},
	})
}
