package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
)

// A secret is rbk_<id>_<random><checksum>. The prefix and the checksum let scanners of
// repositories and logs find leaked secrets, and nothing else, and let invalid ones be
// refused without a read of the ledger. All of it is lower case letters and digits that
// the eye can distinguish.
const (
	secretPrefix = "rbk_"
	idBytes      = 10 // 80 bits: unique, and not guessable for a revocation
	randomBytes  = 32 // 256 bits
	idLen        = 16
	randomLen    = 52
	sumLen       = 7
	secretLen    = len(secretPrefix) + idLen + 1 + randomLen + sumLen
)

var base = base32.StdEncoding.WithPadding(base32.NoPadding)

// secretShape finds secrets in a text.
var secretShape = regexp.MustCompile(fmt.Sprintf(`%s[a-z2-7]{%d}_[a-z2-7]{%d}`, secretPrefix, idLen, randomLen+sumLen))

func randomText(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return strings.ToLower(base.EncodeToString(b))
}

func checksum(text string) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text)))
	return strings.ToLower(base.EncodeToString(sum))
}

// newSecret makes a secret and its id.
func newSecret() (id, secret string) {
	id = randomText(idBytes)
	secret = secretPrefix + id + "_" + randomText(randomBytes)
	return id, secret + checksum(secret)
}

// idOf is the id in a secret; false for an invalid one.
func idOf(secret string) (string, bool) {
	if len(secret) != secretLen || secretShape.FindString(secret) != secret {
		return "", false
	}
	body := secret[:secretLen-sumLen]
	return secret[len(secretPrefix):][:idLen], checksum(body) == secret[len(body):]
}

// isID reports whether a text has the form of a token's id.
func isID(text string) bool {
	return len(text) == idLen && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// hashOf is the stored hash of a secret. SHA-256 is enough, where a password would need a
// slow hash: the secret is 256 random bits, which cannot be found by trying.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// isHashOf compares in constant time.
func isHashOf(hash, secret string) bool {
	return subtle.ConstantTimeCompare([]byte(hash), []byte(hashOf(secret))) == 1
}
