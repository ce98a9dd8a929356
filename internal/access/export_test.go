package access

// Remembered is how many entries about callers are stored.
func (s *Shares) Remembered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range []*buckets{s.tokens, s.tenants} {
		n += len(b.young) + len(b.old)
	}
	for _, p := range []pool{s.requests, s.streams, s.bodies} {
		n += len(p.tenants) + len(p.tokens)
	}
	return n
}
