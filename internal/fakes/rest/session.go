package rest

import (
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Sessions are those of a fake whose clients log in by a call of its own. A session ends after Lasts
// requests, the last of which is refused, and when [Sessions.End] is called. It is safe for concurrent use.
type Sessions struct {
	mu     sync.Mutex
	lasts  int
	logins int
	open   map[string]int // how many requests each has had
	fail   bool
}

// Last ends each session at its n-th request, which is refused; 0: sessions do not end by themselves.
func (s *Sessions) Last(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lasts = n
}

// Refuse makes the fake refuse logins, whatever the password.
func (s *Sessions) Refuse(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = all
}

// End ends all sessions.
func (s *Sessions) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.open)
}

// Logins returns how many logins there were, refused ones included.
func (s *Sessions) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// opened opens a session for who knows the password; "" for others.
func (s *Sessions) opened(good bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins++
	if !good || s.fail {
		return ""
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	id := fmt.Sprintf("session-%06d", s.logins)
	s.open[id] = 0
	return id
}

// has reports whether a session is open, and counts a request of it.
func (s *Sessions) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, open := s.open[id]
	if !open {
		return false
	}
	if n++; n == s.lasts {
		delete(s.open, id)
		return false
	}
	s.open[id] = n
	return true
}

// loginBody is the JSON object of a login.
func loginBody(w http.ResponseWriter, r *http.Request) map[string]any {
	raw, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	body, _ := object(raw) // what is none has no password
	return body
}
