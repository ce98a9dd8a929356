package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/signing"
)

// collector is where a program tells OpenTelemetry what happens: spans with their
// arguments and results, numbers and verdicts, as they come over the wire.
type collector struct {
	traces, rest lines
	url          string
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // who broke off has said nothing
		if r.Header.Get("Content-Encoding") == "gzip" {
			if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, _ = io.ReadAll(z)
			}
		}
		if strings.HasSuffix(r.URL.Path, "/traces") {
			_, _ = c.traces.Write(body)
			return
		}
		_, _ = c.rest.Write(body)
	}))
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

// mineEvidence is what else is made of writes: what is told of them, receipts, and
// the chain of their events.
const mineEvidence = `telemetry: {endpoint: %q, content: true, headers_env: TELEMETRY_HEADERS}
audit: {seal: 100ms, heads: {every: 1s, key_env: AUDIT_KEY, keep: [{file: heads.jsonl}]}}
gate: {rules: %q}
destinations:
`

// mineRules ask about what steps are called with, and say of each match what it was
// that matched.
const mineRules = `version: 1
rules:
  - {id: mails, reason: it is about somebody, when: 'has(step.input.q) && step.input.q != "nobody"', decision: allow}
  - {id: owners, reason: it is about an owner, when: 'has(intent.expect.owner) && intent.expect.owner != "nobody"', decision: allow}
`

// evidence are the variables of the environment that it needs; their secrets are
// canaries.
func (m *mine) evidence(t *testing.T) []string {
	private, public, err := signing.Generate()
	if err != nil {
		t.Fatal(err)
	}
	m.headsKey = string(public)
	m.plant("the private key of heads", bare(string(private)))
	return []string{"TELEMETRY_HEADERS", "Authorization=" + m.password("header of telemetry"), "AUDIT_KEY", string(private)}
}

// bare is what stands in a PEM, without its lines.
func bare(pem string) string {
	lines := strings.Split(strings.TrimSpace(pem), "\n")
	return strings.Join(lines[1:len(lines)-1], "")
}

// evidenced are the outputs of all that: receipts as the door gives them, with all
// the values that they may hold, and heads of the chain.
func (m *mine) evidenced() map[string]string {
	m.t.Helper()
	var receipts strings.Builder
	for _, id := range m.ids {
		if strings.HasPrefix(id, "wr_") {
			_, _ = fmt.Fprintln(&receipts, m.as("auditor", own, "GET", "/v1/writes/"+id+"/receipt?values=true", "").body)
		}
	}
	eventually(m.t, "a head of the chain", func() bool {
		text, err := os.ReadFile(filepath.Join(m.p.dir, "heads.jsonl"))
		return err == nil && len(text) > 0
	})
	heads, err := os.ReadFile(filepath.Join(m.p.dir, "heads.jsonl"))
	if err != nil {
		m.t.Fatal(err)
	}
	eventually(m.t, "spans", func() bool { return len(m.told.traces.String()) > 20_000 })
	return map[string]string{"receipts": receipts.String(), "the heads of the chain": string(heads), "spans": m.told.traces.String(), "numbers and verdicts": m.told.rest.String()}
}

// compared fails unless a person can see, without seeing values, that what was
// wanted was seen, and in another write that it was not.
func (m *mine) compared() {
	m.t.Helper()
	var same struct {
		Intent   struct{ Expect map[string]any }
		Evidence struct {
			Records []struct{ Fields map[string]any }
		}
	}
	var other struct {
		Mismatches []struct{ Path, Want, Got string }
	}
	for step, into := range map[string]any{"happy": &same, "normal": &other} {
		if err := json.Unmarshal([]byte(m.must("reviewer", own, "GET", "/v1/writes/"+m.ids[step]+"/record", "").body), into); err != nil {
			m.t.Fatal(err)
		}
	}
	wanted, _ := same.Intent.Expect["customer"].(string)
	if len(same.Evidence.Records) != 1 || !strings.HasPrefix(wanted, "redacted:") || same.Evidence.Records[0].Fields["customer"] != wanted {
		m.t.Errorf("equal values are shown as %q and %v", wanted, same.Evidence.Records)
	}
	if len(other.Mismatches) != 1 || !strings.HasPrefix(other.Mismatches[0].Want, "redacted:") || !strings.HasPrefix(other.Mismatches[0].Got, "redacted:") || other.Mismatches[0].Want == other.Mismatches[0].Got {
		m.t.Errorf("values that differ are shown as %+v", other.Mismatches)
	}
}
