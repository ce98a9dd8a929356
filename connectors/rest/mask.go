package rest

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/readback-go/readback/connectors"
)

const (
	// maxMasks is how many secrets are remembered to be masked: those of a login, its tokens, and
	// what they were before they were renewed.
	maxMasks = 16
	// minMask is how long a secret is at least: of a shorter one, which protects nothing, any text
	// would have parts.
	minMask = 4
	// masked is what is shown instead of a secret.
	masked = "***"
)

// masks are the secrets that requests carried lately. Destinations repeat them: in errors, in an
// echo of the request, in the address of a redirect.
type masks struct {
	mu  sync.Mutex
	all []string // as they may be written, the newest last
}

// add remembers a secret.
func (m *masks) add(secret string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(secret) < minMask {
		return
	}
	m.all = slices.DeleteFunc(m.all, func(one string) bool { return one == secret }) // it is in use, and the newest again
	if m.all = append(m.all, secret); len(m.all) > maxMasks {
		m.all = slices.Delete(m.all, 0, 1)
	}
}

// shows reports whether one of these secrets has one of the others in it, in a spelling that is known.
func (m *masks) shows(others *masks) bool {
	m.mu.Lock()
	all := slices.Clone(m.all)
	m.mu.Unlock()
	return slices.ContainsFunc(all, func(secret string) bool { return others.text(secret) != secret })
}

// text masks all secrets in a text, as they are and as URLs and Basic write them.
func (m *masks) text(s string) string {
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

// Mask masks the secrets that requests carried lately in a text, in every spelling that is known of them:
// for what shows requests and answers.
func (c *Connector) Mask(text string) string { return c.masks.text(text) }

// masked is a destination's reply without our credentials.
func (c *Connector) masked(r connectors.Reply) connectors.Reply {
	r.Code, r.Message, r.RequestID = c.masks.text(r.Code), c.masks.text(r.Message), c.masks.text(r.RequestID)
	if len(r.Raw) > 0 {
		r.Raw = []byte(c.masks.text(string(r.Raw)))
	}
	return r
}
