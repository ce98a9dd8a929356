package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

// ErrNoHead reports that no head of this tenant is signed yet.
var ErrNoHead = fmt.Errorf("%w: no head of its audit chain was signed", ledger.ErrNotFound)

// SignHeads signs a head of each chain that moved since the last, keeps it in the ledger, and
// queues it for the head stores; [Sealer.Work] and [Sealer.Flush] deliver it. It does nothing without
// a signer. It returns how many were signed.
func (s *Sealer) SignHeads(ctx context.Context) (n int, err error) {
	if s.o.Signer == nil {
		return 0, nil
	}
	s.mu.Lock()
	moved := slices.Sorted(maps.Keys(s.moved))
	clear(s.moved)
	s.mu.Unlock()
	var corrupt error
	for i, tenant := range moved {
		signed, err := s.signHead(ctx, tenant)
		if errors.Is(err, ledger.ErrCorrupt) { // it does not stop heads of other tenants
			corrupt = err
			s.mu.Lock()
			s.moved[tenant] = true
			s.mu.Unlock()
			continue
		}
		if err != nil {
			s.mu.Lock()
			for _, left := range moved[i:] {
				s.moved[left] = true
			}
			s.mu.Unlock()
			return n, err
		}
		if signed {
			n++
		}
	}
	return n, corrupt
}

// SignAll is SignHeads for all chains of the ledger, also those that moved while no signer ran.
// It also delivers the newest head of the others again.
func (s *Sealer) SignAll(ctx context.Context) (int, error) {
	caught := s.catchUp(ctx)
	if caught != nil && !errors.Is(caught, ledger.ErrCorrupt) {
		return 0, caught
	}
	n, err := s.SignHeads(ctx)
	return n, cmp.Or(err, caught)
}

// catchUp finds the chains that moved while no signer ran, and queues the newest head of all
// others again: their head stores may not have them.
func (s *Sealer) catchUp(ctx context.Context) error {
	if s.o.Signer == nil {
		return nil
	}
	tenants, err := s.ledger.Tenants(ctx)
	if err != nil {
		return err
	}
	var corrupt error
	for _, tenant := range tenants {
		tip, head, envelope, _, err := s.newest(ctx, tenant)
		if errors.Is(err, ledger.ErrCorrupt) {
			corrupt = err
			continue
		}
		if err != nil {
			return err
		}
		switch {
		case tip.Page > head.Page:
			s.mu.Lock()
			s.moved[tenant] = true
			s.mu.Unlock()
		case head.Page > 0:
			s.give(tenant, envelope)
		}
	}
	return corrupt
}

// newest is the end of a tenant's chain, and the content of its newest signed head; nothing if
// this sealer did not sign that. Otherwise an actor that can write to the ledger could put a head
// there that is never overtaken, and no head would be signed any more. The head is read first, so
// that the chain is never behind it.
func (s *Sealer) newest(ctx context.Context, tenant string) (tip, head Head, envelope signing.Envelope, version int64, err error) {
	p, err := s.ledger.Document(ctx, tenant, ledger.AuditKind, headID)
	if err != nil && !errors.Is(err, ledger.ErrNoDocument) {
		return tip, head, envelope, 0, err
	}
	if version = p.Version; err == nil {
		if head, envelope, err = s.signed(tenant, p.Body); err != nil { // a check reports it; the next head replaces it
			head, envelope = Head{}, signing.Envelope{}
		}
	}
	p, err = s.ledger.Document(ctx, tenant, ledger.AuditKind, tipID)
	if err != nil && !errors.Is(err, ledger.ErrNoDocument) {
		return tip, head, envelope, 0, err
	}
	var says committedTip
	if err == nil {
		if err := strictly(p.Body, &says); err != nil {
			return tip, head, envelope, 0, fmt.Errorf("%w: the end of the audit chain of tenant %q: %w", ledger.ErrCorrupt, tenant, err)
		}
	}
	if says.Page < head.Page {
		return tip, head, envelope, 0, fmt.Errorf("%w: the audit chain of tenant %q ends on page %d, and a head of page %d was signed: its end was cut off; `readback audit verify` says more", ledger.ErrCorrupt, tenant, says.Page, head.Page)
	}
	return says.Head, head, envelope, version, nil
}

// signed is a head that this sealer signed for a tenant.
func (s *Sealer) signed(tenant string, body []byte) (head Head, e signing.Envelope, err error) {
	if e, err = signing.ReadEnvelope(body); err != nil {
		return head, e, err
	}
	keys, err := signing.ReadKeys(s.o.Signer.Public())
	if err == nil {
		head, err = OpenHead(e, keys)
	}
	if err == nil && (head.Tenant != tenant || s.id != "" && head.Ledger != s.id) {
		err = fmt.Errorf("the head is that of tenant %q of ledger %s", head.Tenant, head.Ledger)
	}
	return head, e, err
}

func (s *Sealer) signHead(ctx context.Context, tenant string) (bool, error) {
	tip, head, _, version, err := s.newest(ctx, tenant)
	if err != nil || tip.Page <= head.Page {
		return false, err
	}
	tip.At = time.Now().UTC()
	payload, err := json.Marshal(tip)
	if err != nil {
		return false, fmt.Errorf("audit: %w", err)
	}
	envelope, err := s.o.Signer.Sign(ctx, HeadType, payload)
	if err != nil {
		return false, err
	}
	body, err := envelope.Encode()
	if err != nil {
		return false, err
	}
	_, err = s.ledger.Commit(ctx, ledger.Batch{Documents: []ledger.Document{{Tenant: tenant, Kind: ledger.AuditKind, ID: headID, Version: version, Body: body}}})
	if err != nil && !errors.Is(err, ledger.ErrStale) { // another sealer signed it as well: both are correct
		return false, err
	}
	s.count.do(func(st *Stats) { st.Heads, st.Head = st.Heads+1, tip.At })
	s.give(tenant, envelope)
	return true, nil
}

func (s *Sealer) give(tenant string, head signing.Envelope) {
	for _, k := range s.keep {
		k.give(tenant, head)
	}
}

// Flush delivers queued heads to the head stores, and returns what failed.
func (s *Sealer) Flush(ctx context.Context) error {
	var errs []error
	for _, k := range s.keep {
		errs = append(errs, k.flush(ctx))
	}
	return errors.Join(errs...)
}

// NewestHead is the newest signed head of a tenant's chain in the ledger. Check its signature
// before you trust it. It fails with [ErrNoHead].
func NewestHead(ctx context.Context, l ledger.Ledger, tenant string) (signing.Envelope, error) {
	p, err := l.Document(ctx, tenant, ledger.AuditKind, headID)
	if errors.Is(err, ledger.ErrNoDocument) {
		return signing.Envelope{}, ErrNoHead
	}
	if err != nil {
		return signing.Envelope{}, err
	}
	return signing.ReadEnvelope(p.Body)
}

// OpenHead returns the content of a signed head, if one of these keys signed it.
func OpenHead(e signing.Envelope, keys signing.Keys) (Head, error) {
	payload, _, err := keys.Open(e, HeadType)
	if err != nil {
		return Head{}, err
	}
	return readHead(payload)
}

func readHead(payload []byte) (Head, error) {
	var h Head
	if err := strictly(payload, &h); err != nil {
		return h, fmt.Errorf("the head cannot be read: %w", err)
	}
	if h.Format != format || h.Tenant == "" || h.Page < 1 || h.Entries < 1 || h.Hash == "" {
		return h, fmt.Errorf("the head has format %d, tenant %q, page %d and %d entries; want format %d, and all of these", h.Format, h.Tenant, h.Page, h.Entries, format)
	}
	return h, nil
}

// ReadHead returns the content of a head without a check of its signature: do not trust it.
// [OpenHead] checks it.
func ReadHead(e signing.Envelope) (Head, error) {
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return Head{}, fmt.Errorf("the head cannot be read: %w", err)
	}
	return readHead(payload)
}

// ReadHeads reads signed heads from lines of JSON, as [Commit] keeps them, and returns an error
// for each invalid line. Their signatures are not checked.
func ReadHeads(r io.Reader) (heads []signing.Envelope, bad []error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxHeadBytes)
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		e, err := signing.ReadEnvelope(text)
		if err != nil {
			bad = append(bad, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		heads = append(heads, e)
	}
	if err := lines.Err(); err != nil {
		bad = append(bad, err)
	}
	return heads, bad
}
