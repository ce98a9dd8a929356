package ledger

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/readback-go/readback/intent"
)

// Keys seals and opens what a ledger must not store in the clear. A redact.Vault is one.
type Keys interface {
	// SealEntry is a [Seal].
	SealEntry(id string, w intent.WriteIntent) ([]byte, error)
	// SealDigestKey seals the digest key of a ledger ([KeyDigests]), and returns the id of the
	// key that it used: an id without a colon.
	SealDigestKey(digestKey []byte) (id, sealed string, err error)
	// OpenDigestKey reverses SealDigestKey. It reports whether SealDigestKey would use the same
	// key now. It fails for a key that is not available.
	OpenDigestKey(id, sealed string) (digestKey []byte, current bool, err error)
}

// KeyDigests converts digests of business keys ([intent.WriteIntent.KeyDigest]) to those that one
// ledger stores, so that a reader of the ledger cannot confirm a guessed key. They are
// HMAC-SHA-256 under the digest key, which the ledger has from its creation on and never changes.
// The zero value converts none.
type KeyDigests struct {
	key      func() []byte // a function, so that printing a ledger does not print the key; nil for none
	sealedBy string        // the id of the redaction key; "" where the digest key is in the clear
	current  bool          // SealDigestKey would use the same key now
	err      error         // why the digest key cannot be used
}

// digestedBy replaces the key id in a digest: the key of a ledger is its own.
const digestedBy = "ledger"

// keptPrefix begins all digests of business keys in a ledger that has a digest key.
var keptPrefix = intent.KeyedDigest(digestedBy, "")

// NewDigestKey returns the digest key of a new ledger in the form to store: sealed where there
// are keys, which may be nil.
func NewDigestKey(keys Keys) (kept string, err error) {
	key := make([]byte, sha256.Size)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	if keys == nil {
		return hex.EncodeToString(key), nil
	}
	return sealedDigestKey(key, keys)
}

func sealedDigestKey(key []byte, keys Keys) (kept string, err error) {
	id, sealed, err := keys.SealDigestKey(key)
	if err != nil {
		return "", fmt.Errorf("seal the digest key of the ledger: %w", err)
	}
	return id + ":" + sealed, nil
}

// OpenKeyDigests takes the stored digest key of a ledger. Keys may be nil. A digest key that is
// sealed under an unavailable key is no error yet: each use of it is one.
func OpenKeyDigests(kept string, keys Keys) (d KeyDigests, err error) {
	var key []byte
	id, sealed, isSealed := strings.Cut(kept, ":")
	switch {
	case !isSealed:
		key, err = hex.DecodeString(kept)
	case keys == nil:
		return unopened(id, ""), nil
	default:
		var failed error
		d.sealedBy = id
		if key, d.current, failed = keys.OpenDigestKey(id, sealed); failed != nil {
			return unopened(id, ": "+failed.Error()), nil //nolint:nilerr // each use of the digests fails with it
		}
	}
	if err != nil || len(key) != sha256.Size {
		return KeyDigests{}, fmt.Errorf("%w: its digest key is not %d bytes", ErrCorrupt, sha256.Size)
	}
	d.key = func() []byte { return key }
	return d, nil
}

// Seal seals the digest key if it is in the clear, or sealed under another key than the current
// one. It returns what the ledger is to store instead, "" where nothing changes. Without a key
// (keys are nil or fail with [ErrNoKey]) it does nothing.
func (d *KeyDigests) Seal(keys Keys) (instead string, err error) {
	if keys == nil || d.current || d.key == nil {
		return "", nil
	}
	switch instead, err = sealedDigestKey(d.key(), keys); {
	case errors.Is(err, ErrNoKey):
		return "", nil
	case err != nil:
		return "", err
	}
	d.sealedBy, _, _ = strings.Cut(instead, ":")
	d.current = true
	return instead, nil
}

func unopened(id, why string) KeyDigests {
	return KeyDigests{sealedBy: id, err: fmt.Errorf("%w: digests of business keys need the digest key of the ledger, which is sealed under the redaction key %q; add that key to the redaction keys, or put it back%s", ErrNoKey, id, why)}
}

// Of returns a digest of a business key as the ledger stores it. One that comes from the ledger
// is unchanged, and so is "". It fails with [ErrNoKey] where the digest key is sealed under an
// unavailable key.
func (d KeyDigests) Of(digest string) (string, error) {
	switch {
	case digest == "" || strings.HasPrefix(digest, keptPrefix):
		return digest, nil
	case d.err != nil:
		return "", d.err
	case d.key == nil:
		return "", fmt.Errorf("%w: the digest key of the ledger was not read", ErrNoKey)
	}
	h := hmac.New(sha256.New, d.key())
	h.Write([]byte(digest)) // which never fails
	return intent.KeyedDigest(digestedBy, hex.EncodeToString(h.Sum(nil))), nil
}

// OfRecord returns a record with its key digest as the ledger stores it. It fails as
// [KeyDigests.Of] does.
func (d KeyDigests) OfRecord(r Record) (_ Record, err error) {
	r.KeyDigest, err = d.Of(r.KeyDigest)
	return r, err
}

// OfBatch returns a batch whose reservation, if any, has its digest as the ledger stores it. It
// fails as [KeyDigests.Of] does.
func (d KeyDigests) OfBatch(f Batch) (Batch, error) {
	if f.Reserve == nil {
		return f, nil
	}
	res := *f.Reserve
	var err error
	res.Record, err = d.OfRecord(res.Record)
	f.Reserve = &res
	return f, err
}

// OfErasing returns a request to erase with its digests as the ledger stores them. It fails as
// [KeyDigests.Of] does.
func (d KeyDigests) OfErasing(e Erasing) (Erasing, error) {
	var all []string
	for _, digest := range e.KeyDigests {
		kept, err := d.Of(digest)
		if err != nil {
			return e, err
		}
		all = append(all, kept)
	}
	e.KeyDigests = all
	return e, nil
}

// Same reports whether two ledgers make the same digests, so that a row of one can be one of the
// other.
func (d KeyDigests) Same(other KeyDigests) bool {
	return d.key != nil && other.key != nil && hmac.Equal(d.key(), other.key())
}

// SealedBy is the id of the redaction key that seals the digest key, "" where it is not sealed.
func (d KeyDigests) SealedBy() string { return d.sealedBy }

// Err is the reason why no digest can be made, or nil.
func (d KeyDigests) Err() error { return d.err }

// String describes how the digests are made, without the digest key.
func (d KeyDigests) String() string {
	if d.sealedBy != "" {
		return fmt.Sprintf("keyed, with a digest key that is sealed under the redaction key %q", d.sealedBy)
	}
	return "keyed, with a digest key that is kept as it is"
}

// GoString is String, so that the digest key is not printed.
func (d KeyDigests) GoString() string { return d.String() }
