package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
)

const listDeclaration = `declaration: 1
name: notes
system: Notes
base_url: https://notes.example/v1
probe: {path: /notes}
kinds:
  note:
    key: [name]
    writes:
      create: {method: POST, path: /notes, body: {name: "{key.name}"}, ref: $.id}
    reads:
      - {name: list, by: key, path: /notes, query: {name: "{key.name}"}, records: "$.notes[*]"}
    list: {name: all, path: /notes, query: {from: "{from?}", until: "{until?}"}, records: "$.notes[*]", changed: $.changed, TIMES}
    record: {ref: $.id, fields: {"...": $}}
    profile: {settle: 1s, horizon: 1s}
`

// TestListTimes: a list of a time leaves out only what surely happened at another.
func TestListTimes(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 30, 500, time.UTC)
	notes := map[string][2]time.Time{
		"of before":              {noon.Add(-2 * time.Hour), noon.Add(-time.Hour)},
		"made within":            {noon.Add(time.Minute), noon.Add(time.Minute)},
		"made within, and later": {noon.Add(time.Minute), noon.Add(3 * time.Hour)},
		"made later":             {noon.Add(2 * time.Hour), noon.Add(3 * time.Hour)},
		"changed later":          {noon.Add(-2 * time.Hour), noon.Add(3 * time.Hour)},
		"cut":                    {noon.Truncate(time.Minute), noon.Truncate(time.Minute)},
	}
	for name, c := range map[string]struct {
		times string
		want  []string
		timed bool
	}{
		"created is shown":        {"created: $.created", []string{"changed later", "made within", "made within, and later"}, false},
		"created is not shown":    {"stable: true", []string{"changed later", "made later", "made within", "made within, and later"}, false},
		"times are cut to minute": {"created: $.created, cut: 1m", []string{"changed later", "cut", "made within", "made within, and later"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				asked = r.URL.Query().Get("from") + " " + r.URL.Query().Get("until")
				var all []string
				for id, at := range notes {
					all = append(all, fmt.Sprintf(`{"id":%q,"name":%q,"created":%q,"changed":%q}`, id, id, at[0].Format(time.RFC3339Nano), at[1].Format(time.RFC3339Nano)))
				}
				_, _ = fmt.Fprintf(rw, `{"notes":[%s]}`, strings.Join(all, ","))
			}))
			defer server.Close()
			d, err := rest.Load([]byte(strings.Replace(listDeclaration, "TIMES", c.times, 1)), "notes.yaml")
			if err != nil {
				t.Fatal(err)
			}
			conn, err := rest.New(d, rest.Options{BaseURL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			l, err := conn.List(t.Context(), connectors.Scope{Kind: "note", From: noon, Until: noon.Add(time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range l.Records {
				got = append(got, r.Ref)
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) || l.Timed != c.timed {
				t.Errorf("%q, timed %t; want %q, %t", got, l.Timed, c.want, c.timed)
			}
			if asked != "2026-01-02T12:00:30Z 2026-01-02T13:00:31Z" {
				t.Errorf("it asks for %s; want no less than the time that is meant", asked)
			}
		})
	}
}

// TestListPagesThatAreCounted: a short page is the last only if the next one is empty, since APIs
// return fewer per page than requested.
func TestListPagesThatAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		notes, gives int
		beyond       int // the status after the last page
		complete     bool
		reason       string
	}{
		"none":                    {0, 3, 200, true, "there is nothing"},
		"a short one":             {2, 3, 200, true, "nothing is behind it"},
		"fewer than was asked":    {4, 2, 200, false, "the first page looks like the last"},
		"no page behind the last": {2, 3, 400, false, "the end of the list is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				first := (page - 1) * c.gives
				if page > 1 && first >= c.notes && c.beyond != 200 {
					rw.WriteHeader(c.beyond)
					return
				}
				var all []string
				for n := first; n < min(first+c.gives, c.notes); n++ {
					all = append(all, fmt.Sprintf(`{"id":"%d","name":"%d"}`, n, n))
				}
				_, _ = fmt.Fprintf(rw, `{"notes":[%s]}`, strings.Join(all, ","))
			}))
			defer server.Close()
			d, err := rest.Load([]byte(strings.Replace(listDeclaration, "TIMES", "paging: {page: page, size: 3}", 1)), "notes.yaml")
			if err != nil {
				t.Fatal(err)
			}
			conn, err := rest.New(d, rest.Options{BaseURL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			l, err := conn.List(t.Context(), connectors.Scope{Kind: "note"})
			if err != nil || l.Complete != c.complete || (l.Why == "") != c.complete {
				t.Errorf("%d records, complete %t (%s), %v; want complete %t: %s", len(l.Records), l.Complete, l.Why, err, c.complete, c.reason)
			}
		})
	}
}
