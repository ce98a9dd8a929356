package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// renamed is the API of an account that calls some members otherwise than the fake does. What an account
// does not have under its own name it does not have: the fake's name is unknown to it.
type renamed struct {
	names map[string]string // the account's, by the fake's
	to    http.RoundTripper
}

var apiWord = regexp.MustCompile(`[A-Za-z0-9_]+`)

// toFake and ofFake translate names, each as it is quoted.
func (a renamed) toFake(quote func(string) string) *strings.Replacer {
	var pairs []string
	for _, fake := range slices.Sorted(maps.Keys(a.names)) {
		pairs = append(pairs, quote(a.names[fake]), quote(fake), quote(fake), quote("not_"+fake))
	}
	return strings.NewReplacer(pairs...)
}

func (a renamed) ofFake() *strings.Replacer {
	var pairs []string
	for fake, own := range a.names {
		pairs = append(pairs, inJSON(fake), inJSON(own))
	}
	return strings.NewReplacer(pairs...)
}

func inJSON(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// word translates a name that is a word of an address.
func (a renamed) word(s string) string {
	for fake, own := range a.names {
		switch s {
		case own:
			return fake
		case fake:
			return "not_" + fake
		}
	}
	return s
}

func (a renamed) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(a.names) == 0 {
		return a.to.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	segments := strings.Split(r.URL.Path, "/")
	for i := range segments {
		segments[i] = a.word(segments[i])
	}
	if path := strings.Join(segments, "/"); path != r.URL.Path {
		r.URL.Path, r.URL.RawPath = path, ""
	}
	query := r.URL.Query()
	for _, all := range query {
		for i := range all {
			all[i] = apiWord.ReplaceAllStringFunc(all[i], a.word)
		}
	}
	r.URL.RawQuery = query.Encode()
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text := a.toFake(inJSON).Replace(string(body))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
	answer, err := a.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	var rest io.Reader = strings.NewReader(a.ofFake().Replace(string(body)))
	if err != nil {
		rest = io.MultiReader(rest, failing{err})
	}
	answer.Body, answer.ContentLength = io.NopCloser(rest), -1
	return answer, nil
}

// failing is a body that ends as it did.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// otherNames are accounts of the shipped declarations that call their members otherwise.
var otherNames = map[string]struct {
	parameters map[string]string
	names      map[string]string
}{
	"salesforce-objects": {map[string]string{"key_field": "Order_Ref__c", "stamp_field": "Sent_By__c"},
		map[string]string{"Readback_Key__c": "Order_Ref__c", "Readback_Stamp__c": "Sent_By__c"}},
	"hubspot-contacts": {map[string]string{"key_property": "order_ref", "stamp_property": "sent_by"},
		map[string]string{"readback_key": "order_ref", "readback_stamp": "sent_by"}},
	"hubspot-objects": {map[string]string{"key_property": "order_ref", "stamp_property": "sent_by"},
		map[string]string{"readback_key": "order_ref", "readback_stamp": "sent_by"}},
	"notion-pages": {map[string]string{"key_property": `Ada's "ref" [*]`, "stamp_property": "Nachweis für uns", "title_property": "Überschrift"},
		map[string]string{"Intent key": `Ada's "ref" [*]`, "Stamp": "Nachweis für uns", "Name": "Überschrift"}},
	"airtable-records":       {map[string]string{"key_column": "Order_Ref", "stamp_column": "sent-by"}, map[string]string{"Key": "Order_Ref", "Readback": "sent-by"}},
	"google-calendar-events": {map[string]string{"stamp_property": "sent-by"}, map[string]string{"readback": "sent-by"}},
}

// otherwise is an API whose account calls its members otherwise.
func otherwise(a api) api {
	of := otherNames[a.name]
	a.options.Parameters, a.names = maps.Clone(a.options.Parameters), of.names
	if a.options.Parameters == nil {
		a.options.Parameters = map[string]string{}
	}
	maps.Copy(a.options.Parameters, of.parameters)
	return a
}

// TestOtherNames: with other names than those of the declaration the connectors are the same.
func TestOtherNames(t *testing.T) {
	for name, tt := range map[string]struct {
		open   func() api
		writes []intent.WriteType
	}{
		"salesforce":            {func() api { a, _ := salesforce(true); return a }, []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}},
		"hubspot contact":       {func() api { a, _ := hubSpot("contact"); return a }, []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}},
		"hubspot keyed-contact": {func() api { a, _ := hubSpot("keyed-contact"); return a }, []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}},
		"notion":                {func() api { a, _ := notion(fakerest.NotionOptions{}); return a }, []intent.WriteType{intent.Create, intent.Update, intent.Delete}},
		"calendar":              {func() api { a, _ := calendar(); return a }, []intent.WriteType{intent.Create, intent.Update, intent.Delete}},
	} {
		open := func() api { return otherwise(tt.open()) }
		t.Run(name, func(t *testing.T) {
			connectortest.Run(t, suite(open, tt.writes...))
			con, _ := open().connector(t)
			if err := con.Probe(t.Context()); err != nil {
				t.Errorf("the probe fails where the account has what it names: %v", err)
			}
		})
	}
	for _, name := range []string{"hubspot-objects/deal", "hubspot-objects/company", "hubspot-objects/note", "airtable-records/record"} {
		d := destinations[name]
		declaration, _, _ := strings.Cut(name, "/")
		of := otherNames[declaration]
		parameters := maps.Clone(d.parameters)
		if parameters == nil {
			parameters = map[string]string{}
		}
		maps.Copy(parameters, of.parameters)
		d.parameters, d.names = parameters, of.names
		t.Run("campaign of "+name, func(t *testing.T) {
			var sum tally
			d.campaigns(t, name, &sum)
		})
	}
}

// TestWrongNames: an account that has not what its parameters name gets a refusal that says so, and never a
// second record, also where the answer of the create is lost.
func TestWrongNames(t *testing.T) {
	sf := func() api { a, _ := salesforce(true); return a }
	hs := func(kind string) func() api { return func() api { a, _ := hubSpot(kind); return a } }
	pages := func() api { a, _ := notion(fakerest.NotionOptions{}); return a }
	events := func() api { a, _ := calendar(); return a }
	table := func() api {
		d := destinations["airtable-records/record"]
		return d.api("airtable-records", d.open())
	}
	for name, tt := range map[string]struct {
		reason string
		open   func() api
		names  map[string]string
		says   string
		probed bool // the probe says it as well
		sent   bool // a create is sent
		made   int  // how many records it makes
	}{
		"salesforce, no key":     {"there is no such column", sf, map[string]string{"key_field": "Gone__c"}, "@.name == 'Gone__c'", true, false, 0},
		"salesforce, another":    {"it is no external id", sf, map[string]string{"stamp_field": "Phone"}, "@.name == 'Phone'", true, false, 0},
		"salesforce, twice":      {"one value would be lost", sf, map[string]string{"stamp_field": "Readback_Key__c"}, "the parameters key_field and stamp_field both name", false, false, 0},
		"hubspot, no key":        {"there is no such property", hs("keyed-contact"), map[string]string{"key_property": "gone"}, `Property \"gone\" does not exist`, false, true, 0},
		"hubspot, no stamp":      {"there is no such property", hs("contact"), map[string]string{"stamp_property": "gone"}, `Property \"gone\" does not exist`, true, true, 0},
		"hubspot, not unique":    {"nothing keeps a second one away", hs("keyed-contact"), map[string]string{"key_property": "website", "stamp_property": "company"}, `read "get-by-key": the destination refused it: 400`, true, true, 1},
		"hubspot, the address":   {"one value would be lost", hs("contact"), map[string]string{"stamp_property": "email"}, `the parameter stamp_property names "email"`, false, false, 0},
		"notion, no key":         {"there is no such property", pages, map[string]string{"key_property": "Gone"}, `read "query": the destination refused it: 400`, true, false, 0},
		"notion, no stamp":       {"there is no such property", pages, map[string]string{"stamp_property": "Gone"}, "what must hold of $.properties['Gone'].rich_text does not", true, false, 0},
		"notion, no title":       {"there is no such property", pages, map[string]string{"title_property": "Gone"}, "Gone is not a property that exists", false, true, 0},
		"notion, another":        {"one value would be lost", pages, map[string]string{"stamp_property": "Notes"}, `the parameter stamp_property names "Notes"`, false, false, 0},
		"notion, a blank at end": {"no property has it", pages, map[string]string{"stamp_property": "Stamp "}, "Parameters.stamp_property does not match", false, false, 0},
		"airtable, no key":       {"there is no such column", table, map[string]string{"key_column": "Gone"}, `read "formula": the destination refused it: 422`, true, false, 0},
		"airtable, no stamp":     {"there is no such column", table, map[string]string{"stamp_column": "Gone"}, "the probe: the destination refused it: 422", true, false, 0},
		"airtable, the name":     {"the name is the stamp", table, map[string]string{"key_column": "Readback"}, "the parameters stamp_column and key_column both name", false, false, 0},
		"calendar, none":         {"everything would be the stamp", events, map[string]string{"stamp_property": ""}, "Parameters.stamp_property is missing", false, false, 0},
	} {
		for _, lost := range []bool{false, true} {
			if lost && !tt.sent {
				continue
			}
			t.Run(fmt.Sprintf("%s, lost %t", name, lost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := tt.open()
					o := a.options
					o.Parameters, o.Transport = map[string]string{}, a.fake.Transport()
					maps.Copy(o.Parameters, a.options.Parameters)
					maps.Copy(o.Parameters, tt.names)
					con, err := rest.New(shippedDeclaration(t, a.name), o)
					if err != nil {
						if !strings.Contains(err.Error(), tt.says) {
							t.Errorf("%v; want %s: %s", err, tt.says, tt.reason)
						}
						return
					}
					if err := con.Probe(t.Context()); (err != nil) != tt.probed {
						t.Errorf("the probe: %v; %s", err, tt.reason)
					}
					var reg connectors.Registry
					if err := reg.Register(a.name, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
						t.Fatal(err)
					}
					e := engine.New(ledger.NewMemory(), &reg, nil)
					t.Cleanup(e.Close)
					if lost {
						if err := a.fake.Set(fault.Fault{Kind: fault.LostAnswer, Times: 1}); err != nil {
							t.Fatal(err)
						}
					}
					in := whole(a, a.intent(intent.Create, 1))
					_, err = e.Do(t.Context(), in)
					for range 20 { // an end, and long enough for a second send
						if err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Hour)
						_, err = e.Resume(t.Context())
					}
					out, err := e.Do(t.Context(), in) // the recorded outcome
					if err != nil {
						t.Fatal(err)
					}
					said := out.Text
					if out.Refusal != nil {
						said += out.Refusal.Message
					}
					if !lost && !strings.Contains(said, tt.says) {
						t.Errorf("%s: %s; want %s: %s", out.Status, said, tt.says, tt.reason)
					}
					records := a.fake.Now(a.collection)
					if len(records) != tt.made || out.Status != ledger.StatusReview && (out.Status != ledger.NotApplied || tt.made > 0) {
						t.Errorf("%s: %s; %d records, want %d: %s", out.Status, out.Text, len(records), tt.made, tt.reason)
					}
				})
			})
		}
	}
}

// TestNothingUnderAWrongName: that nothing is found under another field than the one that was meant is no
// absence. A record that is there is not called deleted. The probe, which says so, is made once.
func TestNothingUnderAWrongName(t *testing.T) {
	for name, tt := range map[string]struct {
		key    string // the field that is named
		names  map[string]string
		probes int
		err    bool
	}{
		"the wrong one": {"Phone", nil, 3, true},
		"another":       {"Order_Ref__c", otherNames["salesforce-objects"].names, 1, false},
		"the default":   {externalKey, nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := salesforce(true)
				if err := a.put(intent.Fields{externalKey: "acc-001", "Name": "Acme"}, ""); err != nil {
					t.Fatal(err)
				}
				a.names = tt.names
				a.options.Parameters = maps.Clone(a.options.Parameters)
				a.options.Parameters["key_field"] = tt.key
				if tt.names != nil {
					a.options.Parameters["stamp_field"] = tt.names[externalStamp]
				}
				con, _ := a.connector(t)
				for n := range 3 {
					o, err := con.Read(t.Context(), a.query(a.intent(intent.Delete, 2), ""))
					if (err != nil) != tt.err || len(o.Records) > 0 {
						t.Errorf("read %d: %v, %v", n, o.Records, err)
					}
				}
				probes := 0
				for _, call := range a.fake.Calls() {
					if strings.HasSuffix(call.Path, "/describe") {
						probes++
					}
				}
				if probes != tt.probes {
					t.Errorf("%d probes, want %d", probes, tt.probes)
				}
				var reg connectors.Registry
				if err := reg.Register(a.name, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
					t.Fatal(err)
				}
				e := engine.New(ledger.NewMemory(), &reg, nil)
				t.Cleanup(e.Close)
				out, err := e.Do(t.Context(), whole(a, a.intent(intent.Delete, 1)))
				if err != nil {
					t.Fatal(err)
				}
				if gone := len(a.fake.Now(a.collection)) == 0; gone == tt.err || (out.Status == ledger.Verified) != gone {
					t.Errorf("the delete is %s: %s; the record is gone: %t", out.Status, out.Text, gone)
				}
			})
		})
	}
}
