package intent

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"hash"
	"io"
	"slices"
	"strconv"
	"time"
)

// StructuralKey names the logical write: the lower-case hex SHA-256 (64
// characters) over, in this order,
//
//	readback/structural-key/v1, tenant, workflow, step, tool, call
//
// and, only when set, compensates. Each part is written as its length in bytes
// in decimal, a colon, its bytes and a comma (a netstring), so that no two
// lists of parts have the same bytes; call is written in decimal. Nothing else
// of the intent has any part in it, above all no argument: a model that words
// its arguments anew still means the same write.
func (w WriteIntent) StructuralKey() string {
	parts := []string{"readback/structural-key/v1", w.Tenant, w.Workflow, w.Step, w.Tool, strconv.Itoa(w.Call)}
	if w.Compensates != "" {
		parts = append(parts, w.Compensates)
	}
	sum := sumParts(parts...)
	return hex.EncodeToString(sum[:])
}

// Stamp is the client-made stable ID that a connector writes into the record:
// "rb-" and 32 characters of a-z and 2-7 (Base32 of the first 20 bytes of a
// SHA-256 over "readback/stamp/v1" and the structural key). It can stand
// unquoted in an IMAP keyword, a label, a header, an e-mail local part or a
// URL.
func (w WriteIntent) Stamp() string {
	return "rb-" + short("readback/stamp/v1", w.StructuralKey())
}

// SendKey is the idempotency key that goes on the wire for one generation of a
// write, 36 characters. Every repeat within a generation carries the same key;
// another generation has another.
func SendKey(structuralKey string, generation int) string {
	return "rbk-" + short("readback/send-key/v1", structuralKey, strconv.Itoa(generation))
}

// KeyDigest fingerprints the record that the intent is about: the lower-case
// hex SHA-256 (64 characters) over
//
//	readback/key-digest/v1, tenant, destination, kind, business key
//
// as netstrings, the business key as canonical JSON (RFC 8785). Writes that
// share it are about one record, as far as their callers say.
//
// The error is an [InvalidError] for values that canonical JSON cannot hold;
// an intent that passed [WriteIntent.Validate] gives none.
func (w WriteIntent) KeyDigest() (string, error) {
	key, err := normalize(w.Key)
	if err != nil {
		return "", err
	}
	text, err := Canonical(key)
	if err != nil {
		return "", err
	}
	sum := sumParts("readback/key-digest/v1", w.Tenant, w.Destination, w.Kind, string(text))
	return hex.EncodeToString(sum[:]), nil
}

// Digest fingerprints what the intent asks for: the lower-case hex SHA-256 (64
// characters) over the canonical JSON (RFC 8785) of the intent without tenant,
// workflow, step, tool, call, deadline, correlation_id, sensitive, context and
// compensates. Values that are the default and parts that are empty are left
// out, lists of paths are sorted, rule parameters are in their shortest form: what means the same
// has one digest. An idempotency key that is set and one that is not differ.
//
// The error is an [InvalidError] for values that canonical JSON cannot hold;
// an intent that passed [WriteIntent.Validate] gives none.
func (w WriteIntent) Digest() (string, error) {
	all, err := normalize(w.plain())
	if err != nil {
		return "", err
	}
	asked := all.(map[string]any)
	for _, name := range []string{"tenant", "workflow", "step", "tool", "call", "deadline", "correlation_id", "sensitive", "context", "compensates"} {
		delete(asked, name)
	}
	text, err := Canonical(asked)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// plain is the intent in the one form of everything that means the same.
func (w WriteIntent) plain() WriteIntent {
	w.Deadline = time.Time{} // has no part in the digest, and years may not encode
	if w.Count == 1 {
		w.Count = 0
	}
	if w.Risk == RiskAuto {
		w.Risk = ""
	}
	if w.Reversibility == Pivot {
		w.Reversibility = ""
	}
	if w.OnMismatch == MismatchEscalate {
		w.OnMismatch = ""
	}
	w.Absent = sortedPaths(w.Absent)
	w.Ignore = sortedPaths(w.Ignore)
	w.Compare = plainComparisons(w.Compare)
	return w
}

func sortedPaths(paths []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(paths)))
}

func short(parts ...string) string {
	sum := sumParts(parts...)
	return base32Lower.EncodeToString(sum[:20])
}

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func sumParts(parts ...string) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, part := range parts {
		writeNetstring(h, part)
	}
	h.Sum(sum[:0])
	return sum
}

func writeNetstring(h hash.Hash, part string) {
	// A hash.Hash never returns an error.
	_, _ = io.WriteString(h, strconv.Itoa(len(part))+":"+part+",")
}

// StepKey names the step of a workflow that its caller carries out itself: the
// lower-case hex SHA-256 (64 characters) over, as netstrings,
//
//	readback/step-key/v1, tenant, workflow, step
//
// so that it never is the structural key of a write.
func StepKey(tenant, workflow, step string) string {
	sum := sumParts("readback/step-key/v1", tenant, workflow, step)
	return hex.EncodeToString(sum[:])
}
