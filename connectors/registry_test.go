package connectors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

type nothing struct{}

func (nothing) Write(context.Context, connectors.Request) (connectors.Receipt, error) {
	return connectors.Receipt{}, nil
}

func (nothing) Read(context.Context, connectors.Query) (connectors.Observation, error) {
	return connectors.Observation{}, nil
}

func destination(kinds ...string) connectors.Destination {
	d := connectors.Destination{Connector: nothing{}, Profiles: map[string]connectors.Profile{}}
	for _, k := range kinds {
		d.Profiles[k] = connectors.Profile{Stamped: true}
	}
	return d
}

func TestRegister(t *testing.T) {
	var r connectors.Registry
	if err := r.Register("crm", destination("contact", "deal")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		name  string
		d     connectors.Destination
		names string
	}{
		"no name":      {"", destination("contact"), "name is empty"},
		"no connector": {"x", connectors.Destination{Profiles: destination("contact").Profiles}, "no connector"},
		"no profile":   {"x", connectors.Destination{Connector: nothing{}}, "no profile"},
		"twice":        {"crm", destination("contact"), "registered already"},
		"a way that there is not": {"x", connectors.Destination{Connector: nothing{}, Profiles: map[string]connectors.Profile{
			"contact": {Reads: []connectors.ReadPath{{Path: "get", By: "ref", Independent: "very"}}}}}, `independent by "very"`},
	} {
		if err := r.Register(c.name, c.d); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.names)
		}
	}
	if got := r.Names(); !slices.Equal(got, []string{"crm"}) {
		t.Errorf("names %q, want only what was registered", got)
	}
}

func TestLookup(t *testing.T) {
	var r connectors.Registry
	if _, _, err := r.Lookup("crm", "contact"); !errors.Is(err, connectors.ErrUnknownDestination) || !strings.Contains(err.Error(), "registered: none") {
		t.Errorf("of nothing: %v", err)
	}
	given := destination("contact", "deal")
	for _, name := range []string{"shop", "crm"} {
		if err := r.Register(name, given); err != nil {
			t.Fatal(err)
		}
	}
	c, p, err := r.Lookup("crm", "deal")
	if err != nil || c != (nothing{}) || !p.Stamped || p.Destination != "crm" || p.Kind != "deal" {
		t.Errorf("%v, %+v, %v; want the profile with its names", c, p, err)
	}
	for name, c := range map[string]struct{ destination, kind, says string }{
		"destination": {"erp", "deal", "/destination: unknown destination \"erp\"; registered: crm, shop"},
		"kind":        {"crm", "order", "/kind: unknown destination: \"crm\" has no kind \"order\"; it has: contact, deal"},
		"letter case": {"CRM", "deal", "/destination: "},
	} {
		if _, _, err := r.Lookup(c.destination, c.kind); !errors.Is(err, connectors.ErrUnknownDestination) || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	// What the caller does with its map afterwards changes nothing.
	given.Profiles["order"] = connectors.Profile{}
	if _, _, err := r.Lookup("crm", "order"); err == nil {
		t.Error("a profile came in after the registration")
	}
}

func TestRegistryIsSafe(t *testing.T) {
	var r connectors.Registry
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			name := fmt.Sprintf("d%d", n)
			if err := r.Register(name, destination("k")); err != nil {
				t.Error(err)
			}
			if _, _, err := r.Lookup(name, "k"); err != nil {
				t.Error(err)
			}
			r.Names()
		})
	}
	wg.Wait()
	if n := len(r.Names()); n != 16 {
		t.Errorf("%d destinations, want 16", n)
	}
}

func TestBound(t *testing.T) {
	cases := map[string]struct {
		bound    connectors.Bound
		d        time.Duration
		declared bool
		passed   map[time.Duration]bool
		reason   string
	}{
		"undeclared": {connectors.Bound{}, 0, false, map[time.Duration]bool{0: false, 1000 * time.Hour: false}, "no time is long enough"},
		"zero":       {connectors.Within(0), 0, true, map[time.Duration]bool{0: true, -1: false}, "at once is a promise"},
		"a second":   {connectors.Within(time.Second), time.Second, true, map[time.Duration]bool{time.Second - 1: false, time.Second: true, time.Hour: true}, "reached is passed"},
		"negative":   {connectors.Within(-time.Second), 0, true, map[time.Duration]bool{0: true}, "counts as zero"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if d, ok := c.bound.Declared(); d != c.d || ok != c.declared {
				t.Errorf("declared %v, %v; want %v, %v: %s", d, ok, c.d, c.declared, c.reason)
			}
			for elapsed, want := range c.passed {
				if got := c.bound.Passed(elapsed); got != want {
					t.Errorf("passed after %v: %v, want %v: %s", elapsed, got, want, c.reason)
				}
			}
		})
	}
}

func TestRegisterRefusesClaimsOfWriteOnlyDestinations(t *testing.T) {
	creates := []intent.WriteType{intent.Create}
	for name, c := range map[string]struct {
		profile connectors.Profile
		says    string
	}{
		"nothing":     {connectors.Profile{}, ""},
		"its key":     {connectors.Profile{NativeWindow: map[intent.WriteType]time.Duration{intent.Create: time.Hour}, Horizon: connectors.Within(time.Minute), FreshKeys: true, Irreversible: creates, Sends: 3}, ""},
		"stamps":      {connectors.Profile{Stamped: true}, "stamped"},
		"updates":     {connectors.Profile{StampsUpdates: true}, "stamps updates"},
		"unique":      {connectors.Profile{Unique: creates}, "unique"},
		"conditional": {connectors.Profile{Conditional: creates}, "conditional"},
		"undo":        {connectors.Profile{Undo: creates}, "undo"},
		"reads":       {connectors.Profile{Reads: []connectors.ReadPath{{Path: "get"}}}, "reads"},
		"bulk":        {connectors.Profile{BulkLimit: 5}, "bulk limit"},
		"confirm":     {connectors.Profile{ConfirmReads: 2}, "confirm reads"},
		"settle":      {connectors.Profile{Settle: connectors.Within(0)}, "settle time"},
		"recheck":     {connectors.Profile{Recheck: connectors.Within(time.Hour)}, "recheck"},
		"volatile":    {connectors.Profile{Volatile: []string{"/a"}}, "volatile"},
		"compare":     {connectors.Profile{Compare: map[string]intent.Comparison{"/a": nil}}, "compare"},
		"read time":   {connectors.Profile{ReadTimeout: time.Second}, "read timeout"},
		"sends":       {connectors.Profile{Sends: -1}, "sends"},
		"sensitive":   {connectors.Profile{Sensitive: []string{"/a/b"}}, ""}, // it is sealed in what is kept of the intent
		"no pointer":  {connectors.Profile{Sensitive: []string{"a"}}, `sensitive lists "a"`},
		"everything":  {connectors.Profile{Sensitive: []string{""}}, `sensitive lists ""`},
	} {
		t.Run(name, func(t *testing.T) {
			c.profile.WriteOnly = true
			var reg connectors.Registry
			err := reg.Register("hook", connectors.Destination{Connector: nothing{}, Profiles: map[string]connectors.Profile{"notice": c.profile}})
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}
