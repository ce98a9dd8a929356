package sealed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/sealed"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

func vault(t *testing.T, id string) *redact.Vault {
	t.Helper()
	v, err := redact.New([]redact.Key{{ID: id, Secret: []byte("a key of 32 bytes for the tests!")}},
		redact.Options{Patterns: []redact.Pattern{{Name: "mail", Regexp: regexp.MustCompile(`[a-z]+@hot\.example`)}}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func document(kind, body string) ledger.Document {
	return ledger.Document{Tenant: "acme", Kind: kind, ID: "p-1", Collection: "p-1", Trace: "of ada@hot.example", Due: time.Unix(1, 0), Body: json.RawMessage(body)}
}

// TestDocumentsAreSealedWhole: the ledger stores no plain text of a document, the writer reads it
// back to the byte, and the same terms find it.
func TestDocumentsAreSealedWhole(t *testing.T) {
	const body = `{"b": 1e400,"a":"ada@hot.example <&>","n":[null, {}]}` // with what a JSON encoder would change
	for _, kind := range []string{"workflow", "step", "saga"} {
		t.Run(kind, func(t *testing.T) {
			l := ledger.NewMemory()
			s := sealed.New(l, vault(t, "k1"), nil)
			committed, err := s.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{document(kind, body)}})
			if err != nil {
				t.Fatal(err)
			}
			kept, err := l.Document(t.Context(), "acme", kind, "p-1")
			if err != nil {
				t.Fatal(err)
			}
			if text := string(kept.Body) + kept.Trace; strings.Contains(text, "hot") || strings.Contains(text, "1e400") || !strings.Contains(string(kept.Body), "rbs1:k1:") {
				t.Errorf("the ledger keeps %s, %q", kept.Body, kept.Trace)
			}
			got, err := s.Document(t.Context(), "acme", kind, "p-1")
			if err != nil || string(got.Body) != body || string(committed.Documents[0].Body) != body {
				t.Errorf("it is read as %s and stored as %s: %v", got.Body, committed.Documents[0].Body, err)
			}
			found, n, err := s.FindDocuments(t.Context(), ledger.DocumentQuery{Tenant: "acme", Kind: kind, Trace: "of ada@hot.example"})
			if err != nil || n != 1 || string(found[0].Body) != body {
				t.Errorf("%d are found by its trace: %v, %v", n, found, err)
			}
			due, _, err := s.DueDocuments(t.Context(), kind, 10)
			if err != nil || len(due) != 1 || string(due[0].Body) != body {
				t.Errorf("due are %v, %v", due, err)
			}
			got.Body = json.RawMessage(`{"again":true}`)
			if _, err := s.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{got}}); err != nil {
				t.Errorf("it cannot be committed again: %v", err)
			}
		})
	}
}

// TestOtherDocumentsStay: documents that are not of the gate or of sagas are unchanged, and one
// from before there were keys is read unchanged.
func TestOtherDocumentsStay(t *testing.T) {
	l := ledger.NewMemory()
	s := sealed.New(l, vault(t, "k1"), nil)
	if _, err := s.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{document("audit", `{"a":1}`)}}); err != nil {
		t.Fatal(err)
	}
	if kept, err := l.Document(t.Context(), "acme", "audit", "p-1"); err != nil || string(kept.Body) != `{"a":1}` {
		t.Errorf("%s, %v", kept.Body, err)
	}
	if _, err := l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{document("saga", `{"a":2}`)}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Document(t.Context(), "acme", "saga", "p-1"); err != nil || string(got.Body) != `{"a":2}` {
		t.Errorf("%s, %v", got.Body, err)
	}
}

// TestADocumentCannotBeMovedOrOpenedByOthers: a sealed body is bound to its tenant, kind and
// name, and to its key. One that cannot be opened does not delay others, and is not sealed again.
func TestADocumentCannotBeMovedOrOpenedByOthers(t *testing.T) {
	l := ledger.NewMemory()
	s := sealed.New(l, vault(t, "k1"), nil)
	if _, err := s.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{document("saga", `{"a":1}`)}}); err != nil {
		t.Fatal(err)
	}
	kept, err := l.Document(t.Context(), "acme", "saga", "p-1")
	if err != nil {
		t.Fatal(err)
	}
	moved := kept
	moved.ID, moved.Collection, moved.Version = "p-2", "p-2", 0
	if _, err := l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{moved}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Document(t.Context(), "acme", "saga", "p-2"); !errors.Is(err, redact.ErrToken) {
		t.Errorf("a moved document is read: %s, %v", got.Body, err)
	}
	other := sealed.New(l, vault(t, "k2"), nil)
	if got, err := other.Document(t.Context(), "acme", "saga", "p-1"); !errors.Is(err, redact.ErrNoKey) {
		t.Errorf("without its key it is read: %s, %v", got.Body, err)
	}
	due, _, err := other.DueDocuments(t.Context(), "saga", 10)
	if err != nil || len(due) != 2 {
		t.Fatalf("%v, %v", due, err)
	}
	for _, p := range due {
		if _, err := other.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{p}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Document(t.Context(), "acme", "saga", "p-1"); err != nil || string(got.Body) != `{"a":1}` {
		t.Errorf("put back, it is %s, %v", got.Body, err)
	}
}

// TestClean: the output has digests in place of sensitive values, at any depth, and is otherwise
// the same.
func TestClean(t *testing.T) {
	s := sealed.New(ledger.NewMemory(), vault(t, "k1"), nil)
	type state string
	type result struct {
		State state
		Text  string
		At    time.Time
		Doc   json.RawMessage
		Inner *result
		List  []string
		Any   any
	}
	w := intent.WriteIntent{Expect: intent.Fields{"owner": "Mistral"}, Sensitive: []string{"/owner"}}
	at := time.Unix(5, 0)
	v := result{State: "mistral", Text: "for Mistral", At: at, Doc: json.RawMessage(`{ "a": "MISTRAL", "n": 1 }`), List: []string{"plain", "ada@hot.example"},
		Inner: &result{Text: "plain", Doc: json.RawMessage(`{ "a": 1 }`)}, Any: map[string]any{"x": []any{"Mistral"}}}
	s.Clean("acme", &v, w)
	digest := strings.TrimPrefix(v.Text, "for ")
	mail := v.List[1]
	if !strings.HasPrefix(digest, "redacted:") || !strings.HasPrefix(mail, "redacted:") || digest == mail {
		t.Fatalf("%q, %q", digest, mail)
	}
	if text := string(v.Doc); strings.Contains(strings.ToLower(text), "mistral") {
		t.Errorf("the document is %s", text)
	}
	v.Doc = nil
	want := result{State: "mistral", Text: "for " + digest, At: at, List: []string{"plain", mail}, Inner: &result{Text: "plain", Doc: json.RawMessage(`{ "a": 1 }`)},
		Any: map[string]any{"x": []any{digest}}}
	if d := cmp.Diff(want, v); d != "" {
		t.Error(d)
	}
}

// TestNamesStayNames: an answer must keep ids that contain a short value by chance. A name that
// is a sensitive value, or contains a longer one, must not be shown.
func TestNamesStayNames(t *testing.T) {
	type policy struct{ PolicyID, PolicyName string }
	type answer struct {
		StepID, LeaseID, ApprovalURL, IdempotencyKey, IntentDigest, Reason string
		PolicyIDs                                                          []string
		Policies                                                           []policy
	}
	w := intent.WriteIntent{Payload: intent.Fields{"cvv": "123", "owner": "Lovelace", "vip": true}, Sensitive: []string{"/cvv", "/owner", "/vip"}}
	s := sealed.New(ledger.NewMemory(), vault(t, "k1"), nil)
	own := answer{StepID: "step-123", LeaseID: "ls_0a123f", ApprovalURL: "https://desk.example/123", IdempotencyKey: "pay:9123", IntentDigest: "77123aa",
		PolicyIDs: []string{"p123"}, Policies: []policy{{"p123", "true"}}, Reason: "it is fine"}
	got := own
	got.PolicyIDs, got.Policies = []string{"p123"}, []policy{{"p123", "fine"}}
	own.Policies[0].PolicyName = "fine"
	s.Clean("acme", &got, w)
	if diff := cmp.Diff(own, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	exposing := answer{StepID: "123", LeaseID: "of lovelace", ApprovalURL: "https://desk.example/Lovelace", IdempotencyKey: "ada@hot.example",
		PolicyIDs: []string{"p", "Lovelace"}, Policies: []policy{{"123", "of 0123"}}, Reason: "0123"}
	s.Clean("acme", &exposing, w)
	if text := fmt.Sprintf("%+v", exposing); strings.Contains(text, "123") || strings.Contains(strings.ToLower(text), "lovelace") || strings.Contains(text, "hot") {
		t.Errorf("shown: %s", text)
	}
}

// TestWritesAreSealedWithTheirDocuments: what a batch says of a new or an existing write is
// stored as the engine would store it.
func TestWritesAreSealedWithTheirDocuments(t *testing.T) {
	l := ledger.NewMemory()
	s := sealed.New(l, vault(t, "k1"), nil)
	rec, err := ledger.NewRecord(intent.WriteIntent{Tenant: "acme", Workflow: "wf", Tool: "t", Destination: "shop", Kind: "order", Write: intent.Create,
		Key: intent.Fields{"id": "1"}, Expect: intent.Fields{"owner": "Lovelace"}, Sensitive: []string{"/owner"}})
	if err != nil {
		t.Fatal(err)
	}
	rec.Delegated, rec.KeyDigest, rec.CorrelationID = true, "", "of ada@hot.example"
	_, err = s.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{document("step", `{}`)}, Reserve: &ledger.Reservation{Record: rec,
		Events: []ledger.Event{{Kind: ledger.EvDelegated, By: "bot", Rule: "gate", Reason: "asked for Lovelace"}}}})
	if err != nil {
		t.Fatal(err)
	}
	step := document("step", `{"done":true}`)
	step.Version = 1
	_, err = s.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{step}, Append: []ledger.Appending{{ID: rec.ID, Fence: 1, Events: []ledger.Event{
		{Kind: ledger.EvRead, Verdict: "verified", Effect: true, Rule: "look", Reason: "found Lovelace", Ref: "r/lovelace", URL: "https://shop.example/Lovelace", Evidence: json.RawMessage(`{"records":[{"ref":"1","fields":{"owner":"Lovelace"}}]}`)},
		{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "bot", Rule: "reported", Verdict: "verified", Reason: "says Lovelace"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := l.Get(t.Context(), "acme", rec.ID)
	if err != nil {
		t.Fatal(err)
	}
	events, err := l.Events(t.Context(), "acme", rec.ID)
	if err != nil || len(events) < 3 {
		t.Fatal(events, err)
	}
	text, err := json.Marshal(map[string]any{"record": kept, "events": events})
	if err != nil {
		t.Fatal(err)
	}
	if lower := strings.ToLower(string(text)); strings.Contains(lower, "lovelace") || strings.Contains(lower, "hot.example") || !strings.Contains(lower, "rbs1:k1:") {
		t.Errorf("the ledger keeps %s", text)
	}
}
