package jira

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// maxBody is the largest request body; no test sends more.
const maxBody = 8 << 20

// answer is the response to a request.
type answer struct {
	status int
	body   any // nil: none
	header map[string]string
}

func ok(body any) answer      { return answer{status: http.StatusOK, body: body} }
func created(body any) answer { return answer{status: http.StatusCreated, body: body} }

var noContent = answer{status: http.StatusNoContent}

// problem is an error in Jira's form.
func problem(status int, message string, fields map[string]any) answer {
	if fields == nil {
		fields = map[string]any{}
	}
	messages := []any{}
	if message != "" {
		messages = append(messages, message)
	}
	return answer{status: status, body: map[string]any{"errorMessages": messages, "errors": fields}}
}

func noIssue() answer {
	return problem(http.StatusNotFound, "Issue does not exist or you do not have permission to see it.", nil)
}

func (a answer) text() []byte {
	if a.body == nil {
		return nil
	}
	text, err := json.Marshal(a.body)
	if err != nil {
		panic(err) // bodies are made of decoded JSON
	}
	return text
}

func (a answer) writeTo(rw http.ResponseWriter) {
	for name, v := range a.header {
		rw.Header().Set(name, v)
	}
	if a.body != nil {
		rw.Header().Set("Content-Type", "application/json;charset=UTF-8")
	}
	rw.WriteHeader(a.status)
	_, _ = rw.Write(a.text()) // a client that has gone does not matter
}

// cut sends the status and half of the body, and ends the connection.
func (a answer) cut(rw http.ResponseWriter) {
	text := a.text()
	rw.Header().Set("Content-Type", "application/json;charset=UTF-8")
	rw.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	rw.WriteHeader(a.status)
	_, _ = rw.Write(text[:len(text)/2])
	if f, ok := rw.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

func page(rw http.ResponseWriter, status int, text string) {
	rw.Header().Set("Content-Type", "text/html")
	rw.WriteHeader(status)
	_, _ = io.WriteString(rw, text)
}

// throttled is a 429 in one of the forms that Jira has.
func throttled(how string) answer {
	a := problem(http.StatusTooManyRequests, "Rate limit exceeded.", nil)
	a.header = map[string]string{"RateLimit-Reason": "jira-burst-based"}
	switch how {
	case "reset":
		a.header["X-RateLimit-Reset"] = time.Now().UTC().Add(2 * time.Minute).Format("2006-01-02T15:04Z")
	case "bare":
	default:
		a.header["Retry-After"] = "7"
	}
	return a
}

// decode reads the body of a request.
func decode(rw http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxBody))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		problem(http.StatusBadRequest, "Invalid request payload.", nil).writeTo(rw)
		return false
	}
	return true
}

// serveWrite makes a change, unless a fault prevents it. apply is called under the lock, at most
// once, with the kind of fault that alters what is stored; it logs its effect. phantom is the
// answer of a false success.
func (s *Site) serveWrite(rw http.ResponseWriter, r *http.Request, phantom func() answer, apply func(alter fault.Kind) answer) {
	do := func(alter fault.Kind) answer {
		s.mu.Lock()
		defer s.mu.Unlock()
		return apply(alter)
	}
	f, met := s.take(fault.LostAnswer, fault.CutBody, fault.DroppedBefore, fault.BadGateway, fault.LateCommit, fault.PhantomSuccess, fault.Refused, fault.Throttled,
		fault.DroppedField, fault.NormalisedField)
	if !met {
		do("").writeTo(rw)
		return
	}
	switch f.Kind {
	case fault.LostAnswer:
		do("")
		panic(http.ErrAbortHandler)
	case fault.DroppedBefore:
		panic(http.ErrAbortHandler)
	case fault.CutBody:
		do("").cut(rw)
	case fault.LateCommit:
		<-r.Context().Done()
		time.AfterFunc(f.DelayOr(defaultDelay), func() { do("") })
		panic(http.ErrAbortHandler)
	case fault.PhantomSuccess:
		s.mu.Lock()
		a := phantom()
		s.mu.Unlock()
		a.writeTo(rw)
	case fault.DroppedField, fault.NormalisedField:
		do(f.Kind).writeTo(rw)
	default:
		s.serveAnswered(rw, f, do)
	}
}

// serveAnswered serves the answers that do not depend on the effect.
func (s *Site) serveAnswered(rw http.ResponseWriter, f fault.Fault, do func(fault.Kind) answer) {
	if f.Kind == fault.BadGateway {
		do("")
	}
	switch {
	case f.Kind == fault.Throttled:
		throttled(f.How).writeTo(rw)
	case f.How == "503":
		rw.Header().Set("Retry-After", "3")
		page(rw, http.StatusServiceUnavailable, "<html>busy</html>")
	case f.How == "409":
		problem(http.StatusConflict, "The issue could not be updated due to a conflicting update.", nil).writeTo(rw)
	case f.How == "301":
		rw.Header().Set("Location", "/elsewhere")
		rw.WriteHeader(http.StatusMovedPermanently)
	case f.How == "401":
		problem(http.StatusUnauthorized, "You are not authenticated.", nil).writeTo(rw)
	case f.How == "404":
		noIssue().writeTo(rw)
	case f.Kind == fault.BadGateway:
		page(rw, http.StatusBadGateway, "<html>upstream went away</html>")
	default:
		problem(http.StatusBadRequest, "", map[string]any{"summary": "You must specify a summary of the issue."}).writeTo(rw)
	}
}

// serveRead answers a read, unless a fault prevents it.
func (s *Site) serveRead(rw http.ResponseWriter, r *http.Request, query func() answer) {
	f, met := s.take(fault.UnreadableRead, fault.HangingRead)
	if !met {
		s.mu.Lock()
		a := query()
		s.mu.Unlock()
		a.writeTo(rw)
		return
	}
	switch {
	case f.Kind == fault.HangingRead:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.How == "endless":
		endless(rw, r)
	default:
		s.garble(rw, f.How, query)
	}
}

// endless is a body that is longer than any memory. In memory it is 64 MiB.
func endless(rw http.ResponseWriter, r *http.Request) {
	rw.WriteHeader(http.StatusOK)
	chunk := make([]byte, 1<<20)
	for n := range chunk {
		chunk[n] = ' '
	}
	_, flushes := rw.(http.Flusher)
	for n := 0; (flushes && n < 10<<10) || n < 64; n++ {
		if _, err := rw.Write(chunk); err != nil || r.Context().Err() != nil {
			return
		}
	}
}

func (s *Site) garble(rw http.ResponseWriter, how string, query func() answer) {
	switch how {
	case "", "html":
		page(rw, http.StatusOK, "<html>log in</html>")
	case "503":
		page(rw, http.StatusServiceUnavailable, "<html>busy</html>")
	case "401":
		problem(http.StatusUnauthorized, "You are not authenticated.", nil).writeTo(rw)
	case "403":
		rw.Header().Set("X-Seraph-LoginReason", "AUTHENTICATION_DENIED")
		page(rw, http.StatusForbidden, "<html>captcha</html>")
	case "429":
		throttled("").writeTo(rw)
	case "empty":
		rw.WriteHeader(http.StatusOK)
	case "other":
		ok(map[string]any{}).writeTo(rw)
	case "null":
		page(rw, http.StatusOK, "null")
	case "redirect":
		rw.Header().Set("Location", "/login")
		rw.WriteHeader(http.StatusFound)
	case "cut":
		s.mu.Lock()
		a := query()
		s.mu.Unlock()
		a.cut(rw)
	}
}
