package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/readback-go/readback/intent"
)

// Prefix begins every token, and no string that a caller may send. It is followed by the ID of
// the key, a colon, the keyed digest of the value in hex, a colon, and the sealed value in
// unpadded base64url. A token can stand for a string, a number or any other value.
const Prefix = "rbs1:"

// ShownPrefix begins the replacement of a sensitive value for display; the first hex digits of
// its keyed digest follow.
const ShownPrefix = "redacted:"

const tokenPattern = Prefix + `([A-Za-z0-9_-]{1,32}):([0-9a-f]{64}):([A-Za-z0-9_-]{38,})`

var (
	tokenExpr  = regexp.MustCompile(`^` + tokenPattern + `$`)
	tokensExpr = regexp.MustCompile(tokenPattern)
)

// base64url is strict: one value has only one token text.
var base64url = base64.RawURLEncoding.Strict()

// token is a sealed value in its parts.
type token struct {
	key, digest string
	sealed      []byte
}

// parseToken reads a token, strictly.
func parseToken(text string) (token, error) {
	parts := tokenExpr.FindStringSubmatch(text)
	if parts == nil {
		return token{}, fmt.Errorf("%w: it begins with %q and is no token", ErrToken, Prefix)
	}
	sealed, err := base64url.DecodeString(parts[3])
	if err != nil {
		return token{}, fmt.Errorf("%w: its sealed part is no base64url", ErrToken)
	}
	return token{key: parts[1], digest: parts[2], sealed: sealed}, nil
}

func (t token) String() string {
	return Prefix + t.key + ":" + t.digest + ":" + base64url.EncodeToString(t.sealed)
}

// bound is the data that a token is bound to besides its ciphertext.
func (t token) bound(tenant, write string) []byte {
	var b []byte
	for _, part := range []string{"readback/redact/v1", t.key, t.digest, tenant, write} {
		b = append(strconv.AppendInt(b, int64(len(part)), 10), ':')
		b = append(append(b, part...), ',')
	}
	return b
}

// seal makes the token of a JSON text, given the value's digest.
func (k Key) seal(tenant, write, digest string, text []byte) string {
	t := token{key: k.ID, digest: digest}
	t.sealed = k.aead(tenant).Seal(nil, nil, text, t.bound(tenant, write))
	return t.String()
}

// open returns the JSON text of a token.
func (v *Vault) open(tenant, write, text string) ([]byte, error) {
	t, err := parseToken(text)
	if err != nil {
		return nil, err
	}
	k, err := v.key(t.key)
	if err != nil {
		return nil, err
	}
	plain, err := k.aead(tenant).Open(nil, nil, t.sealed, t.bound(tenant, write))
	if err != nil {
		return nil, fmt.Errorf("%w: it was altered, its key %q is another one than it was, or it belongs to another write", ErrToken, t.key)
	}
	return plain, nil
}

// digest names a value without revealing it: equal values of one tenant have the same, as long as
// the same key seals.
func (k Key) digest(tenant string, text []byte) string { return k.mac("digest", tenant, text) }

func (k Key) mac(purpose, tenant string, text []byte) string {
	h := hmac.New(sha256.New, k.subkey(purpose, tenant))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// Digests are the keyed digests that the sealed values of a tenant have if they are this text, or
// the number that it is: one for each key, as [intent.KeyedDigest] writes it. A search finds a
// sealed value by them. A nil vault has none.
func (v *Vault) Digests(tenant, text string) (digests []string) {
	if v == nil {
		return nil
	}
	values := []any{text}
	if strings.IndexAny(text, "-0123456789") == 0 && json.Valid([]byte(text)) {
		values = append(values, json.Number(text))
	}
	for _, k := range v.keys {
		for _, value := range values {
			if form, err := canonical(value); err == nil {
				digests = append(digests, intent.KeyedDigest(k.ID, k.digest(tenant, form)))
			}
		}
	}
	return digests
}

// canonical is the JSON of a value that is the same for all equal values and no others: a string
// and a number of the same letters differ.
func canonical(v any) ([]byte, error) {
	if text, err := intent.Canonical(v); err == nil {
		return text, nil
	}
	// Destinations have numbers that canonical JSON cannot hold.
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("what is to be sealed is no JSON value: %w", err)
	}
	return text, nil
}

// shortened is the displayed form of a digest.
func shortened(digest string) string { return ShownPrefix + digest[:shownDigest] }

// Sealed reports whether a document holds an apparent token.
func Sealed(document []byte) bool { return bytes.Contains(document, []byte(Prefix)) }

// Shown is a document for display: every token, as a value or as the name of a member, is
// replaced by "redacted:" and 16 hex digits. It needs no key, and changes nothing else.
func Shown(document json.RawMessage) json.RawMessage {
	if !Sealed(document) {
		return document
	}
	return tokensExpr.ReplaceAllFunc(document, func(t []byte) []byte {
		return []byte(shortened(string(tokensExpr.FindSubmatch(t)[2])))
	})
}

// ShownText is [Shown] for a sentence, or a name.
func ShownText(text string) string {
	if !strings.Contains(text, Prefix) {
		return text
	}
	return tokensExpr.ReplaceAllStringFunc(text, func(t string) string { return shortened(tokensExpr.FindStringSubmatch(t)[2]) })
}
