package orders_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// canned gives every request the same answer.
type canned struct {
	status int
	header http.Header
	body   string
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	h := c.header
	if h == nil {
		h = http.Header{"Read-Source": {"primary"}}
	}
	return &http.Response{StatusCode: c.status, Header: h, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
}

func connector(t *testing.T, o orders.Options, transport http.RoundTripper) *orders.Connector {
	t.Helper()
	c, err := orders.NewConnector("http://orders.invalid/", o, transport)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReadBelieves lists which answers to a read count.
func TestReadBelieves(t *testing.T) {
	ours := `{"id":"ord_1","stamp":"rb-1","order":{"order_id":"Order-001"}}`
	cases := map[string]struct {
		canned
		records int // -1 for an error
		strong  bool
		reason  string
	}{
		"none":           {canned{200, nil, `{"orders":[],"next":""}`}, 0, true, "an empty list is a list"},
		"one":            {canned{200, nil, `{"orders":[` + ours + `]}`}, 1, true, "what was asked for"},
		"by stamp":       {canned{200, nil, `{"orders":[{"id":"ord_1","stamp":"rb-1","order":{"order_id":"x"}}]}`}, 1, true, "our stamp under another key"},
		"replica":        {canned{200, http.Header{"Read-Source": {"replica"}}, `{"orders":[]}`}, 0, false, "it says that it may be behind"},
		"source unknown": {canned{200, http.Header{}, `{"orders":[]}`}, 0, false, "it does not say"},
		"no list":        {canned{200, nil, `{}`}, -1, false, "no list is not an empty one"},
		"null list":      {canned{200, nil, `{"orders":null}`}, -1, false, "nor is null"},
		"error with 200": {canned{200, nil, `{"error":"busy"}`}, -1, false, "no list"},
		"page":           {canned{200, nil, `<html>`}, -1, false, "no JSON"},
		"a list alone":   {canned{200, nil, `[]`}, -1, false, "another form"},
		"and more":       {canned{200, nil, `{"orders":[]}{"orders":[` + ours + `]}`}, -1, false, "two answers"},
		"foreign":        {canned{200, nil, `{"orders":[{"id":"ord_2","order":{"order_id":"other"}}]}`}, -1, false, "the filter was ignored"},
		"no id":          {canned{200, nil, `{"orders":[{"order":{"order_id":"Order-001"}}]}`}, -1, false, "no read could return it"},
		"no fields":      {canned{200, nil, `{"orders":[{"id":"ord_1"}]}`}, -1, false, "nothing to compare"},
		"no content":     {canned{204, nil, ``}, -1, false, "a list was asked for"},
		"not found":      {canned{404, nil, `{"orders":[]}`}, -1, false, "may mean no permission"},
		"endless":        {canned{200, nil, `{"orders":[],"next":"ord_1"}`}, -1, false, "the end was never seen"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			q := connectors.Query{Intent: order(intent.Create, 1), Stamp: "rb-1"}
			o, err := connector(t, orders.Plain.Options(), c.canned).Read(t.Context(), q)
			if c.records < 0 {
				if err == nil {
					t.Errorf("%d records and no error: %s", len(o.Records), c.reason)
				}
				return
			}
			if err != nil || len(o.Records) != c.records || (o.Strength == connectors.Strong) != c.strong {
				t.Errorf("%d records, %q, %v; want %d, strong %v: %s", len(o.Records), o.Strength, err, c.records, c.strong, c.reason)
			}
		})
	}
}

// TestReplicasAreWeak: if some reads lag, none is strong, whatever one reports.
func TestReplicasAreWeak(t *testing.T) {
	o := orders.Plain.Options()
	o.Lags, o.Bulk = []time.Duration{0, time.Second}, true
	w := newWorld(t, o)
	c := w.Connector()
	for range 2 {
		for range 2 {
			if got := find(t, c, order(intent.Create, 1)); got.Strength != connectors.Weak {
				t.Errorf("read: %q, want weak", got.Strength)
			}
		}
		a, err := c.ReadMany(t.Context(), []connectors.Query{{Intent: order(intent.Create, 1)}})
		if err != nil || a[0].Observation.Strength != connectors.Weak {
			t.Errorf("bulk read: %+v, %v; want weak", a, err)
		}
	}
}

// TestTransportCutsBody: a body that is cut comes out as one, as on a network.
func TestTransportCutsBody(t *testing.T) {
	w := newWorld(t, orders.Plain.Options())
	set(t, w, orders.Fault{Kind: orders.UnreadableRead, How: "truncated"})
	client := http.Client{Transport: orders.Transport(w)}
	res, err := client.Get("http://orders.invalid/orders?order_id=A")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if data, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) || len(data) == 0 {
		t.Errorf("%q, %v; want a part and an unexpected end", data, err)
	}
}

// TestFaultsAreSetTogether: one that cannot be spoils all of its request.
func TestFaultsAreSetTogether(t *testing.T) {
	w := newWorld(t, orders.Unique.Options())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://orders.invalid/faults",
		strings.NewReader("lost-answer\nduplicate-behind-our-back\n"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := orders.Transport(w).RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusBadRequest {
		t.Fatalf("%v, %v; want 400", res, err)
	}
	if _, err := send(t, w.Connector(), order(intent.Create, 1), ""); err != nil {
		t.Errorf("a fault is on after all: %v", err)
	}
}

// TestBulkBelieves: one invalid answer affects no other.
func TestBulkBelieves(t *testing.T) {
	o := orders.Plain.Options()
	o.Bulk = true
	two := []connectors.Query{{Intent: order(intent.Create, 1)}, {Intent: order(intent.Create, 2)}}
	c := connector(t, o, canned{200, nil, `{"answers":[{"orders":null},{"orders":[]}]}`})
	a, err := c.ReadMany(t.Context(), two)
	if err != nil || len(a) != 2 || a[0].Err == nil || a[1].Err != nil {
		t.Errorf("%+v, %v; want an error for the first alone", a, err)
	}
	for _, body := range []string{`{"answers":[{"orders":[]}]}`, `{"answers":null}`, `{}`, `x`} {
		if a, err := connector(t, o, canned{200, nil, body}).ReadMany(t.Context(), two); err == nil {
			t.Errorf("%s: %+v and no error", body, a)
		}
	}
	if _, err := c.ReadMany(t.Context(), make([]connectors.Query, orders.BulkLimit+1)); !errors.Is(err, orders.ErrIntent) {
		t.Errorf("too many: %v, want ErrIntent", err)
	}
}

// TestYesWithoutSense: a 2xx is accepted whatever its body is.
func TestYesWithoutSense(t *testing.T) {
	for _, body := range []string{"", "<html>", `{"id":`, `[]`, `{"id":7}`, `null`} {
		c := connector(t, orders.Plain.Options(), canned{201, nil, body})
		r, err := c.Write(t.Context(), connectors.Request{Intent: order(intent.Create, 1)})
		if d := cmp.Diff(connectors.Receipt{Code: "201", Reply: connectors.Reply{Raw: []byte(body)}}, r, cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Errorf("%q: %v, receipt (-want +got):\n%s", body, err, d)
		}
	}
}

// TestPages: everything under a key is found, however many pages it takes.
func TestPages(t *testing.T) {
	o := orders.Plain.Options()
	o.Bulk = true
	w := newWorld(t, o)
	const many = 2*orders.PageSize + 5
	for range many {
		if _, err := w.Seed(intent.Fields{"order_id": "Order-001"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	c := w.Connector()
	q := connectors.Query{Intent: order(intent.Create, 1)}
	if got := find(t, c, q.Intent); len(got.Records) != many || got.Strength != connectors.Strong {
		t.Errorf("read: %d records, %q; want %d, strong", len(got.Records), got.Strength, many)
	}
	bulk, err := c.ReadMany(t.Context(), []connectors.Query{q})
	if err != nil || len(bulk[0].Observation.Records) != many {
		t.Errorf("bulk read: %d records, %v; want %d", len(bulk[0].Observation.Records), err, many)
	}
}

func TestIntentsThatCannotBe(t *testing.T) {
	one := &connectors.Observation{Records: []connectors.Record{{Ref: "ord_000001"}}}
	cases := map[string]struct {
		change func(r *connectors.Request)
		names  string
		reason string
	}{
		"kind":            {func(r *connectors.Request) { r.Intent.Kind = "invoice" }, "/kind", "there are only orders"},
		"other key":       {func(r *connectors.Request) { r.Intent.Key["customer"] = "x" }, "/key/customer", "cannot be queried"},
		"number as key":   {func(r *connectors.Request) { r.Intent.Key["order_id"] = json.Number("1") }, "/key/order_id", "ids are strings"},
		"no key":          {func(r *connectors.Request) { r.Intent.Key = nil }, "/key/order_id", "nothing to query by"},
		"path as key":     {func(r *connectors.Request) { r.Intent.Key["order_id"] = ".." }, "/key/order_id", "not fit for a path"},
		"two keys":        {func(r *connectors.Request) { r.Intent.Expect["order_id"] = "x" }, "/expect/order_id", "contradicts the key"},
		"two keys, again": {func(r *connectors.Request) { r.Intent.Payload["order_id"] = "x" }, "/payload/order_id", "contradicts the key"},
		"write":           {func(r *connectors.Request) { r.Intent.Write, r.Before = "merge", one }, "/write", "no such write"},
		"update unread":   {func(r *connectors.Request) { r.Intent.Write = intent.Update }, "/write", "no record was read"},
		"delete unread":   {func(r *connectors.Request) { r.Intent.Write = intent.Delete }, "/write", "no record was read"},
		"upsert unread":   {func(r *connectors.Request) { r.Intent.Write = intent.Upsert }, "/write", "no record was read"},
		"which": {func(r *connectors.Request) {
			r.Intent.Write, r.Before = intent.Delete, &connectors.Observation{Records: make([]connectors.Record, 2)}
		}, "/write", "two records"},
		"conditional": {func(r *connectors.Request) { r.Conditional = true }, "/write", "a create has no condition"},
		"no version":  {func(r *connectors.Request) { r.Intent.Write, r.Conditional, r.Before = intent.Update, true, one }, "version", "nothing to compare with"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := orders.Plain.Options()
			o.Versions = true
			w := newWorld(t, o)
			r := connectors.Request{Intent: order(intent.Create, 1)}
			c.change(&r)
			_, err := w.Connector().Write(t.Context(), r)
			if connectors.FateOf(err) != connectors.FateNotSent || !errors.Is(err, orders.ErrIntent) || !strings.Contains(fmt.Sprint(err), c.names) {
				t.Errorf("%v; want ErrIntent, not sent, naming %s: %s", err, c.names, c.reason)
			}
			if n, _ := w.Count(); n != 0 {
				t.Errorf("%d writes arrived", n)
			}
		})
	}
}

func TestInvert(t *testing.T) {
	base := intent.WriteIntent{Destination: "orders", Kind: "order", Key: intent.Fields{"order_id": "A"}}
	rec := func(ref string, f intent.Fields) connectors.Record {
		return connectors.Record{Ref: ref, Stamp: base.Stamp(), Fields: f}
	}
	obs := func(r ...connectors.Record) connectors.Observation { return connectors.Observation{Records: r} }
	was := intent.Fields{"order_id": "A", "note": "old", "gone": "x", "address": map[string]any{"city": "Ulm", "zip": nil}, "updated_at": "1"}
	is := intent.Fields{"order_id": "A", "note": "new", "more": true, "address": map[string]any{"city": "Bonn", "zip": nil, "street": "s"}, "updated_at": "2"}
	key := intent.Fields{"order_id": "A"}
	none := obs()
	foreign := rec("1", intent.Fields{"order_id": "A", "note": "new"})
	foreign.Stamp = "rb-another"
	cases := map[string]struct {
		before *connectors.Observation
		after  connectors.Observation
		want   *intent.WriteIntent // nil: cannot be undone
		reason string
	}{
		"create": {&none, obs(rec("1", intent.Fields{"order_id": "A", "note": "new", "updated_at": "2"})),
			&intent.WriteIntent{Write: intent.Delete, Require: intent.Fields{"order_id": "A", "note": "new"}}, "delete it if it is as we made it"},
		"delete": {ptr(obs(rec("1", intent.Fields{"order_id": "A", "note": "old", "updated_at": "1"}))), none,
			&intent.WriteIntent{Write: intent.Create, Expect: intent.Fields{"order_id": "A", "note": "old"}}, "make it again"},
		"update": {ptr(obs(rec("1", was))), obs(rec("1", is)),
			&intent.WriteIntent{
				Write:   intent.Update,
				Expect:  intent.Fields{"note": "old", "gone": "x", "address": map[string]any{"city": "Ulm"}},
				Absent:  []string{"/address/street", "/more"},
				Require: intent.Fields{"note": "new", "more": true, "address": map[string]any{"city": "Bonn", "street": "s"}},
			}, "bring back what changed and nothing else"},
		"field added": {ptr(obs(rec("1", intent.Fields{"order_id": "A"}))), obs(rec("1", intent.Fields{"order_id": "A", "a/b": nil})),
			&intent.WriteIntent{Write: intent.Update, Expect: key, Absent: []string{"/a~1b"}, Require: intent.Fields{"a/b": nil}}, "null is a value, and names are escaped"},
		"field removed": {ptr(obs(rec("1", intent.Fields{"order_id": "A", "n": nil}))), obs(rec("1", intent.Fields{"order_id": "A"})),
			&intent.WriteIntent{Write: intent.Update, Expect: intent.Fields{"n": nil}, Require: key}, "absence cannot be required, the key can"},
		"unchanged":      {ptr(obs(rec("1", was))), obs(rec("1", was)), nil, "nothing to undo"},
		"no read before": {nil, obs(rec("1", is)), nil, "what was there is not known"},
		"two after":      {&none, obs(rec("1", is), rec("2", is)), nil, "which of them is ours"},
		"two before":     {ptr(obs(rec("1", was), rec("2", was))), none, nil, "one create cannot bring two back"},
		"another record": {ptr(obs(rec("1", was))), obs(rec("2", is)), nil, "another actor replaced it"},
		"foreign":        {&none, obs(foreign), nil, "what another made is not ours to undo"},
		"nothing":        {&none, none, nil, "nothing was there and nothing is"},
	}
	c := connector(t, orders.Plain.Options(), nil)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := c.Invert(base, tc.before, tc.after)
			if tc.want == nil {
				if !errors.Is(err, orders.ErrIrreversible) {
					t.Errorf("%+v, %v; want ErrIrreversible: %s", got, err, tc.reason)
				}
				return
			}
			want := *tc.want
			want.Destination, want.Kind, want.Key = base.Destination, base.Kind, base.Key
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%v: %s (-want +got):\n%s", err, tc.reason, d)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestProfiles(t *testing.T) {
	cases := map[orders.Class]struct {
		unique []intent.WriteType
		native bool
		settle string
	}{
		orders.Native:  {[]intent.WriteType{intent.Delete}, true, "0s"},
		orders.Unique:  {[]intent.WriteType{intent.Delete, intent.Create, intent.Upsert}, false, "0s"},
		orders.Plain:   {[]intent.WriteType{intent.Delete}, false, "0s"},
		orders.Lagging: {[]intent.WriteType{intent.Delete}, false, "2s"},
	}
	for _, class := range orders.Classes() {
		p, want := class.Options().Profile(), cases[class]
		settle, _ := p.Settle.Declared()
		if d := cmp.Diff(want.unique, p.Unique); d != "" || (p.NativeWindow[intent.Create] > 0) != want.native || settle.String() != want.settle {
			t.Errorf("%s: %+v, want %+v\n%s", class, p, want, d)
		}
	}
	zero := orders.Options{}.Profile()
	if _, ok := zero.Settle.Declared(); ok || zero.Stamped || zero.NativeWindow != nil || len(zero.Conditional) > 0 || zero.BulkLimit > 0 {
		t.Errorf("options that say nothing declare %+v", zero)
	}
}
