package service

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/readback-go/readback/ledger"
)

// cursorKey is the name of the note with the key of cursors. All processes of one ledger
// use the same key.
const cursorKey = "cursors/key"

// cursorLength is what cursors are padded to, so that their length does not reveal how
// many digits the ledger's number has. The ledger's have at most 40 characters, and no
// blank.
const cursorLength = 40

// cursors seals cursors. A ledger's cursors are numbers that count the changes of all
// tenants: a caller who compares two would learn how much the others do. The zero value
// is ready.
type cursors struct {
	mu   sync.Mutex
	aead cipher.AEAD
}

// open returns the cipher, and reads its key from the ledger the first time.
func (c *cursors) open(ctx context.Context, notes ledger.Documents) (cipher.AEAD, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aead != nil {
		return c.aead, nil
	}
	key, err := cursorKeyIn(ctx, notes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("%w: the note %q: %w", ledger.ErrCorrupt, cursorKey, err)
	}
	c.aead, err = cipher.NewGCMWithRandomNonce(block)
	return c.aead, err
}

// cursorKeyIn reads the key, or makes one.
func cursorKeyIn(ctx context.Context, notes ledger.Documents) ([]byte, error) {
	for range 2 {
		have, _, err := notes.Notes(ctx, cursorKey)
		if err != nil {
			return nil, err
		}
		if len(have) > 0 {
			return have[0].Value, nil
		}
		made := make([]byte, 32)
		_, _ = rand.Read(made) // never fails
		_, err = notes.SetNote(ctx, ledger.Note{Name: cursorKey, Value: bytes.Clone(made)})
		if err == nil {
			return made, nil
		}
		if !errors.Is(err, ledger.ErrStale) { // another process made it
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: the note %q changes while it is read", ledger.ErrUnavailable, cursorKey)
}

// sealCursor returns a ledger's cursor as callers of a tenant get it. "" stays "".
func (o *Service) sealCursor(ctx context.Context, who Who, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	aead, err := o.cursors.open(ctx, o.parts.Ledger)
	if err != nil {
		return "", err
	}
	padded := fmt.Appendf(nil, "%-*s", cursorLength, cursor)
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, padded, []byte(who.Tenant))), nil
}

// openCursor returns the ledger's cursor that a caller handed back. It fails with
// [ledger.ErrCursor] for a cursor not issued to this tenant, and with [ledger.ErrTooFar]
// for a cursor of changes of an earlier version, so that a follower reads what it missed
// and continues.
func (o *Service) openCursor(ctx context.Context, who Who, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if place, err := ledger.PlaceOf(text); err == nil && place.N > 0 {
		return "", errTooFar
	}
	aead, err := o.cursors.open(ctx, o.parts.Ledger)
	if err != nil {
		return "", err
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		sealed, err = aead.Open(nil, nil, sealed, []byte(who.Tenant))
	}
	if err != nil {
		return "", fmt.Errorf("%w: want one that an earlier answer gave, or none to begin at the start", ledger.ErrCursor)
	}
	return strings.TrimRight(string(sealed), " "), nil
}

// errTooFar has the ledger's reason without its numbers, which count the changes of all
// tenants.
var errTooFar = fmt.Errorf("%w: some changes behind it are no longer kept, or the ledger is another one; read the writes that you wait for, and continue from now", ledger.ErrTooFar)

// uncounted is an error about a cursor without its counts.
func uncounted(err error) error {
	if errors.Is(err, ledger.ErrTooFar) {
		return errTooFar
	}
	return err
}
