package sealed

import (
	"encoding/json"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// marks returns what a destination marks as sensitive; nothing if it is unknown.
func (s *Store) marks(destination, kind string) []string {
	if s.reg == nil {
		return nil
	}
	_, p, err := s.reg.Lookup(destination, kind)
	if err != nil {
		return nil
	}
	return p.Sensitive
}

// scope returns the scope that seals values of one write, as the engine's does.
func (s *Store) scope(r ledger.Record) *redact.Scope {
	return s.vault.Scope(r.Tenant, string(r.ID), s.marks(r.Destination, r.Kind))
}

// sealedIntent returns the sealed intent of a write that is reserved. A delegated write's need
// not be a valid intent.
func sealedIntent(scope *redact.Scope, r ledger.Record) (json.RawMessage, error) {
	if err := redact.CheckClear(r.Intent); err != nil {
		return nil, err
	}
	w, err := intent.DecodeStored(r.Intent)
	if err != nil && r.Delegated {
		return scope.SealDocument(r.Intent)
	}
	if err != nil {
		return nil, err
	}
	return scope.SealIntent(w)
}

// sealedEvents returns events in stored form, in a scope that has met the sensitive values of
// their write.
func sealedEvents(scope *redact.Scope, events []ledger.Event) (all []ledger.Event, err error) {
	all = slices.Clone(events)
	for i := range all {
		e := &all[i]
		if e.Evidence, err = sealedReading(scope, e.Evidence); err != nil {
			return nil, err
		}
		if e.Mismatches, err = sealedPart(scope, e.Mismatches); err != nil {
			return nil, err
		}
		e.Reason = scope.Text(e.Reason)
		e.Ref, e.URL, e.Version = scope.SealName(e.Ref), scope.SealName(e.URL), scope.SealName(e.Version)
	}
	return all, nil
}

// sealedReading returns the sealed result of a read, or other evidence.
func sealedReading(scope *redact.Scope, evidence json.RawMessage) (json.RawMessage, error) {
	var seen connectors.Observation
	if len(evidence) == 0 || redact.Sealed(evidence) {
		return evidence, nil
	}
	if err := decodeExact(evidence, &seen); err == nil && seen.Records != nil {
		return scope.SealObservation(seen)
	}
	return sealedPart(scope, evidence)
}

func sealedPart(scope *redact.Scope, part json.RawMessage) (json.RawMessage, error) {
	if len(part) == 0 {
		return part, nil
	}
	return scope.SealDocument(part)
}
