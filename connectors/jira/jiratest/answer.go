package jiratest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"
)

// answer is what is said to a request.
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

// serveWrite makes a change, unless a vice has it otherwise. apply is called
// under the lock, at most once, with the vice that alters what is stored; it
// logs what it does. phantom is the answer of a success that is none.
func (s *Site) serveWrite(rw http.ResponseWriter, r *http.Request, phantom func() answer, apply func(alter Vice) answer) {
	do := func(alter Vice) answer {
		s.mu.Lock()
		defer s.mu.Unlock()
		return apply(alter)
	}
	f := s.take(LostAnswer, CutBody, DroppedBefore, BadGateway, Unavailable, ConflictDone, ConflictUndone, Redirected,
		LateCommit, PhantomSuccess, Refused, Throttled, Unauthorized, NotFound, DroppedField, NormalisedField)
	if f == nil {
		do("").writeTo(rw)
		return
	}
	switch f.Vice {
	case LostAnswer:
		do("")
		panic(http.ErrAbortHandler)
	case DroppedBefore:
		panic(http.ErrAbortHandler)
	case CutBody:
		do("").cut(rw)
	case LateCommit:
		<-r.Context().Done()
		time.AfterFunc(f.Delay, func() { do("") })
		panic(http.ErrAbortHandler)
	case PhantomSuccess:
		s.mu.Lock()
		a := phantom()
		s.mu.Unlock()
		a.writeTo(rw)
	case DroppedField, NormalisedField:
		do(f.Vice).writeTo(rw)
	default:
		s.serveSaid(rw, f, do)
	}
}

// serveSaid gives the answers that say something else than what was done.
func (s *Site) serveSaid(rw http.ResponseWriter, f *Fault, do func(Vice) answer) {
	switch f.Vice {
	case BadGateway:
		do("")
		page(rw, http.StatusBadGateway, "<html>upstream went away</html>")
	case Unavailable:
		do("")
		rw.Header().Set("Retry-After", "3")
		page(rw, http.StatusServiceUnavailable, "<html>busy</html>")
	case ConflictDone, ConflictUndone:
		if f.Vice == ConflictDone {
			do("")
		}
		problem(http.StatusConflict, "The issue could not be updated due to a conflicting update.", nil).writeTo(rw)
	case Redirected:
		rw.Header().Set("Location", "/elsewhere")
		rw.WriteHeader(http.StatusMovedPermanently)
	case Refused:
		problem(http.StatusBadRequest, "", map[string]any{"summary": "You must specify a summary of the issue."}).writeTo(rw)
	case Throttled:
		throttled(f.How).writeTo(rw)
	case Unauthorized:
		problem(http.StatusUnauthorized, "You are not authenticated.", nil).writeTo(rw)
	case NotFound:
		noIssue().writeTo(rw)
	}
}

// serveRead answers a read, unless a vice has it otherwise.
func (s *Site) serveRead(rw http.ResponseWriter, r *http.Request, look func() answer) {
	f := s.take(UnreadableRead, HangingRead, EndlessRead)
	if f == nil {
		s.mu.Lock()
		a := look()
		s.mu.Unlock()
		a.writeTo(rw)
		return
	}
	switch f.Vice {
	case HangingRead:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case EndlessRead:
		endless(rw, r)
	default:
		s.garble(rw, f.How, look)
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

func (s *Site) garble(rw http.ResponseWriter, how string, look func() answer) {
	switch how {
	case "html":
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
		a := look()
		s.mu.Unlock()
		a.cut(rw)
	}
}
