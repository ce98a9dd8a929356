package rest_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/verifytest"
	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/verify"
)

const externalKey, externalStamp = "Readback_Key__c", "Readback_Stamp__c"

// salesforce is an org whose two fields are unique, or are not.
func salesforce(unique bool) (api, *fakerest.Salesforce) {
	s := fakerest.NewSalesforce("consumer", "consumer-secret", "Account", map[string]fakerest.SalesforceField{
		externalKey:     {ExternalID: true, Unique: unique},
		externalStamp:   {ExternalID: true, Unique: unique},
		"StartDateTime": {Type: "datetime"}, "Score__c": {Type: "double"},
	})
	a := api{
		unlisted: "the declaration has none: FIELDS(ALL) shows 200 records at the most",
		fake:     s.Fake, name: "salesforce-objects", kind: "record", collection: "Account",
		options: rest.Options{
			Parameters: map[string]string{"domain": "acme", "object": "Account", "client_id": "consumer"},
			Secrets:    secrets(map[string]string{"client_secret": "consumer-secret"}),
		},
		intent: account, near: nearAccounts, record: accountRecord,
		traits: traits{lacks: map[string]string{
			string(fault.LaggingRead): "SOQL asks the transactional store, which does not lag",
			string(fault.Throttled):   "it says that the quota is used up and not for how long; see TestSalesforceAnswers",
		}},
	}
	if unique {
		a.lacks[string(fault.DuplicateBehindOurBack)] = "the key is unique"
	}
	a.put = func(f intent.Fields, stamp string) error { return putAccount(s, unique, f, stamp) }
	a.alter = func(o fakerest.Object, f intent.Fields) error {
		s.Edit("Account", o.Text("Id"), func(o fakerest.Object) { setAccount(o, f) })
		return nil
	}
	return a, s
}

func account(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: "record", Write: w, Key: intent.Fields{externalKey: fmt.Sprintf("acc-%03d", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{"Name": fmt.Sprintf("Acme %d", n), "Phone": fmt.Sprintf("+49 30 %d", n), "Rating": "Hot"}
		in.Payload = intent.Fields{"Description": "First line\nsecond"}
	case intent.Update:
		in.Expect = intent.Fields{"Name": "Acme GmbH", "Rating": "Cold"}
	case intent.Upsert:
		in.Expect = intent.Fields{"Name": "Acme SE", "Phone": "+49 30 3"}
	}
	return in
}

func nearAccounts(n int) []intent.WriteIntent {
	id := fmt.Sprintf("acc-%03d", n)
	return connectortest.Near(account, externalKey, id+"0", id[:len(id)-1], "x"+id, id+".inc", strings.Replace(id, "-", "_", 1), strings.Replace(id, "-", ".", 1))
}

// accountRecord shows a record as the declaration should.
func accountRecord(o fakerest.Object) (connectors.Record, bool) {
	if o == nil {
		return connectors.Record{}, false
	}
	return connectors.Record{Ref: o.Text("Id"), Version: o.Text("SystemModstamp"), Stamp: o.Text(externalStamp), Fields: intent.Fields(o.Shown())}, true
}

func putAccount(s *fakerest.Salesforce, unique bool, f intent.Fields, stamp string) error {
	for _, o := range s.Now("Account") {
		if unique && (o[externalKey] == f[externalKey] || (stamp != "" && o.Text(externalStamp) == stamp)) {
			return errors.New("the key and the stamp are unique")
		}
	}
	s.Put("Account", func(now fakerest.View) (string, fakerest.Object) {
		o := fakerest.Object{"Id": fmt.Sprintf("001Xy%010dIAA", now.Next())}
		setAccount(o, f)
		if stamp != "" {
			o[externalStamp] = stamp
		}
		return o.Text("Id"), o
	})
	return nil
}

func setAccount(o fakerest.Object, f intent.Fields) {
	for name, v := range f {
		o[name] = v
	}
	o["SystemModstamp"] = time.Now().Add(time.Second).UTC().Format("2006-01-02T15:04:05.000-0700")
}

func salesforceSuite() connectortest.Harness {
	return suite(func() api { a, _ := salesforce(true); return a }, intent.Create, intent.Update, intent.Upsert, intent.Delete)
}

func TestSalesforce(t *testing.T) { connectortest.Run(t, salesforceSuite()) }

func TestSalesforceDeclared(t *testing.T) {
	a, _ := salesforce(true)
	declared(t, a)
}

func TestSalesforceAudit(t *testing.T) {
	audit(t, salesforceSuite(),
		verifytest.Difference{
			Name: "trimmed", Reason: "text loses blanks at its ends",
			Stored: func(w *intent.WriteIntent) { w.Expect["Name"] = "  " + w.Expect["Name"].(string) + " " },
		},
		verifytest.Difference{
			Name: "empty", Reason: "empty text is null",
			Stored:   func(w *intent.WriteIntent) { w.Expect["Phone"] = "" },
			Declared: func(w *intent.WriteIntent) { w.Expect["Phone"] = "" },
		},
		verifytest.Difference{
			Name: "time", Reason: "times come back in UTC, in a form of their own",
			Stored:   func(w *intent.WriteIntent) { w.Expect["StartDateTime"] = "2030-06-01T12:00:00+02:00" },
			Declared: func(w *intent.WriteIntent) { w.Expect["StartDateTime"] = "2030-06-01T12:00:00+02:00" },
		},
		verifytest.Difference{
			Name: "trigger", Reason: "an assignment rule hands the record to another actor", Write: intent.Update,
			After: func(f *connectortest.Fixture, w intent.WriteIntent) {
				if err := f.Alter(w.Key, intent.Fields{"OwnerId": "005Ws0000000009IAA"}); err != nil {
					panic(err)
				}
			},
		},
	)
}

func TestSalesforceAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		kind     fault.Kind
		how      string
		want     connectors.Fate
		conflict bool
		reason   string
	}{
		"quota":      {fault.Throttled, "REQUEST_LIMIT_EXCEEDED", connectors.FateThrottled, false, "a 403 that is no lack of permission"},
		"locked row": {fault.Throttled, "UNABLE_TO_LOCK_ROW", connectors.FateThrottled, false, "a 400 that goes away"},
		"forbidden":  {fault.Refused, "403", connectors.FateRefused, false, "a 403 that is one"},
		"invalid":    {fault.Refused, "", connectors.FateRefused, false, "a validation rule"},
		"session":    {fault.Refused, "INVALID_SESSION_ID", connectors.FateLogin, false, "the session ended"},
		"duplicates": {fault.Refused, "DUPLICATES_DETECTED", connectors.FateRefused, true, "a duplicate rule"},
		"lost":       {fault.LostAnswer, "", connectors.FateUnknown, false, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert} {
				a, s := salesforce(true)
				con, _ := a.connector(t)
				if w == intent.Update {
					if _, err := a.send(t, con, account(intent.Create, 1), 1); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Set(fault.Fault{Kind: c.kind, How: c.how}.Once()); err != nil {
					t.Fatal(err)
				}
				_, err := a.send(t, con, account(w, 1), 1)
				checkFate(t, err, c.want, 0, c.conflict, string(w)+": "+c.reason)
			}
		})
	}
}

// TestSalesforceTaken: the owner of a key is seen before and after, ignoring letter case, and a
// create changes nothing of another record.
func TestSalesforceTaken(t *testing.T) {
	for name, theirs := range map[string]string{"same": "acc-001", "other letters": "ACC-001"} {
		t.Run(name, func(t *testing.T) {
			a, s := salesforce(true)
			con, _ := a.connector(t)
			if err := a.put(intent.Fields{externalKey: theirs, "Name": "Theirs"}, ""); err != nil {
				t.Fatal(err)
			}
			in := whole(a, account(intent.Create, 1))
			o, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
			if err != nil || len(o.Records) != 1 {
				t.Errorf("%+v, %v; want their record, since the destination takes it for the same", o.Records, err)
			}
			_, err = con.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1, Before: &connectors.Observation{}})
			checkFate(t, err, connectors.FateRefused, 0, true, "the field is unique")
			if rows := s.Now("Account"); len(rows) != 1 || rows[0]["Name"] != "Theirs" {
				t.Errorf("%v, want theirs alone, as it was", rows)
			}
		})
	}
}

// TestSalesforceNotUnique: without Unique two records can have one key. The probe reports so,
// before anything is written. If that was overlooked, a read shows both, and an upsert changes
// neither.
func TestSalesforceNotUnique(t *testing.T) {
	a, s := salesforce(false)
	con, p := a.connector(t)
	for _, w := range []intent.WriteType{intent.Create, intent.Upsert} {
		_, err := con.Write(t.Context(), connectors.Request{Intent: whole(a, account(w, 1)), Attempt: 1, Stamp: "s", Before: &connectors.Observation{}})
		checkFate(t, err, connectors.FateNotSent, 0, false, "a repeat would make another one")
	}
	con = withoutFirstProbe(t, a)
	if err := con.Probe(t.Context()); err == nil {
		t.Error("the probe is content with an External ID that is not Unique")
	}
	in := whole(a, account(intent.Create, 1))
	for range 2 {
		if _, err := con.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1, Before: &connectors.Observation{}}); err != nil {
			t.Fatal(err)
		}
	}
	o, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
	if err != nil || len(o.Records) != 2 {
		t.Fatalf("%+v, %v; want both", o.Records, err)
	}
	c := verify.Case{Intent: in, Profile: p, Stamp: in.Stamp(), Before: &connectors.Observation{Strength: connectors.Strong}, Seen: o}
	if j := verify.Judge(c); j.Verdict != verify.Duplicated {
		t.Errorf("the verdict is %s, want duplicated", j.Verdict)
	}
	effects := len(s.Effects())
	up := whole(a, account(intent.Upsert, 1))
	_, err = con.Write(t.Context(), connectors.Request{Intent: up, Stamp: up.Stamp(), Attempt: 1, Before: &o})
	checkFate(t, err, connectors.FateRefused, 0, true, "300: several records have the key")
	if len(s.Effects()) != effects {
		t.Error("the upsert changed something")
	}
}

// withoutFirstProbe connects as if the fields had been unique at the probe.
func withoutFirstProbe(t *testing.T, a api) *rest.Connector {
	t.Helper()
	text, err := rest.ShippedText(a.name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := rest.Load([]byte(strings.Replace(string(text), "\n  first: true", "", 1)), a.name)
	if err != nil {
		t.Fatal(err)
	}
	o := a.options
	o.Transport = a.fake.Transport()
	con, err := rest.New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return con
}

// TestSalesforceKeys: a value that a query would have to quote is turned down
// before anything leaves, and one with a dot is found where it is.
func TestSalesforceKeys(t *testing.T) {
	for _, key := range []string{"a' OR Name != '", `a\`, "a%", "a b", "a/b", "a\nb", "é", strings.Repeat("k", 256)} {
		a, s := salesforce(true)
		con, _ := a.connector(t)
		in := account(intent.Create, 1)
		in.Key = intent.Fields{externalKey: key}
		r := whole(a, in)
		_, err := con.Write(t.Context(), connectors.Request{Intent: r, Stamp: r.Stamp(), Attempt: 1, Before: &connectors.Observation{}})
		checkFate(t, err, connectors.FateNotSent, 0, false, key)
		if o, err := con.Read(t.Context(), a.query(in, "")); err == nil {
			t.Errorf("%q: the read says %d records, want an error", key, len(o.Records))
		}
		if writes, reads := s.Count(); writes+reads > 0 {
			t.Errorf("%q: %d requests arrived", key, writes+reads)
		}
	}
	a, s := salesforce(true)
	con, p := a.connector(t)
	in := account(intent.Create, 1)
	in.Key = intent.Fields{externalKey: "ada@mail.inc"}
	if v := judged(t, a, con, p, in); v != verify.Verified {
		t.Errorf("a create under a key with a dot is %s, want verified", v)
	}
	up := account(intent.Upsert, 2)
	up.Key = intent.Fields{externalKey: "grace@mail.inc"}
	_, err := a.send(t, con, up, 1)
	checkFate(t, err, connectors.FateRefused, 0, false, "in a path it passes for a file, and nothing is applied")
	if n := len(s.Effects()); n != 1 {
		t.Errorf("%d effects, want that of the create", n)
	}
}

// TestSalesforceHidden: an object that may not be seen has no absent records.
func TestSalesforceHidden(t *testing.T) {
	a, s := salesforce(true)
	con, _ := a.connector(t)
	if _, err := a.send(t, con, account(intent.Create, 1), 1); err != nil {
		t.Fatal(err)
	}
	s.Hide(true)
	if o, err := con.Read(t.Context(), a.query(account(intent.Create, 1), "")); err == nil {
		t.Errorf("an object that is hidden says %d records, want an error", len(o.Records))
	}
}

// TestSalesforcePages: an answer of several pages is read to its end.
func TestSalesforcePages(t *testing.T) {
	a, s := salesforce(false)
	con, _ := a.connector(t)
	s.SetPage(2)
	for n := range 5 {
		if err := a.put(intent.Fields{externalKey: "acc-001", "Name": fmt.Sprint(n)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if o, err := con.Read(t.Context(), a.query(account(intent.Create, 1), "")); err != nil || len(o.Records) != 5 {
		t.Errorf("%d records, %v; want 5", len(o.Records), err)
	}
}

// TestSalesforceTriggers: what the org makes of a write is seen as it is.
func TestSalesforceTriggers(t *testing.T) {
	for name, c := range map[string]struct {
		trigger func(o fakerest.Object)
		want    verify.Verdict
		reason  string
	}{
		"owner":    {func(o fakerest.Object) { o["OwnerId"] = "005Ws0000000009IAA" }, verify.Verified, "who owns it changes by itself"},
		"other":    {func(o fakerest.Object) { o["Description"] = "Changed" }, verify.Collateral, "a field that the intent does not mention"},
		"expected": {func(o fakerest.Object) { o["Name"] = "ACME" }, verify.Mismatched, "a field that was asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := salesforce(true)
			con, p := a.connector(t)
			if _, err := a.send(t, con, account(intent.Create, 1), 1); err != nil {
				t.Fatal(err)
			}
			s.Trigger(c.trigger)
			if v := judged(t, a, con, p, account(intent.Update, 1)); v != c.want {
				t.Errorf("the update is %s, want %s: %s", v, c.want, c.reason)
			}
		})
	}
}

// TestSalesforceRequests: only SOQL is used, after one read of the object, and updates go by id.
func TestSalesforceRequests(t *testing.T) {
	a, s := salesforce(true)
	con, p := a.connector(t)
	for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
		if _, err := a.send(t, con, account(w, 1), 1); err != nil {
			t.Fatal(err)
		}
	}
	described := 0
	for _, call := range s.Calls() {
		path, err := url.PathUnescape(call.Path)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case path == "/services/data/v62.0/sobjects/Account/describe" && described == 0:
			described++
		case !call.Write && !strings.HasPrefix(path, "/services/data/v62.0/query?q=SELECT"):
			t.Errorf("%s %s was read", call.Method, path)
		case strings.Contains(call.Body, externalKey) && call.Method == "PATCH":
			t.Errorf("%s %s has the key in its body", call.Method, path)
		}
	}
	if slices.Contains(p.Unique, intent.Update) || len(p.Conditional) > 0 {
		t.Errorf("unique %v, conditional %v: want no update among them", p.Unique, p.Conditional)
	}
}
