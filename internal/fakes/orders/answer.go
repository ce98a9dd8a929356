package orders

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// answer is the world's response to one request.
type answer struct {
	status    int
	header    http.Header
	body      any    // encoded as JSON
	raw       string // instead of body
	cut       bool   // no answer: the connection ends
	truncated bool   // the connection ends within the body
	hang      bool   // no answer, and the connection stays
}

// refusal is the body of an answer other than success.
type refusal struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

func problem(status int, code, message string) answer {
	return answer{status: status, body: refusal{Error: code, Message: message}}
}

func (a answer) ok() bool { return a.status >= 200 && a.status <= 299 }

// problem is the answer as an error.
func (a answer) problem() error {
	if a.ok() {
		return nil
	}
	r, _ := a.body.(refusal)
	return fmt.Errorf("%d %s: %s", a.status, r.Error, r.Message)
}

func (a answer) order() Order {
	o, _ := a.body.(Order)
	return o
}

// answerOf is the answer to an effect, from the log.
func answerOf(e Effect) answer {
	a := answer{status: e.Status}
	if e.After != nil {
		a.body = *e.After
	}
	return a
}

// view is an order as the outside sees it.
func (w *World) view(o Order) Order {
	if !w.options.Versions {
		o.Version = 0
	}
	return o
}

func (a answer) writeTo(rw http.ResponseWriter) {
	if a.cut {
		panic(http.ErrAbortHandler)
	}
	data := []byte(a.raw)
	if a.raw == "" && a.body != nil {
		var err error
		if data, err = json.Marshal(a.body); err != nil {
			panic(err) // bodies are made here, of what was decoded from JSON
		}
	}
	h := rw.Header()
	h.Set("Content-Type", "application/json")
	for name, values := range a.header {
		h[name] = values
	}
	if o, ok := a.body.(Order); ok && o.Version > 0 {
		h.Set("ETag", strconv.Quote(strconv.FormatInt(o.Version, 10)))
	}
	if a.status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(data)))
	}
	rw.WriteHeader(a.status)
	if a.truncated {
		_, _ = rw.Write(data[:len(data)/2])
		if f, ok := rw.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = rw.Write(data) // the client may have gone
}
