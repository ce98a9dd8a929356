package config

import (
	"net/url"
	"slices"
	"strings"
	"sync"
)

// known are the secrets that this process has fetched, so that its logs can be
// kept free of them. They are those of the process and not of one configuration:
// a secret that was changed is no less one.
var known secrets

// secrets is a set of them. The zero value is empty and ready.
type secrets struct {
	mu  sync.RWMutex
	all []string // longest first
}

// add takes in a secret and what may be told of it: where it is an address, the
// password in it.
func (s *secrets) add(secret string) {
	for _, one := range []string{secret, passwordOf(secret), lastWord(secret)} {
		if len(one) < minScrubbed {
			continue
		}
		s.mu.RLock()
		have := slices.Contains(s.all, one)
		s.mu.RUnlock()
		if have {
			continue
		}
		s.mu.Lock()
		s.all = append(slices.Clone(s.all), one)
		slices.SortStableFunc(s.all, func(a, b string) int { return len(b) - len(a) })
		s.all = s.all[:min(len(s.all), maxKnown)]
		s.mu.Unlock()
	}
}

// passwordOf is the password in the address of a database, "" where there is none.
func passwordOf(secret string) string {
	u, err := url.Parse(secret)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// lastWord is what follows the scheme in the value of an Authorization header.
func lastWord(secret string) string {
	if scheme, word, ok := strings.Cut(secret, " "); ok && !strings.Contains(word, " ") && len(scheme) < len(word) {
		return word
	}
	return ""
}

// Scrub is a text with every secret that this process has fetched replaced by
// "[secret]". Those of fewer than 6 bytes are left: they are in words, too.
func Scrub(text string) string {
	known.mu.RLock()
	all := known.all
	known.mu.RUnlock()
	for _, secret := range all {
		if strings.Contains(text, secret) {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	return text
}
