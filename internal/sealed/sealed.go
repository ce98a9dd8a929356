package sealed

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// Ledger is the part of a ledger that the gate and sagas use.
type Ledger interface {
	ledger.Documents
	Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error)
}

// kinds are the documents that hold callers' text. Others are stored unchanged.
var kinds = []string{"workflow", "step", "saga"}

// Store is a ledger with a vault in front of it. It is safe for concurrent use.
type Store struct {
	Ledger
	vault *redact.Vault
	reg   *connectors.Registry
}

// New returns a store. Profiles declare what destinations mark as sensitive; reg may be nil for
// callers that only read.
func New(l Ledger, v *redact.Vault, reg *connectors.Registry) *Store { return &Store{l, v, reg} }

// sealedBody is the stored body of a document.
type sealedBody struct {
	Sealed string `json:"sealed"`
}

func about(p ledger.Document) string { return "paper\n" + p.Kind + "\n" + p.ID }

// Commit implements [ledger.Documents].
func (s *Store) Commit(ctx context.Context, f ledger.Batch) (ledger.Committed, error) {
	given := f.Documents
	f.Documents = slices.Clone(given)
	var err error
	for i := range f.Documents {
		if f.Documents[i], err = s.seal(f.Documents[i]); err != nil {
			return ledger.Committed{}, err
		}
	}
	if f.Reserve != nil {
		r := *f.Reserve
		r.Record.CorrelationID = s.word(r.Record.Tenant, r.Record.CorrelationID)
		scope := s.scope(r.Record)
		if r.Record.Intent, err = sealedIntent(scope, r.Record); err != nil {
			return ledger.Committed{}, err
		}
		r.Record.Digest, r.Record.Digests = scope.IntentDigest(r.Record.Digest, r.Record.Intent)
		if r.Events, err = sealedEvents(scope, r.Events); err != nil {
			return ledger.Committed{}, err
		}
		f.Reserve = &r
	}
	if f.Append, err = s.appended(ctx, f); err != nil {
		return ledger.Committed{}, err
	}
	committed, err := s.Ledger.Commit(ctx, f)
	for i := range committed.Documents {
		if i < len(given) {
			committed.Documents[i].Body, committed.Documents[i].Trace = given[i].Body, given[i].Trace
		}
	}
	return committed, err
}

// appended returns the events of a batch with sensitive values sealed: they belong to existing
// writes.
func (s *Store) appended(ctx context.Context, f ledger.Batch) ([]ledger.Appending, error) {
	all := slices.Clone(f.Append)
	for i := range all {
		tenant := tenantOf(f)
		rec, err := s.Get(ctx, tenant, all[i].ID)
		if err != nil {
			return nil, err
		}
		scope := s.scope(rec)
		if _, err := scope.OpenIntent(rec.Intent); err != nil && !rec.Delegated {
			return nil, err
		}
		if all[i].Events, err = sealedEvents(scope, all[i].Events); err != nil {
			return nil, err
		}
		for j := range all[i].Events { // an approval is for the digest that the write has
			if e := &all[i].Events[j]; e.Digest != "" && s.vault.SameIntent(tenant, e.Digest, rec.Digest) {
				e.Digest = rec.Digest
			}
		}
	}
	return all, nil
}

// tenantOf returns the tenant of a batch: all of it belongs to one.
func tenantOf(f ledger.Batch) string {
	for _, p := range slices.Concat(f.Documents, f.Unchanged) {
		return p.Tenant
	}
	if f.Reserve != nil {
		return f.Reserve.Record.Tenant
	}
	return ""
}

func (s *Store) seal(p ledger.Document) (ledger.Document, error) {
	if !slices.Contains(kinds, p.Kind) {
		return p, nil
	}
	p.Trace = s.word(p.Tenant, p.Trace)
	if _, already := tokenIn(p.Body); already {
		return p, nil // it could not be opened, and is written back unchanged
	}
	packed, err := pack(p.Body)
	if err != nil {
		return p, err
	}
	token, err := s.vault.Scope(p.Tenant, about(p)).Seal(packed)
	if err != nil {
		return p, err
	}
	p.Body, err = json.Marshal(sealedBody{token})
	return p, err
}

// word returns a search term with sensitive values replaced: the same term always gives the same
// result.
func (s *Store) word(tenant, word string) string { return s.vault.Scope(tenant, "").Text(word) }

func tokenIn(body json.RawMessage) (string, bool) {
	var b sealedBody
	if !bytes.HasPrefix(body, []byte(`{"sealed":"`+redact.Prefix)) || json.Unmarshal(body, &b) != nil {
		return "", false
	}
	return b.Sealed, true
}

// open opens a document. One from before there was a vault is returned unchanged.
func (s *Store) open(p ledger.Document) (ledger.Document, error) {
	token, is := tokenIn(p.Body)
	if !is || !slices.Contains(kinds, p.Kind) {
		return p, nil
	}
	packed, err := s.vault.Scope(p.Tenant, about(p)).OpenName(token)
	if err != nil {
		return p, fmt.Errorf("document %s %q cannot be opened: %w", p.Kind, p.ID, err)
	}
	if p.Body, err = unpack(packed); err != nil {
		return p, fmt.Errorf("%w: document %s %q: %w", ledger.ErrCorrupt, p.Kind, p.ID, err)
	}
	return p, nil
}

// pack makes a text of a body. It preserves the body to the byte and compresses it first, since
// sealing makes it larger and documents have a size limit.
func pack(body json.RawMessage) (string, error) {
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.BestSpeed)
	if err != nil {
		return "", err
	}
	if _, err = w.Write(body); err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", err
	}
	return base64.RawStdEncoding.EncodeToString(small.Bytes()), nil
}

func unpack(packed string) (json.RawMessage, error) {
	small, err := base64.RawStdEncoding.DecodeString(packed)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(small)), maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("it has more than %d bytes", maxBody)
	}
	return body, err
}

// Document implements [ledger.Documents].
func (s *Store) Document(ctx context.Context, tenant, kind, id string) (ledger.Document, error) {
	p, err := s.Ledger.Document(ctx, tenant, kind, id)
	if err != nil {
		return p, err
	}
	return s.open(p)
}

// FindDocuments implements [ledger.Documents].
func (s *Store) FindDocuments(ctx context.Context, q ledger.DocumentQuery) ([]ledger.Document, int, error) {
	if slices.Contains(kinds, q.Kind) {
		q.Trace = s.word(q.Tenant, q.Trace)
	}
	found, total, err := s.Ledger.FindDocuments(ctx, q)
	for i := range found {
		if err == nil {
			found[i], err = s.open(found[i])
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return found, total, nil
}

// DueDocuments implements [ledger.Documents]. One that cannot be opened is returned sealed: it
// must not delay the others, and the worker that takes it gets the error.
func (s *Store) DueDocuments(ctx context.Context, kind string, limit int) ([]ledger.Document, time.Time, error) {
	due, now, err := s.Ledger.DueDocuments(ctx, kind, limit)
	for i, p := range due {
		if opened, err := s.open(p); err == nil {
			due[i] = opened
		}
	}
	return due, now, err
}
