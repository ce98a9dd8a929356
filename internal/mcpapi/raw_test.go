package mcpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/mcpapi"
)

// wire is a client that sends arbitrary messages.
type wire struct {
	t            *testing.T
	url, name    string
	session      string
	header       http.Header
	noVersion    bool
	stopAtHeader bool // disconnect as soon as the response begins
}

// response is one response: its status, its header and the last message in it.
type response struct {
	status  int
	header  http.Header
	body    string
	message struct {
		ID     any                 `json:"id"`
		Result *mcp.CallToolResult `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	lastEvent string
}

func (w *wire) do(method, body string) response {
	w.t.Helper()
	req, err := http.NewRequest(method, w.url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if !w.noVersion {
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	if w.session != "" {
		req.Header.Set("Mcp-Session-Id", w.session)
	}
	for name, values := range w.header {
		req.Header[name] = values
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if w.name != "" {
		req.SetBasicAuth("x", w.name)
	}
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	s := response{status: res.StatusCode, header: res.Header}
	if w.stopAtHeader {
		return s
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		s.stream(w.t, res.Body)
		return s
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	s.body = string(text)
	_ = json.Unmarshal(text, &s.message)
	return s
}

func (s *response) stream(t *testing.T, r io.Reader) {
	t.Helper()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			s.lastEvent = id
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "" {
			continue
		}
		s.body = data
		if strings.Contains(data, `"result"`) || strings.Contains(data, `"error"`) {
			if err := json.Unmarshal([]byte(data), &s.message); err != nil {
				t.Errorf("%v: %s", err, data)
			}
		}
	}
}

// open opens a session in the newest version that has them.
func (b *bench) open(url, name string) *wire {
	b.t.Helper()
	w := &wire{t: b.t, url: url, name: name}
	s := w.do(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`)
	if w.session = s.header.Get("Mcp-Session-Id"); s.status != http.StatusOK || w.session == "" {
		b.t.Fatalf("no session: %d %s", s.status, s.body)
	}
	if s := w.do(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); s.status != http.StatusAccepted {
		b.t.Fatalf("not initialized: %d %s", s.status, s.body)
	}
	return w
}

// callBody is a call of a tool as it goes over the wire.
func callBody(id, tool, arguments, meta string) string {
	if meta != "" {
		meta = `,"_meta":` + meta
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, tool, arguments, meta)
}

// result is the outcome in a response.
func (b *bench) result(s response) mcpapi.Result {
	b.t.Helper()
	if s.status != http.StatusOK || s.message.Result == nil {
		b.t.Fatalf("no result: %d %s", s.status, s.body)
	}
	return b.read(s.message.Result)
}
