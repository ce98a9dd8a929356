package intent

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Form is an intent with its canonical form and all that is derived from it. It is made once,
// and passed along.
type Form struct {
	Intent  WriteIntent // as [DecodeStored] reads Encoded
	Encoded []byte      // [WriteIntent.Encode]

	StructuralKey, KeyDigest, Digest string
}

// Form derives everything from an intent. It does not validate: the error is that of
// [WriteIntent.Encode].
func (w WriteIntent) Form() (Form, error) {
	encoded, err := w.Encode()
	if err != nil {
		return Form{}, err
	}
	return form(encoded)
}

// ValidForm is [WriteIntent.Form] for an intent that passes [WriteIntent.Validate].
func (w WriteIntent) ValidForm() (Form, error) {
	encoded, err := w.encodeValid()
	if err != nil {
		return Form{}, err
	}
	return form(encoded)
}

func form(encoded []byte) (f Form, err error) {
	f.Encoded = encoded
	if f.Intent, err = parse(encoded); err != nil {
		return f, err
	}
	f.StructuralKey = f.Intent.StructuralKey()
	if f.KeyDigest, err = f.Intent.KeyDigest(); err == nil {
		f.Digest, err = f.Intent.Digest()
	}
	return f, err
}

// StructuralKey names the logical write: the lower-case hex SHA-256 (64 characters) over, in
// this order,
//
//	readback/structural-key/v1, tenant, workflow, step, tool, call
//
// and, only when set, compensates. Each part is written as its length in bytes in decimal, a
// colon, its bytes and a comma (a netstring), so that no two lists of parts have the same
// bytes; call is written in decimal. Nothing else of the intent is part of it, above all no
// argument: a model that rewords its arguments still means the same write.
func (w WriteIntent) StructuralKey() string {
	parts := []string{"readback/structural-key/v1", w.Tenant, w.Workflow, w.Step, w.Tool, strconv.Itoa(w.Call)}
	if w.Compensates != "" {
		parts = append(parts, w.Compensates)
	}
	return sumParts(parts...).hex()
}

// Stamp returns the client-made stable ID that a connector writes into the record: "rb-" and 32
// characters of a-z and 2-7 (Base32 of the first 20 bytes of a SHA-256 over "readback/stamp/v1"
// and the structural key). It needs no quoting in an IMAP keyword, a label, a header, an e-mail
// local part or a URL.
func (w WriteIntent) Stamp() string {
	return "rb-" + short("readback/stamp/v1", w.StructuralKey())
}

// SendKey returns the idempotency key sent for one generation of a write, 36 characters. Every
// repeat within a generation has the same key; another generation has another.
func SendKey(structuralKey string, generation int) string {
	return "rbk-" + short("readback/send-key/v1", structuralKey, strconv.Itoa(generation))
}

// KeyDigest fingerprints the record that the intent is about: the lower-case hex SHA-256 (64
// characters) over
//
//	readback/key-digest/v1, tenant, destination, kind, business key
//
// as netstrings, the business key as canonical JSON (RFC 8785). Writes with the same digest are
// about one record, as declared by their callers.
//
// The error is an [InvalidError] for values that canonical JSON cannot hold; an intent that
// passed [WriteIntent.Validate] causes none.
func (w WriteIntent) KeyDigest() (string, error) {
	text, ok := direct(w.Key)
	if !ok {
		var err error
		if text, err = Canonical(w.Key); err != nil {
			return "", err
		}
	}
	return sumParts("readback/key-digest/v1", w.Tenant, w.Destination, w.Kind, string(text)).hex(), nil
}

// Digest fingerprints the request: the lower-case hex SHA-256 (64 characters) over the
// canonical JSON (RFC 8785) of the intent without tenant, workflow, step, tool, call, deadline,
// correlation_id, sensitive, context and compensates. Default values and empty parts are left
// out, lists of paths are sorted, and rule parameters are in their shortest form: equivalent
// requests have one digest. Setting an idempotency key changes the digest.
//
// The error is an [InvalidError] for values that canonical JSON cannot hold; an intent that
// passed [WriteIntent.Validate] causes none.
func (w WriteIntent) Digest() (string, error) {
	text, err := w.plain().canonical()
	if err != nil {
		return "", err
	}
	// They are always written, and the last in canonical order but for write, which is a word.
	const names = `"tenant":"","tool":"","workflow":"",`
	at := bytes.LastIndex(text, []byte(names))
	return sum(sha256.Sum256(slices.Delete(text, at, at+len(names)))).hex(), nil
}

// keyedPrefix begins every keyed digest.
const keyedPrefix = "hmac:"

// KeyedDigest returns the text of a keyed digest: "hmac:", the id of the key, a colon, and the
// hex of the HMAC.
func KeyedDigest(key, hex string) string { return keyedPrefix + key + ":" + hex }

// DigestKey returns the id of the key of a digest, "" for a plain SHA-256.
func DigestKey(digest string) string {
	key, _, found := strings.Cut(strings.TrimPrefix(digest, keyedPrefix), ":")
	if !found || !strings.HasPrefix(digest, keyedPrefix) {
		return ""
	}
	return key
}

// plain returns the intent in the one form that equivalent intents share, without the parts that
// are not part of the digest.
func (w WriteIntent) plain() WriteIntent {
	w.Tenant, w.Workflow, w.Step, w.Tool, w.Call, w.Compensates = "", "", "", "", 0, ""
	w.Deadline, w.CorrelationID, w.Sensitive, w.Context = time.Time{}, "", nil, nil
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
	if len(paths) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(paths)))
}

func short(parts ...string) string {
	sum := sumParts(parts...)
	return base32Lower.EncodeToString(sum[:20])
}

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

type sum [sha256.Size]byte

func (s sum) hex() string {
	var text [2 * len(s)]byte
	hex.Encode(text[:], s[:])
	return string(text[:])
}

// sumParts hashes the parts as netstrings.
func sumParts(parts ...string) sum {
	text := make([]byte, 0, 512)
	for _, part := range parts {
		text = append(append(append(strconv.AppendInt(text, int64(len(part)), 10), ':'), part...), ',')
	}
	return sha256.Sum256(text)
}

// StepKey names the step of a workflow that its caller carries out itself: the lower-case hex
// SHA-256 (64 characters) over, as netstrings,
//
//	readback/step-key/v1, tenant, workflow, step
//
// so that it never equals the structural key of a write.
func StepKey(tenant, workflow, step string) string {
	return sumParts("readback/step-key/v1", tenant, workflow, step).hex()
}
