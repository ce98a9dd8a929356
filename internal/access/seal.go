package access

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// sealed encrypts and signs what a browser keeps for us. Each purpose has a key
// of its own, so that nothing sealed for one is taken for another.
type sealed struct{ aead cipher.AEAD }

var errSeal = errors.New("not sealed here")

// newSealed derives the key of a purpose. Without a key there is one that lives
// as long as the process.
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
