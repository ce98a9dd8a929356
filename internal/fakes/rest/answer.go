package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
)

// Answer is one HTTP answer.
type Answer struct {
	Status int
	Header map[string]string
	// Body is sent as JSON; nil: no body.
	Body any
	// Text is sent unchanged, in place of Body.
	Text string
	// Type is the content type. Default application/json; charset=utf-8.
	Type string

	cut bool // no answer: the connection is cut
}

// With is the answer with one more header.
func (a Answer) With(name, value string) Answer {
	a.Header = maps.Clone(a.Header)
	if a.Header == nil {
		a.Header = map[string]string{}
	}
	a.Header[name] = value
	return a
}

func (a Answer) text() string {
	if a.Text != "" || a.Body == nil {
		return a.Text
	}
	raw, err := json.Marshal(a.Body)
	if err != nil {
		panic(fmt.Sprintf("fakes/rest: an answer that is no JSON: %v", err)) // a fake made it
	}
	return string(raw)
}

func (a Answer) writeTo(w http.ResponseWriter) {
	if a.cut {
		panic(http.ErrAbortHandler)
	}
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	text := a.text()
	if text != "" {
		kind := a.Type
		if kind == "" {
			kind = "application/json; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write([]byte(text)) // a client that does not read has gone
}
