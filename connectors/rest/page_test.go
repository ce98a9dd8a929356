package rest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
)

// pagesOf serves n pages; the wanted record is on the last one. goOn writes into the answer where
// the next page is.
func pagesOf(n int, asked func(r *http.Request) int, goOn func(rw http.ResponseWriter, page int) (extra string)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		page := asked(r)
		records, extra := fmt.Sprintf(`{"id":"%d-1","sku":"A-10"},{"id":"%d-2","sku":"a-1"}`, page, page), ""
		if page < n {
			extra = goOn(rw, page)
		} else {
			records, extra = `{"id":"found","sku":"A-1"}`, goOn(rw, 0)
		}
		if extra == "" {
			extra = `"end":0`
		}
		_, _ = fmt.Fprintf(rw, `{"items":[%s],%s}`, records, extra)
	}
}

func inQuery(name string) func(*http.Request) int {
	return func(r *http.Request) int {
		if r.URL.Query().Get("sku") != "A-1" {
			return 0 // the question was lost on the way
		}
		page, err := strconv.Atoi(r.URL.Query().Get(name))
		if err != nil {
			return 1
		}
		return page
	}
}

func link(format string) func(http.ResponseWriter, int) string {
	return func(rw http.ResponseWriter, page int) string {
		if page > 0 {
			rw.Header().Add("Link", fmt.Sprintf(format, page+1))
		}
		return ""
	}
}

func member(format, last string) func(http.ResponseWriter, int) string {
	return func(_ http.ResponseWriter, page int) string {
		if page > 0 {
			return fmt.Sprintf(format, page+1)
		}
		return last
	}
}

func TestPaging(t *testing.T) {
	const list = plainRead + "max_pages: 3\n"
	tests := map[string]struct {
		reason string
		paging string
		read   string
		asked  func(*http.Request) int
		goOn   func(http.ResponseWriter, int) string
		strong bool // with several pages
	}{
		"link": {"an address in a header", "paging: {link: next}", list, inQuery("p"),
			link(`<http://127.0.0.1:1/api/items?sku=A-1&p=%d>; rel="next", <http://127.0.0.1:1/api/items?sku=A-1>; rel="first"`), false},
		"link with a comma": {"a comma in the address separates nothing", "paging: {link: next}", list, inQuery("p"),
			link(`</api/items?sku=A-1&x=a,b;c&p=%d>; rel="next"`), false},
		"link relative": {"relative to the page", "paging: {link: next}", list, inQuery("p"), link(`<?sku=A-1&p=%d>; title="x"; rel="prefetch next"`), false},
		"link in quotes": {"text between quotes separates nothing", "paging: {link: next}", list, inQuery("p"),
			link(`<?p=8>; title="a, <?p=9>; rel=next \" b"; rel=prev; crossorigin, <?sku=A-1&p=%d>; title="a; rel=\"up\""; rel=next`), false},
		"token in query": {"a cursor", "paging: {next: $.after, query: p}", list, inQuery("p"), member(`"after":"%d"`, `"after":null`), true},
		"token number":   {"a cursor that is a number", "paging: {next: $.after, query: p}", list, inQuery("p"), member(`"after":%d`, ``), true},
		"with more":      {"says whether there is more", "paging: {next: $.after, query: p, more: $.more}", list, inQuery("p"), member(`"more":true,"after":"%d"`, `"more":false,"after":"9"`), true},
		"address":        {"an address in the body", "paging: {next_url: $.next}", list, inQuery("p"), member(`"next":"/api/items?sku=A-1&p=%d"`, `"next":""`), false},
		"number":         {"pages that are counted", "paging: {page: p, size: 2}", list, inQuery("p"), member(`"x":%d`, ``), false},
		"token in body": {"a lookup by POST", "paging: {next: $.after, body: cursor}",
			"strength: strong\nmax_pages: 3\nmethod: POST\npath: /items/query\nbody: {filter: {sku: \"{key.sku}\"}}\nrecords: $.items[*]\n",
			func(r *http.Request) int {
				text, _ := io.ReadAll(r.Body)
				for page := 1; page < 9; page++ {
					if string(text) == fmt.Sprintf(`{"cursor":"%d","filter":{"sku":"A-1"}}`, page) {
						return page
					}
				}
				return 1
			}, member(`"after":"%d"`, ``), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := itemsFile("", tt.read+tt.paging)
			for n := 1; n <= 3; n++ {
				c := items(t, file, pagesOf(n, tt.asked, tt.goOn))
				got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)})
				if err != nil || len(got.Records) != 1 || got.Records[0].Ref != "found" {
					t.Errorf("%s: of %d pages: %v, %v; want the record of the last page", tt.reason, n, got.Records, err)
				}
				if strong := got.Strength == connectors.Strong; strong != (tt.strong || n == 1) {
					t.Errorf("%s: of %d pages: strong %t; items can slip from page to page: %t", tt.reason, n, strong, !tt.strong)
				}
			}
			c := items(t, file, pagesOf(4, tt.asked, tt.goOn))
			if got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)}); !errors.Is(err, rest.ErrAnswer) || !strings.Contains(err.Error(), "more pages") {
				t.Errorf("a list that is longer than is read: %v, %v; want an error, never a short list", got, err)
			}
		})
	}
}

func TestPagesThatCannotBeFollowed(t *testing.T) {
	tests := map[string]struct{ reason, paging, header, body, want string }{
		"another host":    {"it would get our credentials", "paging: {next_url: $.next}", "", `"next":"https://evil.example/items"`, "not declared"},
		"another port":    {"another server", "paging: {next_url: $.next}", "", `"next":"http://127.0.0.1:9/items"`, "not declared"},
		"no TLS":          {"the same name in the clear", "paging: {next_url: $.next}", "", `"next":"http://declared.example/items"`, "not declared"},
		"user name":       {"credentials in it", "paging: {next_url: $.next}", "", `"next":"http://a:b@127.0.0.1:1/items"`, "not declared"},
		"no address":      {"no address", "paging: {next_url: $.next}", "", `"next":"http://[::1"`, "is none"},
		"an object":       {"no address", "paging: {next_url: $.next}", "", `"next":{}`, "want text"},
		"link elsewhere":  {"it would get our credentials", "paging: {link: next}", `<https://evil.example/>; rel="next"`, `"x":0`, "not declared"},
		"link without >":  {"cannot be taken apart", "paging: {link: next}", `<https://a/?x=1; rel="next"`, `"x":0`, "cannot be taken apart"},
		"open quote":      {"the links behind it would be lost", "paging: {link: next}", `<?p=2>; rel="prev, <?p=3>; rel=next`, `"x":0`, "cannot be taken apart"},
		"no relation":     {"it may be the next page", "paging: {link: next}", `<?p=2>; title="next"`, `"x":0`, "no relation"},
		"more of nothing": {"says more and not where", "paging: {next: $.after, query: p, more: $.more}", "", `"more":true`, "does not say where"},
		"more is missing": {"another shape", "paging: {next: $.after, query: p, more: $.more}", "", `"x":1`, "want true or false"},
		"long address":    {"without end", "paging: {next_url: $.next}", "", `"next":"/` + strings.Repeat("a", 10_000) + `"`, "want text"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			requests := 0
			c := items(t, itemsFile("", plainRead+tt.paging), func(rw http.ResponseWriter, r *http.Request) {
				requests++
				if tt.header != "" {
					rw.Header().Set("Link", tt.header)
				}
				_, _ = fmt.Fprintf(rw, `{"items":[],%s}`, tt.body)
			})
			got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, %v; want an error with %q", tt.reason, got, err, tt.want)
			}
			if requests != 1 {
				t.Errorf("%s: %d requests, want the first alone", tt.reason, requests)
			}
		})
	}
}

func TestEndlessPagingIsBounded(t *testing.T) {
	requests := 0
	c := items(t, itemsFile("", plainRead+"paging: {next_url: $.next}"), func(rw http.ResponseWriter, r *http.Request) {
		requests++
		_, _ = io.WriteString(rw, `{"items":[],"next":"/api/items?again"}`)
	})
	_, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)})
	if err == nil || requests != 10 {
		t.Errorf("%d pages were read, and then %v; want 10 and an error", requests, err)
	}
}
