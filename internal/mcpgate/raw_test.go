package mcpgate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

const (
	rawInitialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
	rawInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	rawLast        = `{"jsonrpc":"2.0","id":9999,"method":"prompts/list"}`
)

// raw is a session over stdio whose client sends text.
type raw struct {
	t       *testing.T
	to      *io.PipeWriter
	answers *bufio.Scanner
	done    chan error
}

func (b *bench) raw() *raw {
	b.t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	s := &raw{t: b.t, to: toServer, answers: bufio.NewScanner(fromServer), done: make(chan error, 1)}
	s.answers.Buffer(nil, 4<<20)
	go func() {
		s.done <- b.gate.Speak(context.Background(), agent("acme"), in, out)
		_ = out.Close()
	}()
	b.t.Cleanup(s.close)
	return s
}

// ask sends a message, and waits for the response to the request id, if it is not 0.
func (s *raw) ask(id int, text string) string {
	s.t.Helper()
	if _, err := io.WriteString(s.to, text+"\n"); err != nil {
		s.t.Fatalf("%.200s: %v", text, err)
	}
	for id != 0 && s.answers.Scan() {
		if answered(s.t, s.answers.Bytes(), id) {
			return s.answers.Text()
		}
	}
	if id != 0 {
		s.t.Fatalf("no answer to %.200s", text)
	}
	return ""
}

func (s *raw) close() {
	_ = s.to.Close()
	for s.answers.Scan() { // until the server has closed its end
	}
	if err := <-s.done; err != nil {
		s.t.Errorf("stdio ended with %v", err)
	}
}

// TestRawMessagesOverStdio: each request gets a response, and the gateway still responds
// to a correct one afterwards.
func TestRawMessagesOverStdio(t *testing.T) {
	b, _ := shop(t, false, nil)
	s := b.raw()
	s.ask(1, rawInitialize)
	s.ask(0, rawInitialized)
	for _, m := range fakemcp.RawMessages(2) {
		s.ask(m.ID, m.Text)
	}
	if got := s.ask(9999, rawLast); !strings.Contains(got, `"prompts":[]`) {
		t.Errorf("afterwards: %s", got)
	}
}

// TestRawMessagesOverHTTP: likewise.
func TestRawMessagesOverHTTP(t *testing.T) {
	b, _ := shop(t, false, nil)
	s := httptest.NewServer(b.gate.HTTP(byTenant{}))
	t.Cleanup(s.Close)
	client, session := &http.Client{Timeout: time.Minute}, ""
	ask := func(text string, header http.Header) string {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, s.URL, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("acme", "x")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		if session != "" && header == nil {
			req.Header.Set("Mcp-Session-Id", session)
		}
		maps.Copy(req.Header, header)
		res, err := client.Do(req)
		if err != nil {
			t.Fatalf("%.200s: %v", text, err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("%.200s: %v", text, err)
		}
		if res.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%.200s: %d %s", text, res.StatusCode, body)
		}
		if session == "" {
			session = res.Header.Get("Mcp-Session-Id")
		}
		return string(body)
	}
	ask(rawInitialize, nil)
	ask(rawInitialized, nil)
	for _, m := range fakemcp.RawMessages(2) {
		ask(m.Text, nil)
	}
	if got := ask(rawLast, nil); !strings.Contains(got, `"prompts":[]`) {
		t.Errorf("afterwards: %s", got)
	}
	for _, m := range fakemcp.RawMessages(2) {
		ask(m.Alone())
	}
	if got := ask(fakemcp.RawMessage{Text: strings.Replace(rawLast, "}", `,"params":{}}`, 1)}.Alone()); !strings.Contains(got, `"prompts":[]`) {
		t.Errorf("without a session, afterwards: %s", got)
	}
}

// answered reports whether a message is the response to a request.
func answered(t *testing.T, message []byte, id int) bool {
	t.Helper()
	var m struct {
		ID     any             `json:"id"`
		Method string          `json:"method"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		t.Fatalf("%v: %.200s", err, message)
	}
	return m.Method == "" && (fmt.Sprint(m.ID) == fmt.Sprint(id) || m.ID == nil && m.Error != nil)
}
