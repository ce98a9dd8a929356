package declared

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	// maxMasks is how many secrets are remembered to be masked: those of a login, its tokens, and
	// what they were before they were renewed.
	maxMasks = 16
	// MinMask is how long a secret is at least: of a shorter one, which protects nothing, any text
	// would have parts.
	MinMask = 4
	// masked is what is shown instead of a secret.
	masked = "***"
)

// Masks are the secrets that requests carried lately. Destinations repeat them: in errors, in an
// echo of the request, in the address of a redirect. It is safe for concurrent use, and the zero value
// has none.
type Masks struct {
	mu  sync.Mutex
	all []string // as they may be written, the newest last
}

// Add remembers a secret.
func (m *Masks) Add(secret string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(secret) < MinMask {
		return
	}
	m.all = slices.DeleteFunc(m.all, func(one string) bool { return one == secret }) // it is in use, and the newest again
	if m.all = append(m.all, secret); len(m.all) > maxMasks {
		m.all = slices.Delete(m.all, 0, 1)
	}
}

// Shows reports whether one of these secrets has one of the others in it, in a spelling that is known.
func (m *Masks) Shows(others *Masks) bool {
	m.mu.Lock()
	all := slices.Clone(m.all)
	m.mu.Unlock()
	return slices.ContainsFunc(all, func(secret string) bool { return others.Text(secret) != secret })
}

// Text masks all secrets in a text, as they are and as URLs and Basic write them.
func (m *Masks) Text(s string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	longest := slices.SortedFunc(slices.Values(m.all), func(a, b string) int { return len(b) - len(a) }) // one may begin another
	for _, secret := range longest {
		inJSON, _ := json.Marshal(secret)
		plain, inPath, inQuery := strings.TrimSuffix(string(inJSON[1:]), `"`), url.PathEscape(secret), url.QueryEscape(secret)
		for _, as := range []string{secret, plain, strings.ReplaceAll(plain, "/", `\/`), strings.ReplaceAll(strings.ReplaceAll(secret, `\`, `\\`), `"`, `\"`), inPath, inQuery,
			lowerEscapes(inPath), lowerEscapes(inQuery), base64.StdEncoding.EncodeToString([]byte(secret))} {
			s = strings.ReplaceAll(s, as, masked)
		}
	}
	return s
}

var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerEscapes writes %2F as %2f.
func lowerEscapes(s string) string { return escape.ReplaceAllStringFunc(s, strings.ToLower) }
