package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// known are the secrets that this process has fetched, so that its logs can be kept free
// of them. They belong to the process and not to one configuration: a secret that was
// changed is still one.
var known secrets

// secrets is a set of secrets. The zero value is empty and ready.
type secrets struct {
	mu sync.RWMutex
	// of are the secrets of each source, the newest last: a secret, and its parts that
	// are secret, too.
	of  map[string][][]string
	all []string // longest first
}

// add adds a secret of a source. A source keeps only its newest ones, so that a secret
// that changes often does not displace those of other sources.
func (s *secrets) add(source, secret string) {
	if len(secret) < minScrubbed {
		return
	}
	s.mu.RLock()
	have := s.of[source]
	newest := len(have) > 0 && have[len(have)-1][0] == secret
	s.mu.RUnlock()
	if newest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string][][]string{}
	}
	have = slices.DeleteFunc(s.of[source], func(one []string) bool { return one[0] == secret })
	have = append(have, []string{secret, passwordOf(secret), lastWord(secret)})
	s.of[source] = slices.Clone(have[max(0, len(have)-maxKnown):])
	var all []string // readers keep the previous list
	for _, have := range s.of {
		all = append(all, slices.Concat(have...)...)
	}
	all = slices.DeleteFunc(all, func(one string) bool { return len(one) < minScrubbed })
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.all = slices.Compact(all)
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

// Scrub replaces every secret that this process has fetched by "[secret]". Those of fewer
// than 6 bytes are left: they also occur within words.
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
