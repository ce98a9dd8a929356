package redact

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// KeySize is the size of a key in bytes.
const KeySize = 32

// Key is a secret from which all used keys are derived.
type Key struct {
	// ID names the key in what it seals: 1 to 32 letters, digits, "-" and "_". Never give it to
	// another key.
	ID string
	// Secret is [KeySize] random bytes.
	Secret []byte
}

// Pattern describes sensitive values, wherever they occur.
type Pattern struct {
	// Name is for display. Required.
	Name string
	// Regexp makes a value sensitive as a whole if it matches any part of it; in sentences only
	// the match is sensitive. Required; it must not match the empty text.
	Regexp *regexp.Regexp
}

// Options configures a Vault. The zero value is valid.
type Options struct {
	// Patterns are sensitive in every write. Default none.
	Patterns []Pattern
}

// Vault holds the keys and the patterns. It is safe for concurrent use and never changes. A nil
// one has no key: it opens and seals nothing.
type Vault struct {
	keys     []Key
	patterns []Pattern
}

var idExpr = regexp.MustCompile(`^[A-Za-z0-9_-]{1,` + strconv.Itoa(maxKeyID) + `}$`)

// IsKeyID reports whether a text is a valid ID of a key.
func IsKeyID(id string) bool { return idExpr.MatchString(id) }

// New returns a vault. The first key seals, all of them open: put a new key first, and keep the
// earlier ones until nothing that they sealed is left. The error wraps [ErrKey] and names the key
// or the pattern, never the secret.
func New(keys []Key, o Options) (*Vault, error) {
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("%w: there is no key; want at least one", ErrKey)
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("%w: there are %d keys; want at most %d", ErrKey, len(keys), maxKeys)
	case len(o.Patterns) > maxPatterns:
		return nil, fmt.Errorf("%w: there are %d patterns; want at most %d", ErrKey, len(o.Patterns), maxPatterns)
	}
	v := &Vault{}
	for i, k := range keys {
		if err := v.add(k); err != nil {
			return nil, fmt.Errorf("%w: key %d: %w", ErrKey, i+1, err)
		}
	}
	for i, p := range o.Patterns {
		switch {
		case p.Name == "" || p.Regexp == nil:
			return nil, fmt.Errorf("%w: pattern %d (%q): want a name and a regular expression", ErrKey, i+1, p.Name)
		case p.Regexp.MatchString(""):
			return nil, fmt.Errorf("%w: pattern %q finds the empty text, and so everything; want one that needs at least one letter", ErrKey, p.Name)
		}
	}
	v.patterns = slices.Clone(o.Patterns)
	return v, nil
}

func (v *Vault) add(k Key) error {
	switch {
	case !IsKeyID(k.ID):
		return fmt.Errorf("the id is %q; want 1 to %d letters, digits, - and _", k.ID, maxKeyID)
	case len(k.Secret) != KeySize:
		return fmt.Errorf("%q has %d bytes; want %d random ones", k.ID, len(k.Secret), KeySize)
	case slices.Equal(k.Secret, make([]byte, KeySize)):
		return fmt.Errorf("%q is all zeros; want %d random bytes", k.ID, KeySize)
	case slices.ContainsFunc(v.keys, func(o Key) bool { return o.ID == k.ID }):
		return fmt.Errorf("the id %q is there twice; want each once", k.ID)
	}
	for _, o := range v.keys {
		if slices.Equal(o.Secret, k.Secret) {
			return fmt.Errorf("%q is the same key as %q; want another one, or one id: what was sealed names its key by it", k.ID, o.ID)
		}
	}
	v.keys = append(v.keys, Key{ID: k.ID, Secret: slices.Clone(k.Secret)})
	return nil
}

// Has reports whether there is a key with this ID.
func (v *Vault) Has(id string) bool {
	_, err := v.key(id)
	return err == nil
}

// key finds a key by its id.
func (v *Vault) key(id string) (Key, error) {
	if v == nil {
		return Key{}, fmt.Errorf("%w: it is %q, and no redaction keys are configured", ErrNoKey, id)
	}
	for _, k := range v.keys {
		if k.ID == id {
			return k, nil
		}
	}
	return Key{}, fmt.Errorf("%w: it is %q; add it to the redaction keys", ErrNoKey, id)
}

// Matches names the first pattern that matches a text, "" for none. It also searches the text as
// decoded from URLs, HTML or JSON.
func (v *Vault) Matches(text string) string {
	if v == nil || len(v.patterns) == 0 {
		return ""
	}
	name := v.finds(text)
	for _, plain := range unescaped(text) {
		if name == "" {
			name = v.finds(plain)
		}
	}
	return name
}

// finds names the first pattern that matches a text as it is.
func (v *Vault) finds(text string) string {
	if v == nil {
		return ""
	}
	for _, p := range v.patterns {
		if p.Regexp.MatchString(text) {
			return p.Name
		}
	}
	return ""
}

// subkey derives the key for one purpose and tenant, so that no key is used for two purposes, and
// equal values of two tenants have different digests.
func (k Key) subkey(purpose, tenant string) []byte {
	sub, err := hkdf.Key(sha256.New, k.Secret, nil, "readback/redact/v1/"+purpose+"/"+tenant, KeySize)
	if err != nil { // only for invalid lengths
		panic(err)
	}
	return sub
}

func (k Key) aead(tenant string) cipher.AEAD {
	block, err := aes.NewCipher(k.subkey("seal", tenant))
	if err != nil { // only for invalid lengths
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return aead
}
