package access

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// sealed encrypts and authenticates what a browser stores for us. Each purpose has a key
// of its own, so that data sealed for one is not accepted for another.
type sealed struct{ aead cipher.AEAD }

var errSeal = errors.New("not sealed here")

// newSealed derives the key of a purpose. Without a key it makes one that lives as long
// as the process.
func newSealed(key []byte, purpose string) (sealed, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, "readback "+purpose, 32)
	if err != nil {
		return sealed{}, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return sealed{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealed{aead}, err
}

// sessionKey is the key of sessions, and the keys derived from it.
type sessionKey struct {
	key                []byte
	sessions, attempts sealed
	forms              []byte // the key of form tokens
}

func newSessionKey(key []byte) (*sessionKey, error) {
	k := &sessionKey{key: key}
	var err error
	if k.sessions, err = newSealed(key, "session"); err != nil {
		return nil, err
	}
	if k.attempts, err = newSealed(key, "login attempt"); err != nil {
		return nil, err
	}
	k.forms, err = formKey(key)
	return k, err
}

// sealing is the current key. If it cannot be fetched, or is too short, the last one is
// used: sessions continue.
func (l *Logins) sealing() *sessionKey {
	last := l.key.Load()
	if l.keyNow == nil {
		return last
	}
	key, err := l.keyNow(context.Background())
	if err == nil && len(key) < MinKey {
		err = fmt.Errorf("it has %d bytes; want at least %d", len(key), MinKey)
	}
	if before := l.keyFails.Swap(err != nil); err != nil {
		if !before { // once, not for each request
			l.log.Warn("the key of sessions cannot be fetched; the last one stays in use", "error", err)
		}
		return last
	}
	if subtle.ConstantTimeCompare(key, last.key) == 1 {
		return last
	}
	next, err := newSessionKey(key)
	if err != nil {
		return last
	}
	if l.key.CompareAndSwap(last, next) {
		l.log.Info("the key of sessions is another one; people log in again")
	}
	return next
}

func randomKey() []byte {
	key := make([]byte, MinKey)
	_, _ = rand.Read(key) // never fails
	return key
}

func (s sealed) seal(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // which makes six bytes of one
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, b.Bytes(), nil))
	if len(text) > maxCookie-256 { // with its name and attributes
		return "", fmt.Errorf("a cookie of %d bytes is too large", len(text))
	}
	return text, nil
}

func (s sealed) open(text string, into any) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > maxCookie {
		return errSeal
	}
	plain, err := s.aead.Open(nil, nil, raw, nil)
	if err != nil {
		return errSeal
	}
	return json.Unmarshal(plain, into)
}
