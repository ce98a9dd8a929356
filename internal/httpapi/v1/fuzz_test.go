package v1

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/saga"
)

// seeds are bodies that readers stumble over.
var seeds = []string{
	"", "null", "[]", "{}", "{", `{"a":1,"a":2}`, `{"tenant":null}`, `{"tenant":"umbrella"}`, `{"workflow":""}`, `{"workflow":7,"step":[]}`,
	"{\"a\":\"\xff\"}", `{"a":"\u0000"}`, `{"a":"\ud800"}`, `{"a":1e999999}`, `{} {}`, strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100),
	strings.Repeat("[", 20000), `{"reason":"x","word":"accept","force":true,"digest":"d"}`, `{"idempotency_key":"k-2"}`, "\ufeff{}", `{"id":"x","steps":[{"name":"a"}]}`,
}

// FuzzIntent: whatever comes as an intent is one, or is refused as what its sender
// did wrong; and the tenant is never another than the one it names.
func FuzzIntent(f *testing.F) {
	for _, s := range append(seeds, asJSON(order("A-1")), asJSON(order("A-1", unnamed))) {
		f.Add([]byte(s), "k-1")
		f.Add([]byte(s), "")
	}
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		h := http.Header{}
		if header != "" {
			h.Set(headerKey, header)
		}
		key, err := idempotencyKey(h)
		if err != nil {
			refusedRightly(t, err)
			return
		}
		w, err := decodeIntent(body, "acme", key)
		if err = cmp.Or(err, w.Validate()); err != nil {
			refusedRightly(t, err)
			return
		}
		var named struct {
			Tenant   *string `json:"tenant"`
			Workflow *string `json:"workflow"`
			Step     *string `json:"step"`
		}
		if err := json.Unmarshal(body, &named); err != nil {
			t.Fatalf("it was taken, and is no JSON: %v", err)
		}
		if named.Tenant == nil && w.Tenant != "acme" || named.Tenant != nil && w.Tenant != *named.Tenant {
			t.Errorf("tenant %q of %q", w.Tenant, body)
		}
		if named.Workflow == nil && named.Step == nil && (w.Workflow != headerWorkflow || w.Step != key) {
			t.Errorf("%s/%s of key %q", w.Workflow, w.Step, key)
		}
	})
}

// FuzzPlan: likewise for the plan of a saga.
func FuzzPlan(f *testing.F) {
	for _, s := range append(seeds, plan("trip-1", "A-1")) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := decodePlan(body, "acme")
		if err != nil {
			refusedRightly(t, err)
			return
		}
		if p.Tenant == "" || len(p.Steps) == 0 {
			t.Errorf("%+v", p)
		}
		for _, s := range p.Steps {
			if s.Intent.Tenant != p.Tenant {
				t.Errorf("a step of another tenant: %+v", s)
			}
		}
	})
}

// FuzzRequest: likewise for reviewers' requests.
func FuzzRequest(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, into := range []any{new(DecisionRequest), new(ReasonRequest), new(StopRequest)} {
			if err := decode(body, into); err != nil {
				refusedRightly(t, err)
			} else if !json.Valid(body) {
				t.Errorf("%q was taken for %T", body, into)
			}
		}
	})
}

// FuzzHeaders: no header or query causes a fault of the API.
func FuzzHeaders(f *testing.F) {
	f.Add("wait=10, a;b=c", "text/*;q=0.5, application/json", "application/json; charset=utf-8", "limit=1&state=held&after=c1-0")
	f.Add("wait=\"", "*/*;q=", "a/b/c;;=", "%zz=%ff&limit=-1")
	f.Fuzz(func(t *testing.T, prefer, accept, kind, query string) {
		if wait, _ := preferred(http.Header{headerPrefer: {prefer}}, time.Minute); wait < 0 || wait > time.Minute {
			t.Errorf("it would wait %s", wait)
		}
		_ = accepts(http.Header{"Accept": {accept}}, jsonType)
		if err := isJSON(http.Header{"Content-Type": {kind}}); err != nil {
			if _, p := problemOf(err, "acme"); p.Status != http.StatusUnsupportedMediaType {
				t.Errorf("%+v", p)
			}
		}
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		for _, r := range routes() {
			if err := r.check(q); err != nil {
				refusedRightly(t, err)
			} else if r.name == "listWrites" {
				c := &call{query: q}
				if _, err := c.search(); err != nil {
					refusedRightly(t, err)
				}
			}
		}
	})
}

// refusedRightly fails if a decoder's error is reported as one of ours, or repeats more
// of the request than it should.
func refusedRightly(t *testing.T, err error) {
	t.Helper()
	k, p := problemOf(err, "acme")
	if k.status != http.StatusBadRequest {
		t.Errorf("%s: %v", k.name, err)
	}
	if !errors.Is(err, intent.ErrInvalid) && !errors.Is(err, saga.ErrPlan) && (p.Field == "" && p.Detail == "" || len(p.Detail) > 4096) {
		t.Errorf("%+v", p)
	}
	if !json.Valid([]byte(text(t, p))) {
		t.Errorf("%+v", p)
	}
}
