package rest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestTraps creates a record in systems whose answers have been read wrongly:
// fields in an order of chance, a 404 without a body, a search that also finds what quotes the key.
// A lost answer makes no second one, and a refusal is one.
func TestTraps(t *testing.T) {
	for name, trap := range map[string]struct {
		token, kind, collection string
		open                    func() *fakerest.Fake
	}{
		"rt": {"rt-token", "ticket", fakerest.RTTickets, func() *fakerest.Fake { return fakerest.NewRT(fakerest.RTOptions{Seed: 1}).Fake }},
		"redmine": {"redmine-key", "issue", fakerest.RedmineIssues, func() *fakerest.Fake {
			return fakerest.NewRedmine(fakerest.RedmineOptions{Fields: []string{"Order", "Amount"}}).Fake
		}},
		"gitea": {"gitea-token", "issue", fakerest.GiteaIssues, func() *fakerest.Fake {
			g := fakerest.NewGitea(fakerest.GiteaOptions{})
			g.Seed("Another issue", "See below.", "This is about order-1, see there.", nil)
			g.Seed("A third one", "It quotes order-1.", "", nil)
			return g.Fake
		}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "traps", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			d, err := rest.Load(text, name+".yaml")
			if err != nil {
				t.Fatal(err)
			}
			for kind, want := range map[fault.Kind]ledger.Status{"": ledger.Verified, fault.LostAnswer: ledger.Verified, fault.DroppedBefore: ledger.Verified, fault.Refused: ledger.NotApplied} {
				synctest.Test(t, func(t *testing.T) {
					f := trap.open()
					con, err := rest.New(d, rest.Options{Secrets: secrets(map[string]string{"token": trap.token}), Transport: f.Transport()})
					if err != nil {
						t.Fatal(err)
					}
					if err := con.Probe(t.Context()); err != nil {
						t.Fatal(err)
					}
					var reg connectors.Registry
					if err := reg.Register(name, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
						t.Fatal(err)
					}
					e := engine.New(ledger.NewMemory(), &reg, nil)
					defer e.Close()
					if kind != "" {
						if err := f.Set(fault.Fault{Kind: kind, Times: 1}); err != nil {
							t.Fatal(err)
						}
					}
					before := len(f.Now(trap.collection))
					w := intent.WriteIntent{Tenant: "acme", Workflow: "traps", Step: "1", Tool: "create", Destination: name, Kind: trap.kind, Write: intent.Create,
						Key: intent.Fields{"order": "order-1"}, Expect: intent.Fields{"subject": "Printer", "amount": "12.50"}}
					if _, err := e.Do(t.Context(), w); err != nil {
						t.Fatal(err)
					}
					for range 8 {
						time.Sleep(20 * time.Minute)
						if _, err := e.Resume(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					out, err := e.Do(t.Context(), w)
					if err != nil {
						t.Fatal(err)
					}
					made, wanted := len(f.Now(trap.collection))-before, 0
					if want == ledger.Verified {
						wanted = 1
					}
					if out.Status != want || made != wanted {
						t.Errorf("after %q the write is %s (%s) and made %d records; want %s and %d", kind, out.Status, out.Text, made, want, wanted)
					}
				})
			}
		})
	}
}

// TestTwoUnderOneRef has a list without pages that shows two records with the ref of one: they are two.
func TestTwoUnderOneRef(t *testing.T) {
	s := fakerest.NewSheets(fakerest.SheetsOptions{})
	for range 2 {
		s.Seed(-1, []any{"order-1", "", "Ada"}, fakerest.Object{"metadataId": 1, "metadataKey": "readback", "metadataValue": "order-1", "visibility": "DOCUMENT"})
	}
	con, err := rest.New(shippedDeclaration(t, "google-sheets-rows"), rest.Options{Parameters: map[string]string{"spreadsheet": "sheet1"},
		Secrets: secrets(map[string]string{"token": "ya29.readback"}), Transport: s.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	o, err := con.Read(t.Context(), connectors.Query{Intent: intent.WriteIntent{Tenant: "acme", Destination: "google-sheets-rows", Kind: "row", Write: intent.Create,
		Key: intent.Fields{"A": "order-1"}, Expect: intent.Fields{"C": "Ada"}}})
	if err != nil || len(o.Records) != 2 {
		t.Errorf("%d records, %v; want two", len(o.Records), err)
	}
}

// TestPickedOfSeveralValues reads a custom field with two values where one is declared: an error.
func TestPickedOfSeveralValues(t *testing.T) {
	text, err := os.ReadFile("testdata/traps/rt.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := rest.Load(text, "rt.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := fakerest.NewRT(fakerest.RTOptions{}).Fake
	f.Put(fakerest.RTTickets, func(fakerest.View) (string, fakerest.Object) {
		return "7", fakerest.Object{"id": 7, "Subject": "Printer", "Status": "new", "CustomFields": []any{map[string]any{"id": "2", "name": "Order", "values": []any{"order-1", "order-2"}}}}
	})
	con, err := rest.New(d, rest.Options{Secrets: secrets(map[string]string{"token": "rt-token"}), Transport: f.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := con.Read(t.Context(), connectors.Query{Intent: intent.WriteIntent{Tenant: "acme", Destination: "rt", Kind: "ticket", Write: intent.Create,
		Key: intent.Fields{"order": "order-1"}}}); err == nil || !strings.Contains(err.Error(), "has 2 values") {
		t.Errorf("%+v, %v; want an error", o, err)
	}
}
