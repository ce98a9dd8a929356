package command

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/engine"
)

// filler repeats one letter for as long as it is read.
type filler byte

func (f filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(f)
	}
	return len(p), nil
}

// allocated is how much this process has allocated so far, in bytes.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// hostile are bodies that every API must refuse without a failure.
func hostile() map[string]string {
	deep := func(open, middle, shut string, n int) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(shut, n)
	}
	return map[string]string{
		"nothing": "", "null": "null", "a text": `"x"`, "a number": "1e999999", "a list": "[]", "cut off": `{"workflow_name":"w`, "two": "{}{}", "no UTF-8": "{\"workflow_name\":\"\xff\xfe\"}",
		"a NUL": `{"workflow_name":"\u0000","reason":"\u0000"}`, "half a pair": `{"workflow_name":"\ud800"}`, "a mark": "\ufeff{}", "a member twice": `{"reason":"a","reason":"b","id":1,"id":2}`,
		"deep objects": deep(`{"a":`, "1", "}", 50_000), "deep lists": deep("[", "", "]", 150_000), "open lists": strings.Repeat("[", 300_000),
		"deep within":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wire_order","arguments":` + deep(`{"a":`, "1", "}", 40_000) + `}}`,
		"a deep intent": strings.Replace(intentOf(own, "wire", "D-1", "d"), `"amount_cents":1999`, `"amount_cents":`+deep("[", "", "]", 20_000), 1),
		"a long number": `{"a":` + strings.Repeat("9", 300_000) + `}`, "a long name": `{"` + strings.Repeat("n", 300_000) + `":1}`,
		"many members": `{"a":1` + manyMembers(20_000) + `}`, "many fields": strings.Repeat("a=b&", 60_000), "percents": strings.Repeat("%", 10_000), "a script": `{"reason":"<script>alert(1)</script>"`,
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":1`, i)
	}
	return b.String()
}

// TestHostileBodies: every hostile body, at every route, is refused in words, without a
// fault of ours, and without much memory; and the server continues.
func TestHostileBodies(t *testing.T) {
	f := newFort(t, nil)
	mine := f.populate(own)
	examples := examples()
	kinds := []string{"application/json", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", "application/json; charset=utf-16", ""}
	for _, r := range allRoutes() {
		if r.Method != http.MethodPost {
			continue
		}
		e := examples[r.key()]
		path := e.path(mine)
		for name, body := range hostile() {
			for i, kind := range kinds {
				if i > 1 && len(body) > 1000 {
					continue // large ones are read with their own content type
				}
				before := allocated()
				a := f.as(engine.RoleOperator, own, "POST", path, body, append(slices.Clone(mcpAccept), "Content-Type", kind)...)
				if a.status >= 500 || strings.Contains(a.body, "<script>alert") || strings.Contains(a.body, "panic") || len(a.body) > 200_000 {
					t.Errorf("%s with %s as %q: %s", r.key(), name, kind, a)
				}
				if used := allocated() - before; used > 64<<20 {
					t.Errorf("%s with %s as %q takes %d MiB", r.key(), name, kind, used>>20)
				}
			}
		}
		f.oversized(r, path)
	}
	if text := f.log.String(); strings.Contains(text, "panic") || strings.Contains(text, "level=ERROR") {
		at := max(strings.Index(text, "panic"), strings.Index(text, "level=ERROR"))
		t.Errorf("the log has a fault: %.2000s", text[at:])
	}
	if a := f.must(engine.RoleAgent, own, "POST", "/v1/writes", intentOf(own, "create", "after", "after"), "Prefer", "wait=30"); a.field("status") != "verified" {
		t.Errorf("afterwards: %s", a)
	}
}

// oversized sends far more than a route takes, of a length that is said, and of
// one that is not.
func (f *fort) oversized(r routed, path string) {
	f.t.Helper()
	for _, size := range []int64{64 << 20, -1} {
		q := f.request("POST", path, "", f.secret["operator@"+own], append(slices.Clone(mcpAccept), "Content-Type", "application/json")...)
		q.Body, q.ContentLength = io.NopCloser(io.LimitReader(filler(' '), 64<<20)), size
		before := allocated()
		resp, err := f.client.Do(q)
		if err == nil { // else it was cut off while it was sent, which also counts
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode/100 != 4 && r.Pattern != "/logout" {
				f.t.Errorf("%s with 64 MiB: %d %.500s", r.key(), resp.StatusCode, text)
			}
		}
		if used := allocated() - before; used > 24<<20 {
			f.t.Errorf("%s takes %d MiB for a body of 64 MiB", r.key(), used>>20)
		}
	}
}

// TestHostileAddressesAndHeaders: what is too long or too many is refused before it is
// handled.
func TestHostileAddressesAndHeaders(t *testing.T) {
	f := newFort(t, nil)
	long := strings.Repeat("a", 20_000)
	for _, path := range []string{"/v1/writes", "/api/v1/workflows", "/mcp", "/inbox", "/search", "/login", "/metrics", "/updates"} {
		for name, change := range map[string]func(*http.Request){
			"a long path":   func(q *http.Request) { q.URL.Path += "/" + long },
			"a long query":  func(q *http.Request) { q.URL.RawQuery = "q=" + long },
			"many queries":  func(q *http.Request) { q.URL.RawQuery = strings.Repeat("q=a&", 1900) },
			"no query":      func(q *http.Request) { q.URL.RawQuery = "%zz=%&;=;" },
			"many headers":  func(q *http.Request) { q.Header["X-A"] = slices.Repeat([]string{"b"}, 500) },
			"a long header": func(q *http.Request) { q.Header.Set("X-A", strings.Repeat(long, 6)) },
			"many cookies":  func(q *http.Request) { q.Header.Set("Cookie", strings.Repeat("a=b; ", 5_000)) },
			"many encodings": func(q *http.Request) {
				q.Header.Set("Accept", strings.Repeat("text/html;q=0.1,", 2_000))
				q.Header.Set("Accept-Language", strings.Repeat("de;q=0.1,", 2_000))
			},
			"a long preference": func(q *http.Request) { q.Header.Set("Prefer", strings.Repeat("wait=99999999999999999999,", 500)) },
			"a bad range":       func(q *http.Request) { q.Header.Set("Range", "bytes="+strings.Repeat("0-,", 5_000)) },
			"a bad cursor":      func(q *http.Request) { q.Header.Set("Last-Event-ID", long[:5_000]) },
			"a bad session":     func(q *http.Request) { q.Header.Set("Mcp-Session-Id", long[:5_000]) },
		} {
			q := f.request("GET", path, "", f.secret["operator@"+own])
			change(q)
			if a := f.do(q); a.status >= 500 || len(a.body) > 500_000 {
				t.Errorf("%s with %s: %s", path, name, a)
			}
		}
	}
}

// TestSlowCallersDelayNoOther: hundreds of clients that send half a request, or do not
// read their response, delay no one else, and the server still ends in time.
func TestSlowCallersDelayNoOther(t *testing.T) {
	f := newFort(t, func(text string) string { return strings.Replace(text, "grace: 20s", "grace: 1s", 1) })
	auth := "Authorization: Bearer " + f.secret["operator@"+own] + "\r\n"
	for i := range 300 {
		begun := []string{
			"GET /inbox HTTP/1.1\r\nHost: local", "POST /v1/writes HTTP/1.1\r\nHost: localhost\r\n" + auth + "Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
			"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\nffff\r\n{", "GET /v1/events?after=start HTTP/1.1\r\nHost: localhost\r\n" + auth + "Accept: text/event-stream\r\n\r\n",
			"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\ntoken=", "POST /api/v1/workflows HTTP/1.1\r\nHost: localhost\r\n" + auth + "Content-Length: 9\r\n\r\n",
		}[i%6]
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, begun); err != nil {
			t.Fatal(err)
		}
	}
	if a := f.must(engine.RoleAgent, own, "POST", "/v1/writes", intentOf(own, "create", "quick", "quick"), "Prefer", "wait=30"); a.field("status") != "verified" {
		t.Errorf("another actor: %s", a)
	}
	if a := f.as(engine.RoleReviewer, own, "GET", "/inbox", ""); a.status != http.StatusOK {
		t.Errorf("a person: %s", a)
	}
}
