package rest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestSuccessFactors is about answers of an upsert that are no success, with status 200 or another, and
// about users who left.
func TestSuccessFactors(t *testing.T) {
	const name = "successfactors-users/user"
	d := destinations[name]
	left := fakerest.Object{"userId": "e-000", "username": "e-000@acme", "status": "f", "title": "Analyst"}
	for about, c := range map[string]struct {
		put     fakerest.Object // by another actor
		fault   *fault.Fault
		change  func(w *intent.WriteIntent)
		want    ledger.Status
		reason  string // of a refusal
		sends   int
		title   string
		expired bool
	}{
		"an error, and it was stored": {fault: &fault.Fault{Kind: fault.BadGateway, How: "500", Times: 1}, want: ledger.Verified, sends: 1, title: "Engineer"},
		"an error, and it was not":    {fault: &fault.Fault{Kind: fault.Refused, Times: 1}, want: ledger.Verified, sends: 2, title: "Engineer"},
		"an error each time":          {fault: &fault.Fault{Kind: fault.Refused, Times: 99}, want: ledger.NotApplied, reason: "a rule of the company", sends: 4},
		"a user name is taken":        {put: fakerest.Object{"userId": "e-9", "username": "e-000@acme"}, want: ledger.NotApplied, reason: "DUPLICATE_USERNAME", sends: 1},
		"one who left":                {put: left, want: ledger.NotApplied, reason: "Cannot upsert an inactive user", sends: 1, title: "Analyst"},
		"one who left, by update":     {put: left, change: func(w *intent.WriteIntent) { w.Write, w.Expect = intent.Update, intent.Fields{"title": "Boss"} }, want: ledger.NotApplied, reason: "inactive", sends: 4, title: "Analyst"},
		"an update": {put: fakerest.Object{"userId": "e-000", "username": "e-000@acme", "title": "Analyst", "firstName": "Ada"},
			change: func(w *intent.WriteIntent) { w.Write, w.Expect = intent.Update, intent.Fields{"title": "Boss"} }, want: ledger.Verified, sends: 1, title: "Boss"},
		"a status that is another's": {change: func(w *intent.WriteIntent) { w.Expect["status"] = "e" }, want: ledger.NotApplied, reason: "[COE0019]", sends: 1},
		"a field that is not there":  {change: func(w *intent.WriteIntent) { w.Expect["colour"] = "red" }, want: ledger.NotApplied, reason: "COE0021", sends: 1},
		"a token that has expired":   {expired: true, want: ledger.NotApplied},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := d.open()
				s := &fakerest.SuccessFactors{Fake: f}
				if c.put != nil {
					s.Seed(c.put)
				}
				if c.fault != nil {
					if err := f.Set(*c.fault); err != nil {
						t.Fatal(err)
					}
				}
				use := d
				if c.expired {
					use.secrets = map[string]string{"token": "sf-yesterday"}
				}
				e := use.engine(t, name, f)
				w := d.write(name, 0)
				if c.change != nil {
					c.change(&w)
				}
				var out engine.Outcome
				for range 60 { // what is open is continued by a worker
					var err error
					if out, err = e.Do(t.Context(), w); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					if _, err := e.Resume(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				reason := ""
				if out.Refusal != nil {
					reason = out.Refusal.Code + " " + out.Refusal.Message
				}
				writes, _ := f.Count()
				if out.Status != c.want || !strings.Contains(reason, c.reason) || writes != c.sends {
					t.Errorf("%s: %s; refusal %q; %d sends; want %s, %q, %d", out.Status, out.Text, reason, writes, c.want, c.reason, c.sends)
				}
				users, title := 0, ""
				for _, o := range f.Now(fakerest.SuccessFactorsUsers) {
					if o["userId"] == "e-000" {
						users, title = users+1, o.Text("title")
					}
				}
				if users > 1 || title != c.title {
					t.Errorf("%d users, the title is %q; want at most one, %q", users, title, c.title)
				}
			})
		})
	}
}
