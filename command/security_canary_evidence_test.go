package command

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/signing"
)

// collector receives the telemetry of a program: spans with their arguments and results,
// numbers and verdicts, as they come over the wire.
type collector struct {
	traces, rest lines
	url          string
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a client that disconnected sent nothing
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

// mineEvidence covers the other outputs about writes: telemetry, receipts, and the chain
// of their events.
const mineEvidence = `telemetry: {endpoint: %q, content: true, headers_env: TELEMETRY_HEADERS}
audit: {seal: 100ms, heads: {every: 1s, key_env: AUDIT_KEY, keep: [{file: heads.jsonl}]}}
gate: {rules: %q}
destinations:
`

// mineRules are rules on the inputs of steps, whose reasons contain the matched value.
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

// bare is the content of a PEM, without its lines.
func bare(pem string) string {
	lines := strings.Split(strings.TrimSpace(pem), "\n")
	return strings.Join(lines[1:len(lines)-1], "")
}

// evidenced are the outputs of all that: receipts as the API returns them, with all the
// values that they may hold, and heads of the chain.
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
	eventually(m.t, "spans", func() bool { return len(m.exported.traces.String()) > 20_000 })
	return map[string]string{"receipts": receipts.String(), "the heads of the chain": string(heads), "spans": m.exported.traces.String(), "numbers and verdicts": m.exported.rest.String()}
}

// compared fails unless a reviewer can see, without seeing values, that in one write the
// wanted values were observed, and in another they were not.
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

// guesses plants the plain digests of all sensitive inputs, and of all business keys:
// against any of them an unknown value could be found by trying. The digest key of the
// ledger is planted as well, since it makes that possible.
func (m *mine) guesses() {
	m.t.Helper()
	var keys []redact.Key
	for id, name := range map[string]string{"now": "the key", "before": "the key before"} {
		secret := sha256.Sum256([]byte(name))
		keys = append(keys, redact.Key{ID: id, Secret: secret[:]})
	}
	vault, err := redact.New(keys, redact.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	l, err := sqlite.Open(m.t.Context(), m.p.ledger, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	all, err := l.List(m.t.Context(), ledger.Filter{Tenant: own, Limit: 1000})
	if err != nil {
		m.t.Fatal(err)
	}
	n := 0
	for _, r := range all {
		if r.Delegated {
			continue
		}
		w, err := vault.Scope(own, string(r.ID)).OpenIntent(r.Intent)
		if err != nil {
			m.t.Fatal(err)
		}
		about, err := w.KeyDigest()
		if err != nil {
			m.t.Fatal(err)
		}
		m.plant("digest of the business key of "+string(r.ID), about)
		if !redact.Sealed(r.Intent) {
			continue
		}
		digest, err := w.Digest()
		if err != nil {
			m.t.Fatal(err)
		}
		m.plant("digest of "+string(r.ID), digest)
		n++
	}
	if n < 20 {
		m.t.Errorf("%d writes with sensitive values: the test has shrunk", n)
	}
	id, sealed, _ := strings.Cut(m.p.digestKey(), ":")
	key, _, err := vault.OpenDigestKey(id, sealed)
	if err != nil {
		m.t.Fatalf("the digest key is sealed under %q: %v", id, err)
	}
	m.plant("the digest key of the ledger", hex.EncodeToString(key))
	m.plant("the digest key of the ledger, its bytes", string(key))
}

// guess plants the plain digest of a step's input.
func (m *mine) guess(step, body string) {
	var asked struct {
		Input any `json:"step_input"`
		Tool  any `json:"tool_context"`
	}
	err := json.Unmarshal([]byte(body), &asked)
	sum := func(parts ...[]byte) []byte {
		h := sha256.New()
		for _, p := range parts {
			_, _ = fmt.Fprintf(h, "%d:%s", len(p), p)
		}
		return []byte(hex.EncodeToString(h.Sum(nil)))
	}
	var digests [][]byte
	for _, part := range []any{asked.Input, asked.Tool} {
		text, failed := intent.Canonical(part)
		err = errors.Join(err, failed)
		digests = append(digests, sum(text))
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.plant("digest of the input of step "+step, string(digests[0]))
	m.plant("digest of step "+step, string(sum(digests[0], digests[1], nil)))
}
