package pgtest

import (
	"errors"
	"os"
)

// TB is what of testing.TB is needed: shipped code does not import testing.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Start opens a server for one test and closes it afterwards.
func Start(t TB, o Options) *Server {
	t.Helper()
	s, err := Open(o)
	Need(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}

// Need ends a test that has no server: skipped where PostgreSQL is not installed, failed if
// READBACK_STRICT is 1, and failed for any other error of [Open]. It ignores a nil error.
func Need(t TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrMissing) && os.Getenv("READBACK_STRICT") != "1":
		t.Skipf("%v, so nothing was tested against a real server", err)
	default:
		t.Fatalf("%v", err)
	}
}
