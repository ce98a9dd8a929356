package receipt_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/signing"
)

// aStatement is a receipt with every optional part, of a verified write.
func aStatement(t *testing.T) (s receipt.Statement) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options())
		id := b.rechecked("verified", ledger.Event{Kind: ledger.EvRechecked, Rule: "recheck"})
		var err error
		if s, err = b.receipt(id, receipt.Options{Values: true, Head: &receipt.Head{Ledger: "l-1", Page: 3, Digest: receipt.Digest{SHA256: strings.Repeat("ab", 32)}, At: time.Unix(1, 0).UTC()}}); err != nil {
			t.Fatal(err)
		}
	})
	return s
}

// envelope is an envelope in JSON, for changes.
type envelope struct {
	PayloadType string            `json:"payloadType"`
	Payload     string            `json:"payload"`
	Signatures  []json.RawMessage `json:"signatures"`
}

// openssl, which shares no code with us, checks our receipts; both refuse an altered one.
func TestASecondImplementation(t *testing.T) {
	need.Program(t, "sh")
	need.Program(t, "openssl")
	key, other := newPair(t), newPair(t)
	good := key.signed(t, aStatement(t))
	payload := func(change func([]byte)) func(*envelope) {
		return func(e *envelope) {
			raw, _ := base64.StdEncoding.DecodeString(e.Payload)
			change(raw)
			e.Payload = base64.StdEncoding.EncodeToString(raw)
		}
	}
	signature := func(change func(sig []byte, id *string)) func(*envelope) {
		return func(e *envelope) {
			var s struct {
				KeyID string `json:"keyid"`
				Sig   []byte `json:"sig"`
			}
			_ = json.Unmarshal(e.Signatures[0], &s)
			change(s.Sig, &s.KeyID)
			e.Signatures[0], _ = json.Marshal(s)
		}
	}
	for name, c := range map[string]struct {
		by     pair
		change func(*envelope)
		passes bool
	}{
		"as it is":            {key, func(*envelope) {}, true},
		"the first byte":      {key, payload(func(b []byte) { b[0] ^= 1 }), false},
		"a byte of a value":   {key, payload(func(b []byte) { b[bytes.Index(b, []byte(`"verified"`))+1] = 'V' }), false},
		"the last byte":       {key, payload(func(b []byte) { b[len(b)-1] = ' ' }), false},
		"a payload cut short": {key, func(e *envelope) { e.Payload = e.Payload[:len(e.Payload)-8] }, false},
		"the signature":       {key, signature(func(sig []byte, _ *string) { sig[7] ^= 1 }), false},
		"its last byte":       {key, signature(func(sig []byte, _ *string) { sig[63] ^= 1 }), false},
		"the type":            {key, func(e *envelope) { e.PayloadType = "application/vnd.in-toto+jsoN" }, false},
		"the key's id":        {key, signature(func(_ []byte, id *string) { *id = other.signer.ID() }), false},
		"another key":         {other, func(*envelope) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var e envelope
			if err := json.Unmarshal(good, &e); err != nil {
				t.Fatal(err)
			}
			c.change(&e)
			altered, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			out, theirs := opensslSays(t, c.by.public, altered)
			_, ours := receipt.Verify(altered, c.by.keys)
			if (theirs == nil) != c.passes || (ours == nil) != c.passes {
				t.Errorf("passes: want %v; openssl says %v, we say %v", c.passes, theirs, ours)
			}
			if c.passes && base64.StdEncoding.EncodeToString(out) != e.Payload {
				t.Errorf("openssl read another payload: %s", out)
			}
		})
	}
}

func opensslSays(t *testing.T, public, text []byte) ([]byte, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pub")
	if err := os.WriteFile(file, public, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join("testdata", "verify.sh"), file)
	cmd.Stdin = bytes.NewReader(text)
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	return out.Bytes(), err
}

// The five lines of the documentation page do what the page says.
func TestThePageCanBeFollowed(t *testing.T) {
	need.Program(t, "sh")
	need.Program(t, "openssl")
	page, err := os.ReadFile(filepath.Join("..", "docs", "operate", "evidence.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sh\n")
	lines, _, found := strings.Cut(rest, "```")
	if n := strings.Count(lines, "\n"); !found || n != 5 {
		t.Fatalf("%d lines: %q", n, lines)
	}
	key := newPair(t)
	good := key.signed(t, aStatement(t))
	for text, want := range map[string]bool{string(good): true, strings.Replace(string(good), `"payload":"e`, `"payload":"f`, 1): false} {
		dir := t.TempDir()
		for name, content := range map[string]string{"receipt.json": text, "receipts.pem.pub": string(key.public)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", lines)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); (err == nil) != want {
			t.Errorf("passes: want %v: %v\n%s", want, err, out)
		}
	}
}

// contradictions are changes to a valid receipt, and where they are detected.
var contradictions = map[string]struct {
	change func(m map[string]any)
	reason string
}{
	"another frame":          {func(m map[string]any) { m["_type"] = "https://in-toto.io/Statement/v0.1" }, "_type"},
	"another predicate":      {func(m map[string]any) { m["predicateType"] = "https://slsa.dev/provenance/v1" }, "is no receipt of readback"},
	"a later version":        {func(m map[string]any) { m["predicateType"] = strings.TrimSuffix(receipt.PredicateType, "2") + "3" }, "another version of receipts"},
	"no subject":             {func(m map[string]any) { m["subject"] = []any{} }, "subject"},
	"two subjects":           {func(m map[string]any) { l := m["subject"].([]any); m["subject"] = append(l, l[0]) }, "there are 2"},
	"another subject":        {func(m map[string]any) { at(m, "subject", 0)["name"] = "wr_00000000000000000000000000000000" }, "is not that of write"},
	"no digest":              {func(m map[string]any) { at(m, "subject", 0, "digest")["sha256"] = "" }, "a SHA-256 in hex"},
	"a member more":          {func(m map[string]any) { at(m, "predicate")["approved"] = true }, "unknown object member name"},
	"a member less":          {func(m map[string]any) { delete(at(m, "predicate"), "tenant") }, "required"},
	"an empty one":           {func(m map[string]any) { at(m, "predicate")["trace"] = "" }, "not in the one form"},
	"a settlement":           {func(m map[string]any) { at(m, "predicate")["settlement"] = "accepted" }, "there is no receipt of"},
	"another settlement":     {func(m map[string]any) { at(m, "predicate")["settlement"] = "not_applied" }, "there is no receipt of"},
	"a verdict":              {func(m map[string]any) { at(m, "predicate")["verdict"] = "mismatched" }, "there is no receipt of"},
	"vacuous, and sent":      {vacuous, "before_send"},
	"a claim":                {func(m map[string]any) { at(m, "predicate")["claim"] = "all is well" }, "does not follow"},
	"an undoing":             {func(m map[string]any) { at(m, "predicate")["undoing"] = at(m, "subject", 0) }, "undoing"},
	"another value":          {func(m map[string]any) { at(m, "predicate", "observed")["value"] = "{}" }, "does not have the digest"},
	"another key's value":    {func(m map[string]any) { at(m, "predicate", "write", "business_key")["value"] = "{}" }, "does not have the digest"},
	"a strength":             {func(m map[string]any) { at(m, "predicate", "read")["strength"] = "" }, "strong or weak"},
	"an independence":        {func(m map[string]any) { at(m, "predicate", "read")["independent"] = "yes" }, "independent"},
	"no independence":        {func(m map[string]any) { delete(at(m, "predicate", "read"), "independent") }, "independent"},
	"no read":                {func(m map[string]any) { at(m, "predicate", "read")["agreeing"] = 0 }, "shows nothing"},
	"a type of write":        {func(m map[string]any) { at(m, "predicate", "write")["type"] = "guess" }, "is none"},
	"another structural key": {func(m map[string]any) { at(m, "predicate", "write")["structural_key"] = strings.Repeat("0", 64) }, "is not that of write"},
	"settled before":         {func(m map[string]any) { at(m, "predicate", "times")["settled"] = "1999-01-01T00:00:00Z" }, "before it was there"},
	"seen after the end":     {func(m map[string]any) { at(m, "predicate", "times")["seen"] = "2999-01-01T00:00:00Z" }, "before it was there, or seen"},
	"seen before, and sent":  {func(m map[string]any) { at(m, "predicate", "read")["before_send"] = true }, "1 sends were made"},
	"nothing seen":           {func(m map[string]any) { at(m, "predicate", "observed")["records"] = 0 }, "observed/records"},
	"deleted, and there":     {func(m map[string]any) { at(m, "predicate", "write")["type"] = "delete" }, "observed/records"},
	"absent, and from before": {func(m map[string]any) {
		cameToNothing(m)
		at(m, "predicate", "read")["before_send"] = true
	}, "is read after its last send"},
	"absent, and never sent": {func(m map[string]any) {
		cameToNothing(m)
		at(m, "predicate", "attempts")["sends"] = 0
		delete(at(m, "predicate", "times"), "first_send")
		delete(at(m, "predicate", "times"), "last_send")
	}, "nothing was sent"},
	"no time":               {func(m map[string]any) { delete(at(m, "predicate", "times"), "seen") }, "required"},
	"sends without a time":  {func(m map[string]any) { delete(at(m, "predicate", "times"), "last_send") }, "times of sends"},
	"more unsent than sent": {func(m map[string]any) { at(m, "predicate", "attempts")["unsent"] = 2 }, "cannot be"},
	"neither digest":        {func(m map[string]any) { at(m, "subject", 0)["digest"] = map[string]any{} }, "either a SHA-256"},
	"two digests": {func(m map[string]any) {
		at(m, "subject", 0, "digest")["hmac_sha256"] = "hmac:k1:" + strings.Repeat("ab", 32)
	}, "either a SHA-256"},
	"a plain one as keyed": {func(m map[string]any) {
		at(m, "subject", 0)["digest"] = map[string]any{"hmac_sha256": strings.Repeat("ab", 32)}
	}, "either a SHA-256"},
	"keyed with no key": {func(m map[string]any) {
		at(m, "subject", 0)["digest"] = map[string]any{"hmac_sha256": "hmac:" + strings.Repeat("ab", 32)}
	}, "either a SHA-256"},
	"keyed, and cut":        {func(m map[string]any) { at(m, "subject", 0)["digest"] = map[string]any{"hmac_sha256": "hmac:k1:abcd"} }, "either a SHA-256"},
	"no rule":               {func(m map[string]any) { at(m, "predicate", "by")["rule"] = "" }, "by/rule"},
	"no trace":              {func(m map[string]any) { at(m, "predicate")["trace"] = "../../" }, "trace"},
	"no events":             {func(m map[string]any) { at(m, "predicate", "ledger")["event"] = 0 }, "has events"},
	"a head":                {func(m map[string]any) { at(m, "predicate", "ledger", "head", "digest")["sha256"] = "ab" }, "ledger/head"},
	"rechecks":              {func(m map[string]any) { at(m, "predicate", "rechecks")["reads"] = 0 }, "rechecks"},
	"compared with nothing": {func(m map[string]any) { delete(at(m, "predicate"), "compared") }, "what was compared"},
	"no field compared":     {func(m map[string]any) { delete(at(m, "predicate", "compared"), "fields") }, "the business key at least"},
	"others":                {func(m map[string]any) { at(m, "predicate", "compared")["others"] = "all well" }, "compared/others"},
	"rules from nowhere":    {func(m map[string]any) { at(m, "predicate", "compared", "fields", 0)["from"] = "intent" }, "has rules from"},
	"not read at a time":    {func(m map[string]any) { delete(at(m, "predicate", "ledger"), "at") }, "ledger/at"},
	"pending, and overdue": {func(m map[string]any) {
		at(m, "predicate")["recheck"] = map[string]any{"state": "pending", "due": "1999-01-01T00:00:00Z", "until": "1999-01-01T00:00:00Z"}
	}, "recheck/state"},
	"over before it is due": {func(m map[string]any) {
		at(m, "predicate")["recheck"] = map[string]any{"state": "pending", "due": "2999-01-02T00:00:00Z", "until": "2999-01-01T00:00:00Z"}
	}, "ends before it is due"},
	"what a later read found": {func(m map[string]any) {
		at(m, "predicate", "rechecks")["found"] = []any{map[string]any{"path": "/a", "problem": "differs", "found": map[string]any{"digest": map[string]any{"sha256": strings.Repeat("0", 64)}, "value": "1"}}}
	}, "rechecks/found"},
	"changed by what":                  {func(m map[string]any) { at(m, "predicate", "rechecks")["changed_by"] = "ann" }, "is no write"},
	"more than the first version says": {func(m map[string]any) { m["predicateType"] = strings.TrimSuffix(receipt.PredicateType, "2") + "1" }, "do not exist in"},
}

// A receipt that contradicts itself is refused although the holder of the key signed it.
func TestWhatContradictsItself(t *testing.T) {
	key := newPair(t)
	s := aStatement(t)
	payload, err := s.Payload()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range contradictions {
		t.Run(name, func(t *testing.T) {
			var m map[string]any
			if err := json.Unmarshal(payload, &m); err != nil {
				t.Fatal(err)
			}
			c.change(m)
			changed, err := intent.Canonical(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := verify(t, key, changed); !errors.Is(err, receipt.ErrInvalid) || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v\nwant %v with: %s", err, receipt.ErrInvalid, c.reason)
			}
		})
	}
	for name, other := range map[string][]byte{
		"no JSON": []byte("verified"), "nothing": nil, "a list": []byte("[]"), "trailing": slices.Concat(payload, []byte(" ")),
		"white space": bytes.Replace(payload, []byte(","), []byte(", "), 1), "a member twice": bytes.Replace(payload, []byte(`{"_type"`), []byte(`{"_type":"x","_type"`), 1),
	} {
		if _, err := verify(t, key, other); !errors.Is(err, receipt.ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, receipt.ErrInvalid)
		}
	}
	if got, err := verify(t, key, payload); err != nil || !cmp.Equal(s, got) {
		t.Errorf("unchanged: %v\n%s", err, cmp.Diff(s, got))
	}
}

func verify(t *testing.T, key pair, payload []byte) (receipt.Statement, error) {
	t.Helper()
	e, err := key.signer.Sign(t.Context(), receipt.PayloadType, payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return receipt.Verify(text, key.keys)
}

// at returns the value at a path in decoded JSON.
func at(m map[string]any, path ...any) map[string]any {
	var v any = m
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			v = v.([]any)[step]
		}
	}
	return v.(map[string]any)
}

func cameToNothing(m map[string]any) {
	p := at(m, "predicate")
	p["settlement"], p["verdict"] = "not_applied", "absent"
	p["claim"] = "the destination was read after the last send, and showed no record of the write"
}

func vacuous(m map[string]any) {
	p := at(m, "predicate")
	p["verdict"] = "vacuous"
	p["claim"] = "the destination was read before anything was sent, showed what was declared, and nothing was sent"
}

func TestSignRefusesWhatContradictsItself(t *testing.T) {
	key := newPair(t)
	s := aStatement(t)
	s.Predicate.Settlement = "accepted"
	if _, err := s.Sign(t.Context(), key.signer); !errors.Is(err, receipt.ErrInvalid) {
		t.Errorf("signed: %v", err)
	}
	if _, err := new(receipt.Statement).Sign(t.Context(), key.signer); !errors.Is(err, receipt.ErrInvalid) {
		t.Errorf("signed nothing: %v", err)
	}
	if e, err := key.signer.Sign(t.Context(), "text/plain", []byte("{}")); err == nil {
		text, _ := e.Encode()
		if _, err := receipt.Verify(text, key.keys); !errors.Is(err, signing.ErrType) {
			t.Errorf("another type: %v", err)
		}
	}
}

// FuzzVerify signs any input: whatever passes is a receipt in its one form, without
// contradiction.
func FuzzVerify(f *testing.F) {
	key := newPair(f)
	good, err := os.ReadFile(filepath.Join("testdata", "payload-v2.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.TrimSpace(good))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if _, err := receipt.Verify(payload, key.keys); err == nil {
			t.Fatal("what is no envelope passed")
		}
		s, err := verify(t, key, payload)
		if err != nil {
			return
		}
		again, err := s.Payload()
		if err != nil || !bytes.Equal(again, payload) {
			t.Fatalf("it passed, and has another form: %s, %v\n%s", again, err, payload)
		}
	})
}

// The format of a receipt never changes within a version: these still pass.
func TestAReceiptOfEachVersion(t *testing.T) {
	key := newPair(t)
	for _, version := range []string{"v1", "v2"} {
		payload, err := os.ReadFile(filepath.Join("testdata", "payload-"+version+".json"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := verify(t, key, bytes.TrimSpace(payload))
		if err != nil || !strings.HasSuffix(s.PredicateType, version) {
			t.Errorf("%s: %v", s.PredicateType, err)
		}
	}
}

// A second program computes the digest of an intent by the script of the page, and so recognises
// its own receipt.
func TestTheDigestOfAnIntentOnThePage(t *testing.T) {
	need.Program(t, "node")
	page, err := os.ReadFile(filepath.Join("..", "docs", "operate", "evidence.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```js\n")
	script, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("there is no script")
	}
	file := filepath.Join(t.TempDir(), "digest.mjs")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	const head = `"tenant":"acme","workflow":"w","tool":"t","destination":"orders","kind":"order","key":{"order_id":"A-1"},"write":"update"`
	for reason, text := range map[string]string{
		"the least":             `{` + head + `,"expect":{"status":"open"}}`,
		"what has no part":      `{` + head + `,"expect":{"status":"open"},"step":"s","call":2,"deadline":"2030-01-01T00:00:00Z","correlation_id":"c","sensitive":["/status"],"context":{"model":"m"}}`,
		"defaults":              `{` + head + `,"expect":{"status":"open"},"count":1,"risk":"auto","reversibility":"pivot","on_mismatch":"escalate","absent":[],"payload":{}}`,
		"numbers and the rest":  `{` + head + `,"expect":{"n":1.0,"m":1e3,"f":0.1,"big":123456789012345680000,"t":"é \u2028\u0001","u":[{"b":null,"a":false}],"\ud83d\ude00":1,"\uffee":2}}`,
		"paths and comparisons": `{` + head + `,"expect":{"status":"open","x":1},"absent":["/z","/b","/\ud83d\ude00","/\uffee"],"ignore":["/q"],"compare":{"/status":[{"rule":"trim"},{"rule":"fold"}],"/x":[]},"count":2,"risk":"log","payload":{"p":0},"idempotency_key":"k"}`,
	} {
		w, err := intent.Decode([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		in := filepath.Join(t.TempDir(), "intent.json")
		if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "node", file, in).CombinedOutput()
		if want, _ := w.Digest(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: %v: %s, want %s", reason, err, out, want)
		}
	}
}
