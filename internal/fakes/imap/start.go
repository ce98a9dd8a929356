package imap

import (
	"errors"
	"io"
	"os"
)

// TB is the part of testing.TB that is needed here, so that a program which
// shows off the server does not carry the testing package.
type TB interface {
	Helper()
	Cleanup(func())
	Logf(format string, args ...any)
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Start starts a server for one test and closes it afterwards.
func Start(tb TB, o Options) *Server {
	tb.Helper()
	s, err := NewServer(o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// StartReal starts a real server for one test and closes it afterwards. If start returns an error
// that wraps missing, the test is skipped, or fails if READBACK_STRICT is 1; left names what is
// not tested then.
func StartReal[S io.Closer](tb TB, start func() (S, error), missing error, left string) S {
	tb.Helper()
	s, err := start()
	if errors.Is(err, missing) {
		if os.Getenv("READBACK_STRICT") == "1" {
			tb.Fatalf("%v: %s", err, left)
		}
		tb.Skipf("%v: %s", err, left)
	}
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Logf("%v", err)
		}
	})
	return s
}
