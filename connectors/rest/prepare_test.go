package rest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
)

// mailer is a server at which a mail is drafted and sent. draft and send are the statuses of its
// answers, 0 none at all.
type mailer struct {
	draft, send int
	calls       []string
}

func (m *mailer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.calls = append(m.calls, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	status, answer := m.send, `{"id":"m1"}`
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/drafts/d1":
		status, answer = m.draft, `{"id":"d1"}`
	case r.Method == http.MethodGet:
		status, answer = 200, `{"items":[]}`
	case r.URL.Path == "/drafts":
		status, answer = m.draft, `{"id":"d1"}`
	}
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func (m *mailer) connector(t *testing.T) *rest.Connector {
	t.Helper()
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	return mailerAt(t, s.URL, `    writes:
      create:
        prepare:
          method: POST
          path: /drafts
          body: {id: "{key.id}", stamp: "{stamp}", subject: "{fields.subject}"}
          ref: $.id
        unused: {path: "/drafts/{prepared}", must: [{path: $.id, exists: true}]}
        method: POST
        path: /drafts/{prepared}/send
        ref: $.id
    reads:
      - {name: list, by: key, path: /mails, query: {id: "{key.id}"}, records: "$.items[*]"}
    record: {ref: $.id, stamp: {path: $.stamp}, fields: {id: $.key, subject: $.subject}}
    profile: {stamped: true, settle: 1s, horizon: 1m, irreversible: [create]}
`)
}

// mailerAt is a connector of mails at an address, declared by what differs of them.
func mailerAt(t *testing.T, url, kind string) *rest.Connector {
	t.Helper()
	d, err := rest.Load([]byte(`declaration: 1
name: mailer
system: Mailer
base_url: `+url+`
probe: {path: /me}
kinds:
  mail:
    key: [id]
`+kind), "mailer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.New(d, rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	draftCall = `POST /drafts {"id":"1","stamp":"rb-1","subject":"Hi"}`
	sendCall  = "POST /drafts/d1/send"
)

// The second call is made only after what the first made was recorded, and a repeat makes no other first.
func TestTwoCallsAsOneWrite(t *testing.T) {
	mailIntent := intent.WriteIntent{Kind: "mail", Write: intent.Create, Key: intent.Fields{"id": "1"}, Expect: intent.Fields{"subject": "Hi"}}
	for name, d := range map[string]struct {
		reason      string
		draft, send int
		prepared    string
		unkept      error
		keepless    bool
		fate        connectors.Fate
		calls       []string
	}{
		"first time":        {"both, in this order", 200, 200, "", nil, false, connectors.FateAnswered, []string{draftCall, "kept d1", sendCall}},
		"repeat":            {"the draft of before is sent", 200, 200, "d1", nil, false, connectors.FateAnswered, []string{sendCall}},
		"lost draft":        {"a draft is no mail", 0, 200, "", nil, false, connectors.FateNotSent, []string{draftCall}},
		"failed draft":      {"a draft is no mail", 500, 200, "", nil, false, connectors.FateNotSent, []string{draftCall}},
		"refused draft":     {"it would be refused again", 422, 200, "", nil, false, connectors.FateRefused, []string{draftCall}},
		"throttled draft":   {"it waits", 429, 200, "", nil, false, connectors.FateThrottled, []string{draftCall}},
		"not recorded":      {"a repeat would send a second draft", 200, 200, "", errors.New("the disk is full"), false, connectors.FateNotSent, []string{draftCall, "kept d1"}},
		"nothing to record": {"a repeat would send a second draft", 200, 200, "", nil, true, connectors.FateNotSent, nil},
		"lost send":         {"it may be sent", 200, 0, "", nil, false, connectors.FateUnknown, []string{draftCall, "kept d1", sendCall}},
		"refused send":      {"the draft is still one", 200, 422, "", nil, false, connectors.FateRefused, []string{draftCall, "kept d1", sendCall}},
		"no such draft":     {"another actor, or a proxy that repeats, may have sent it", 200, 404, "", nil, false, connectors.FateUnknown, []string{draftCall, "kept d1", sendCall}},
		"used draft":        {"as well, on a repeat", 200, 409, "d1", nil, false, connectors.FateUnknown, []string{sendCall}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mailer{draft: d.draft, send: d.send}
			c := m.connector(t)
			if err := c.Check(mailIntent); err != nil {
				t.Fatal(err)
			}
			r := connectors.Request{Intent: mailIntent, Stamp: "rb-1", IdempotencyKey: "k", Attempt: 1}
			if d.prepared != "" {
				r.Prepared = []byte(d.prepared)
			}
			if !d.keepless {
				r.Keep = func(_ context.Context, prepared []byte) error {
					m.calls = append(m.calls, "kept "+string(prepared))
					return d.unkept
				}
			}
			_, err := c.Write(t.Context(), r)
			if got := connectors.FateOf(err); got != d.fate {
				t.Errorf("fate %q (%v), want %q: %s", got, err, d.fate, d.reason)
			}
			if diff := cmp.Diff(d.calls, m.calls); diff != "" {
				t.Errorf("calls (-want +got): %s\n%s", d.reason, diff)
			}
		})
	}
}

// What the first call leaves counts as what the write leaves: its stamp, by which an undo knows the record,
// and what no read compares.
func TestWhatTheFirstCallLeaves(t *testing.T) {
	d, err := rest.Load([]byte(`declaration: 1
name: payer
system: Payer
base_url: http://127.0.0.1:1
probe: {path: /me}
kinds:
  payment:
    key: [id]
    writes:
      create:
        prepare: {method: POST, path: /holds, body: {id: "{key.id}", stamp: "{stamp}", amount: "{fields.amount}", note: "{payload.note}"}, ref: $.id}
        method: POST
        path: /holds/{prepared}/capture
      delete: {method: DELETE, path: "/payments/{ref}", needs: ref}
    reads:
      - {name: list, by: key, path: /payments, query: {id: "{key.id}"}, records: "$.items[*]"}
    record: {ref: $.id, stamp: {path: $.stamp}, fields: {id: $.key, amount: $.amount}}
    undo: {create: delete}
    profile: {stamped: true}
`), "payer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.NotChecked("payment")[intent.Create]; !slices.Equal(got, []string{"/payload/note"}) {
		t.Errorf("not compared: %q", got)
	}
	c, err := rest.New(d, rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := intent.WriteIntent{Tenant: "acme", Workflow: "w", Step: "1", Tool: "pay", Kind: "payment", Write: intent.Create, Key: intent.Fields{"id": "1"}, Expect: intent.Fields{"amount": "5"}}
	for stamp, ours := range map[string]bool{in.Stamp(): true, "rb-another": false} {
		after := connectors.Observation{Records: []connectors.Record{{Ref: "p1", Stamp: stamp, Fields: intent.Fields{"id": "1", "amount": "5"}}}}
		if _, err := c.Invert(in, &connectors.Observation{}, after); (err == nil) != ours {
			t.Errorf("a record with the stamp %s: %v", stamp, err)
		}
	}
}

// That a draft is still there is looked for last, and only where absence may rest on it.
func TestADraftThatIsStillThere(t *testing.T) {
	in := intent.WriteIntent{Kind: "mail", Write: intent.Create, Key: intent.Fields{"id": "1"}, Expect: intent.Fields{"subject": "Hi"}}
	for name, d := range map[string]struct {
		draft    int
		prepared string
		bounded  bool
		want     bool
	}{
		"there": {200, "d1", false, true}, "gone": {404, "d1", false, false}, "not readable": {500, "d1", false, false},
		"none was made": {200, "", false, false}, "another draft": {200, "d2", false, false}, "too early": {200, "d1", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mailer{draft: d.draft}
			q := connectors.Query{Intent: in, Stamp: "rb-1", Prepared: []byte(d.prepared)}
			if d.bounded {
				q.FirstSent = time.Unix(1_700_000_000, 0)
			}
			obs, err := m.connector(t).Read(t.Context(), q)
			if err != nil || obs.Unused != d.want {
				t.Errorf("unused %t (%v), want %t", obs.Unused, err, d.want)
			}
			if i := slices.Index(m.calls, "GET /drafts/d1"); i == 0 {
				t.Errorf("calls %q: want the list first", m.calls)
			}
		})
	}
}

// A mail is composed of values that stay in their headers.
func TestComposedMail(t *testing.T) {
	var raw string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Raw string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		raw = body.Raw
		_, _ = io.WriteString(w, `{"id":"1"}`)
	}))
	defer s.Close()
	c := mailerAt(t, s.URL, `    writes:
      create:
        method: POST
        path: /mails
        body: {raw: {"[mail]": {To: "{fields.to}", Cc: "{fields.cc?}", Subject: "{fields.subject}", X-Id: "{key.id}", text: "{fields.text}"}}}
        ref: $.id
    profile: {write_only: true, irreversible: [create]}
`)
	send := func(id string, fields intent.Fields) error {
		_, err := c.Write(t.Context(), connectors.Request{Intent: intent.WriteIntent{Kind: "mail", Write: intent.Create, Key: intent.Fields{"id": id}, Expect: fields}})
		return err
	}
	fields := func(name string, v any) intent.Fields {
		f := intent.Fields{"to": []any{"ada@example.org", "Bob <bob@example.org>"}, "subject": "Grüße", "text": "Zeile 1\nZeile 2"}
		f[name] = v
		return f
	}
	if err := send("a-1", fields("text", "Zeile 1\nZeile 2")); err != nil {
		t.Fatal(err)
	}
	text, err := base64.URLEncoding.DecodeString(raw)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mail.ReadMessage(strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	to, err := m.Header.AddressList("To")
	if err != nil || len(to) != 2 || to[1].Address != "bob@example.org" || m.Header.Get("X-Id") != "a-1" || m.Header.Get("Cc") != "" || !strings.HasPrefix(m.Header.Get("Subject"), "=?utf-8?") {
		t.Errorf("%v, header %v", err, m.Header)
	}
	if body, _ := io.ReadAll(m.Body); string(body) != "Zeile 1\r\nZeile 2" {
		t.Errorf("text %q", body)
	}
	if err := send("a-1", fields("to", []any{`"eve@example.org, bob"@example.org`})); err != nil {
		t.Fatal(err)
	}
	text, _ = base64.URLEncoding.DecodeString(raw)
	if m, err = mail.ReadMessage(strings.NewReader(string(text))); err != nil {
		t.Fatal(err)
	}
	if to, err = m.Header.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != "eve@example.org, bob@example.org" {
		t.Errorf("%v, to %v; want the one quoted address", err, to)
	}
	for name, f := range map[string]intent.Fields{
		"a header in the subject": fields("subject", "Hi\r\nBcc: eve@example.org"),
		"a header in an address":  fields("to", "ada@example.org\nBcc: eve@example.org"),
		"no address":              fields("to", "ada"),
		"two addresses in one":    fields("to", []any{"ada@example.org, eve@example.org"}),
		"a list as the subject":   fields("subject", []any{"a", "b"}),
		"no text":                 fields("text", []any{"a"}),
	} {
		if err := send("a-2", f); connectors.FateOf(err) != connectors.FateRefused {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

// Hits that show no more than their refs are read one by one.
func TestHitsThatShowOnlyTheirRefs(t *testing.T) {
	answers := map[string]string{"/mails/m1": `{"id":"m1","key":"1","stamp":"rb-1","subject":"Hi"}`, "/mails/m2": `{"id":"m2","key":"2","subject":"Other"}`,
		"/mails/m3": `{"id":"m3","key":"1","stamp":"rb-1","subject":"Hi"}`}
	for name, d := range map[string]struct {
		list string
		want []string
		says string
	}{
		"one":       {`{"items":[{"id":"m1"}]}`, []string{"m1"}, ""},
		"pages":     {`{"items":[{"id":"m1"},{"id":"m2"},{"id":"m2"}]}`, []string{"m1", "m3"}, ""},
		"none":      {`{"items":[]}`, nil, ""},
		"others":    {`{"items":[{"id":"m2"}]}`, nil, "seems to ignore the search"},
		"among":     {`{"items":[{"id":"m2"},{"id":"m1"}]}`, []string{"m1"}, ""},
		"no ref":    {`{"items":[{"name":"m1"}]}`, nil, "a hit has no ref"},
		"too many":  {`{"items":[` + strings.Repeat(`{"id":"m2"},`, 200) + `{"id":"m1"}]}`, nil, "too many to read one by one"},
		"not there": {`{"items":[{"id":"m9"}]}`, nil, "500"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer, ok := answers[r.URL.Path]
				if r.URL.Path == "/mails" {
					answer, ok = d.list, true
				}
				if r.URL.Query().Get("page") == "2" {
					answer = `{"items":[{"id":"m3"}]}`
				}
				if !ok {
					w.WriteHeader(500)
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer s.Close()
			c := mailerAt(t, s.URL, `    writes: {create: {method: POST, path: /mails, body: {id: "{key.id}", "...": "{fields}"}, ref: $.id}}
    reads:
      - {name: search, by: key, path: /mails, query: {q: "{key.id}"}, records: "$.items[*]", only_refs: true, paging: {page: page, size: 3}}
      - {name: get, by: ref, path: "/mails/{ref}", record: $, absent: [404]}
    record: {ref: $.id, stamp: {path: $.stamp}, fields: {id: $.key, subject: $.subject}}
`)
			obs, err := c.Read(t.Context(), connectors.Query{Stamp: "rb-1", Intent: intent.WriteIntent{Kind: "mail", Write: intent.Create, Key: intent.Fields{"id": "1"}}})
			if d.says != "" {
				if err == nil || !strings.Contains(err.Error(), d.says) {
					t.Fatalf("%v, want %q", err, d.says)
				}
				return
			}
			var refs []string
			for _, r := range obs.Records {
				refs = append(refs, r.Ref)
			}
			if diff := cmp.Diff(d.want, refs); err != nil || diff != "" || obs.Strength != connectors.Weak {
				t.Errorf("%v, strength %q, records (-want +got):\n%s", err, obs.Strength, diff)
			}
		})
	}
}
