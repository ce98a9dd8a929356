package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// listened is an answer that may turn out to be an event stream, whatever its
// reader has asked for: it lasts as long as that one likes, and must not keep a
// server from stopping.
type listened struct {
	http.ResponseWriter
	closing context.Context // ends when the server is to stop
	release context.CancelFunc
	forget  func() bool // nil before it is known to be a stream
}

// look sees to it that a stream is released.
func (l *listened) look() {
	if l.forget == nil && strings.HasPrefix(l.Header().Get("Content-Type"), "text/event-stream") {
		l.forget = context.AfterFunc(l.closing, l.release)
	}
}

// end tells whoever listens to a stream that was released when to come back.
func (l *listened) end() {
	if l.forget == nil || l.forget() || l.closing.Err() == nil {
		return
	}
	_, _ = fmt.Fprintf(l.ResponseWriter, ": the server is stopping; come back\nretry: %d\n\n", comeBack.Milliseconds()) // who is gone needs no hint
}

func (l *listened) WriteHeader(status int) {
	l.look()
	l.ResponseWriter.WriteHeader(status)
}

func (l *listened) Write(text []byte) (int, error) {
	l.look()
	return l.ResponseWriter.Write(text)
}

// Flush is for handlers that look for it themselves.
func (l *listened) Flush() {
	l.look()
	_ = http.NewResponseController(l.ResponseWriter).Flush() // who is gone needs no answer
}

// Unwrap is for [http.ResponseController].
func (l *listened) Unwrap() http.ResponseWriter { return l.ResponseWriter }
