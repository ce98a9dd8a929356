package readbacktest

import "fmt"

// The following makes a story a testing.TB of its own: its failures name it, and its clean-ups
// run at its end.

// Cleanup runs f at the end of the story.
func (s *Story) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *Story) clean() {
	for len(s.cleanups) > 0 {
		f := s.cleanups[len(s.cleanups)-1]
		s.cleanups = s.cleanups[:len(s.cleanups)-1]
		f()
	}
}

// Error fails the test and names the story.
func (s *Story) Error(args ...any) {
	s.TB.Helper()
	s.failed.Store(true)
	s.TB.Errorf("%v: %s", s, fmt.Sprint(args...))
}

// Errorf fails the test and names the story.
func (s *Story) Errorf(format string, args ...any) {
	s.TB.Helper()
	s.failed.Store(true)
	s.TB.Errorf("%v: %s", s, fmt.Sprintf(format, args...))
}

// Fatal fails the test, names the story, and ends both.
func (s *Story) Fatal(args ...any) {
	s.TB.Helper()
	s.failed.Store(true)
	s.TB.Fatalf("%v: %s", s, fmt.Sprint(args...))
}

// Fatalf fails the test, names the story, and ends both.
func (s *Story) Fatalf(format string, args ...any) {
	s.TB.Helper()
	s.failed.Store(true)
	s.TB.Fatalf("%v: %s", s, fmt.Sprintf(format, args...))
}

// Fail fails the test.
func (s *Story) Fail() {
	s.failed.Store(true)
	s.TB.Fail()
}

// FailNow fails the test and ends it.
func (s *Story) FailNow() {
	s.failed.Store(true)
	s.TB.FailNow()
}

// Failed reports whether this story failed.
func (s *Story) Failed() bool { return s.failed.Load() }
