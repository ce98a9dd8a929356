package httpapi

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Recover serves requests with a handler. If it panics, the panic is logged, and fail
// responds. A path that is not in its normal form goes to noRoute: a mux would redirect
// it, which turns a POST into a GET.
func Recover(h http.Handler, log *slog.Logger, noRoute http.Handler, fail func(http.ResponseWriter)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			log.Error("a request panicked", "route", r.Pattern, "panic", p, "stack", string(debug.Stack()))
			fail(w)
		}()
		if !normal(r.URL) {
			noRoute.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// normal reports whether a path is in its normal form.
func normal(u *url.URL) bool {
	parts := strings.Split(u.EscapedPath(), "/")
	for _, part := range parts[1:] {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return parts[0] == "" && len(parts) > 1
}

// Errors of [ReadBody].
var (
	ErrTooLarge = errors.New("the body is larger than")
	ErrSlow     = errors.New("the body did not arrive in time")
	ErrCut      = errors.New("the body did not arrive whole")
)

// ReadBody reads the body of a request, at most so many bytes of it.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, fmt.Errorf("%w %d bytes", ErrTooLarge, over.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, ErrSlow
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCut, err)
	}
	return data, nil
}

// Respond responds with a whole text of a type. Nothing may cache it, or take it for
// another type.
func Respond(w http.ResponseWriter, status int, contentType string, text []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that disconnected needs no response
}

// SlowReader is how long the write of one piece of a stream may take: then its client is
// cut off, as nothing is buffered for it.
const SlowReader = 10 * time.Second

// StreamType is the content type of server-sent events.
const StreamType = "text/event-stream"

// Stream is a response of server-sent events.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// Wrote is when something was last written.
	Wrote time.Time
}

// OpenStream begins a stream.
func OpenStream(w http.ResponseWriter) *Stream {
	h := w.Header()
	h.Set("Content-Type", StreamType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // keeps proxies from buffering the stream
	s := &Stream{w: w, control: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	// The server reads what is left of the request's body before it writes the header. Only then
	// does the bound on the body end. Not every connection has one.
	_ = s.control.Flush()
	_ = s.control.SetReadDeadline(time.Time{})
	return s
}

// Event writes one event. The data is one line, as JSON is.
func (s *Stream) Event(name, id string, data []byte) error {
	return s.Write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", idLine(id), name, data))
}

// Alive writes a comment, which keeps the connection open, and the id to continue from,
// "" for the last one.
func (s *Stream) Alive(comment, id string) error {
	return s.Write(fmt.Sprintf(": %s\n%s\n", comment, idLine(id)))
}

// idLine is the line of an id; "" where there is none. An id with a line end could forge
// events.
func idLine(id string) string {
	if id == "" || strings.ContainsAny(id, "\r\n\x00") {
		return ""
	}
	return "id: " + id + "\n"
}

// Write writes a piece at once, with a bound on the time of the write.
func (s *Stream) Write(text string) error {
	s.Wrote = time.Now()
	_ = s.control.SetWriteDeadline(s.Wrote.Add(SlowReader)) // without it the bound of the server applies
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
