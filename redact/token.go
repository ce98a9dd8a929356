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

// Prefix begins every token, and no string that a caller may send. What follows
// is the id of the key, a colon, the keyed digest of the value in hex, a colon,
// and the sealed value in unpadded base64url. A token stands for a string, a
// number or any other value alike.
const Prefix = "rbs1:"

// ShownPrefix begins what is shown in the place of a sensitive value; the first
// hex digits of its keyed digest follow.
const ShownPrefix = "redacted:"

const tokenPattern = Prefix + `([A-Za-z0-9_-]{1,32}):([0-9a-f]{64}):([A-Za-z0-9_-]{38,})`

var (
	tokenExpr  = regexp.MustCompile(`^` + tokenPattern + `$`)
	tokensExpr = regexp.MustCompile(tokenPattern)
)

// base64url is strict: one value has one token's text.
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

// bound is what a token is bound to besides its ciphertext.
func (t token) bound(tenant, write string) []byte {
	var b []byte
	for _, part := range []string{"readback/redact/v1", t.key, t.digest, tenant, write} {
		b = append(strconv.AppendInt(b, int64(len(part)), 10), ':')
		b = append(append(b, part...), ',')
	}
	return b
}

// seal makes the token of a JSON text of a value with that digest.
func (k Key) seal(tenant, write, digest string, text []byte) string {
	t := token{key: k.ID, digest: digest}
	t.sealed = k.aead(tenant).Seal(nil, nil, text, t.bound(tenant, write))
	return t.String()
}

// open gives the JSON text back.
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

// digest names a value without telling it: equal values of one tenant have the
// same, as long as the same key seals.
func (k Key) digest(tenant string, text []byte) string {
	h := hmac.New(sha256.New, k.subkey("digest", tenant))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// canonical is the JSON of a value that all equal values share and no others: a
// string and a number of the same letters differ.
func canonical(v any) ([]byte, error) {
	if text, err := intent.Canonical(v); err == nil {
		return text, nil
	}
	// A number that canonical JSON cannot hold: destinations have such.
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("what is to be sealed is no JSON value: %w", err)
	}
	return text, nil
}

// shortened is what is shown of a digest.
func shortened(digest string) string { return ShownPrefix + digest[:shownDigest] }

// Sealed reports whether a document holds what looks like a token.
func Sealed(document []byte) bool { return bytes.Contains(document, []byte(Prefix)) }

// Shown is a document as it may be shown: in the place of every token, as a value
// or as the name of a member, stands "redacted:" and 16 hex digits. It needs no
// key, and changes nothing else.
func Shown(document json.RawMessage) json.RawMessage {
	if !Sealed(document) {
		return document
	}
	return tokensExpr.ReplaceAllFunc(document, func(t []byte) []byte {
		return []byte(shortened(string(tokensExpr.FindSubmatch(t)[2])))
	})
}

// ShownText is a sentence, or a name, as it may be shown: as [Shown].
func ShownText(text string) string {
	if !strings.Contains(text, Prefix) {
		return text
	}
	return tokensExpr.ReplaceAllStringFunc(text, func(t string) string { return shortened(tokensExpr.FindStringSubmatch(t)[2]) })
}
