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

// Ledger is what is sealed: the part of a ledger that the gate and sagas use.
type Ledger interface {
	ledger.Papers
	Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error)
}

// kinds are the papers that hold what callers said. Others are kept as they come.
var kinds = []string{"workflow", "step", "saga"}

// Store is a ledger with a vault before it. It is safe for concurrent use.
type Store struct {
	Ledger
	vault *redact.Vault
	reg   *connectors.Registry
}

// New makes a store. What destinations mark as sensitive is in their profiles; reg
// may be nil for whoever only looks.
func New(l Ledger, v *redact.Vault, reg *connectors.Registry) *Store { return &Store{l, v, reg} }

// sealedBody is the body of a paper in the ledger.
type sealedBody struct {
	Sealed string `json:"sealed"`
}

func about(p ledger.Paper) string { return "paper\n" + p.Kind + "\n" + p.ID }

// File implements [ledger.Papers].
func (s *Store) File(ctx context.Context, f ledger.Filing) (ledger.Filed, error) {
	given := f.Papers
	f.Papers = slices.Clone(given)
	var err error
	for i := range f.Papers {
		if f.Papers[i], err = s.seal(f.Papers[i]); err != nil {
			return ledger.Filed{}, err
		}
	}
	if f.Reserve != nil {
		r := *f.Reserve
		r.Record.CorrelationID = s.word(r.Record.Tenant, r.Record.CorrelationID)
		scope := s.scope(r.Record)
		if r.Record.Intent, err = sealedIntent(scope, r.Record); err != nil {
			return ledger.Filed{}, err
		}
		if r.Events, err = sealedEvents(scope, r.Events); err != nil {
			return ledger.Filed{}, err
		}
		f.Reserve = &r
	}
	if f.Append, err = s.appended(ctx, f); err != nil {
		return ledger.Filed{}, err
	}
	filed, err := s.Ledger.File(ctx, f)
	for i := range filed.Papers {
		if i < len(given) {
			filed.Papers[i].Body, filed.Papers[i].Trace = given[i].Body, given[i].Trace
		}
	}
	return filed, err
}

// appended are the events of a filing with what is sensitive sealed: they belong
// to writes that are there already.
func (s *Store) appended(ctx context.Context, f ledger.Filing) ([]ledger.Appending, error) {
	all := slices.Clone(f.Append)
	for i := range all {
		tenant := tenantOf(f)
		rec, err := s.Get(ctx, tenant, all[i].ID)
		if err != nil {
			return nil, err
		}
		scope := s.scope(rec)
		if _, err := scope.OpenIntent(rec.Intent); err != nil && !rec.Entrusted {
			return nil, err
		}
		if all[i].Events, err = sealedEvents(scope, all[i].Events); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// tenantOf is the tenant of a filing: all of it belongs to one.
func tenantOf(f ledger.Filing) string {
	for _, p := range slices.Concat(f.Papers, f.Unchanged) {
		return p.Tenant
	}
	if f.Reserve != nil {
		return f.Reserve.Record.Tenant
	}
	return ""
}

func (s *Store) seal(p ledger.Paper) (ledger.Paper, error) {
	if !slices.Contains(kinds, p.Kind) {
		return p, nil
	}
	p.Trace = s.word(p.Tenant, p.Trace)
	if _, already := tokenIn(p.Body); already {
		return p, nil // it could not be opened, and is put back
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

// word is a word that papers are found by, with what is sensitive in it replaced:
// the same word always by the same.
func (s *Store) word(tenant, word string) string { return s.vault.Scope(tenant, "").Text(word) }

func tokenIn(body json.RawMessage) (string, bool) {
	var b sealedBody
	if !bytes.HasPrefix(body, []byte(`{"sealed":"`+redact.Prefix)) || json.Unmarshal(body, &b) != nil {
		return "", false
	}
	return b.Sealed, true
}

// open opens a paper. One of before there was a vault is as it was.
func (s *Store) open(p ledger.Paper) (ledger.Paper, error) {
	token, is := tokenIn(p.Body)
	if !is || !slices.Contains(kinds, p.Kind) {
		return p, nil
	}
	packed, err := s.vault.Scope(p.Tenant, about(p)).OpenName(token)
	if err != nil {
		return p, fmt.Errorf("paper %s %q cannot be opened: %w", p.Kind, p.ID, err)
	}
	if p.Body, err = unpack(packed); err != nil {
		return p, fmt.Errorf("%w: paper %s %q: %w", ledger.ErrCorrupt, p.Kind, p.ID, err)
	}
	return p, nil
}

// pack makes a text of a body: what is in it stays so to the byte, and is
// made smaller first, since sealing makes it larger and a paper has a bound.
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

// Paper implements [ledger.Papers].
func (s *Store) Paper(ctx context.Context, tenant, kind, id string) (ledger.Paper, error) {
	p, err := s.Ledger.Paper(ctx, tenant, kind, id)
	if err != nil {
		return p, err
	}
	return s.open(p)
}

// FindPapers implements [ledger.Papers].
func (s *Store) FindPapers(ctx context.Context, q ledger.PaperQuery) ([]ledger.Paper, int, error) {
	if slices.Contains(kinds, q.Kind) {
		q.Trace = s.word(q.Tenant, q.Trace)
	}
	found, total, err := s.Ledger.FindPapers(ctx, q)
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

// DuePapers implements [ledger.Papers]. One that cannot be opened comes as it is:
// it must not keep the others waiting, and whoever takes it up is told.
func (s *Store) DuePapers(ctx context.Context, kind string, limit int) ([]ledger.Paper, time.Time, error) {
	due, now, err := s.Ledger.DuePapers(ctx, kind, limit)
	for i, p := range due {
		if opened, err := s.open(p); err == nil {
			due[i] = opened
		}
	}
	return due, now, err
}
