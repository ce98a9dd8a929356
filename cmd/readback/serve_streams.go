package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// stream is a response that may become an event stream, whatever its client requested: it
// lasts as long as the client reads, and must not keep a server from stopping.
type stream struct {
	http.ResponseWriter
	closing context.Context // ends when the server stops
	release context.CancelFunc
	forget  func() bool // nil before it is known to be a stream
}

// watch ensures that a stream is released.
func (l *stream) watch() {
	if l.forget == nil && strings.HasPrefix(l.Header().Get("Content-Type"), "text/event-stream") {
		l.forget = context.AfterFunc(l.closing, l.release)
	}
}

// end sends the clients of a released stream the time to reconnect.
func (l *stream) end() {
	if l.forget == nil || l.forget() || l.closing.Err() == nil {
		return
	}
	_, _ = fmt.Fprintf(l.ResponseWriter, ": the server is stopping; come back\nretry: %d\n\n", comeBack.Milliseconds()) // a client that disconnected needs no hint
}

func (l *stream) WriteHeader(status int) {
	l.watch()
	l.ResponseWriter.WriteHeader(status)
}

func (l *stream) Write(text []byte) (int, error) {
	l.watch()
	return l.ResponseWriter.Write(text)
}

// Flush is for handlers that look for an [http.Flusher].
func (l *stream) Flush() {
	l.watch()
	_ = http.NewResponseController(l.ResponseWriter).Flush() // a client that disconnected needs no response
}

// Unwrap is for [http.ResponseController].
func (l *stream) Unwrap() http.ResponseWriter { return l.ResponseWriter }
