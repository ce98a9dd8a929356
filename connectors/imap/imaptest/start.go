package imaptest

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
