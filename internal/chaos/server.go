package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/readbacktest/fault"
)

// Prefix is the path of the requests that control a [Server]. They are not passed on.
const Prefix = "/_chaos"

// maxFaults bounds the body of one request that sets faults.
const maxFaults = 64 << 10

// Server is a proxy that a test in another process controls.
type Server struct {
	protocol Protocol
	begin    func() *Log

	mu  sync.Mutex
	log *Log
}

// Protocol is how the requests of a proxy are named.
type Protocol struct {
	// Parse reads and checks a fault.
	Parse func(string) (fault.Fault, error)
	// Filters are the query parameters of the effects, and the value of each of a call.
	Filters map[string]func(Call) string
}

// Faults reads and checks faults. Empty texts are left out.
func (p Protocol) Faults(texts []string) ([]fault.Fault, error) {
	var all []fault.Fault
	for _, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		f, err := p.Parse(text)
		if err != nil {
			return nil, err
		}
		if f.Field == "" && (f.Kind == fault.DroppedField || f.Kind == fault.NormalisedField) {
			return nil, fmt.Errorf("%w %s: field is missing; want a member of the body, such as %[2]s,field=note", fault.ErrInvalid, f.Kind)
		}
		all = append(all, f)
	}
	return all, nil
}

// HTTP is the protocol of a [Proxy].
var HTTP = Protocol{Parse: parse, Filters: map[string]func(Call) string{
	"method": func(c Call) string { method, _, _ := strings.Cut(c.What, " "); return method },
	"path":   func(c Call) string { _, path, _ := strings.Cut(c.What, " "); return path },
	"key":    func(c Call) string { return c.Key },
}}

// NewServer returns a server. begin makes a proxy with its first faults and returns its log; it is
// called now and for each [Server.Restart].
func NewServer(p Protocol, begin func() *Log) *Server {
	return &Server{protocol: p, begin: begin, log: begin()}
}

// Log is the log of the current proxy.
func (s *Server) Log() *Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log
}

// Restart forgets the calls and has only the first faults again. Requests that are held never
// arrive: no later count would have them.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.forget()
	s.log = s.begin()
}

// Effects is what a test asserts, about the calls that its question is about.
type Effects struct {
	// Effects is how often a write reached the target and was answered with success.
	Effects int `json:"effects"`
	// Sends is how many writes came, those that the target never got included.
	Sends int `json:"sends"`
	// Unmet are all faults that no request met, or that did nothing to one: they have shown nothing.
	Unmet []string `json:"unmet"`
	// Log has a line for each call, for the message of an assertion.
	Log []string `json:"log"`
}

// Control serves the requests of a test:
//
//	POST   /_chaos/faults    adds faults for later requests, one a line as in [fault.Parse]
//	DELETE /_chaos/faults    removes all faults
//	GET    /_chaos/effects   [Effects], once all held requests have arrived; the query narrows it, by [Protocol].Filters;
//	                         409 if the target did not answer one of these writes
//	DELETE /_chaos           [Server.Restart]
func (s *Server) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Prefix+"/faults", s.serveFaults)
	mux.HandleFunc("DELETE "+Prefix+"/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.Log().Clear()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET "+Prefix+"/effects", s.serveEffects)
	mux.HandleFunc("DELETE "+Prefix, func(w http.ResponseWriter, _ *http.Request) {
		s.Restart()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, fmt.Errorf("there is no %s %s; want POST or DELETE %[3]s/faults, GET %[3]s/effects, or DELETE %[3]s", r.Method, r.URL.Path, Prefix))
	})
	return mux
}

func (s *Server) serveFaults(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFaults))
	if err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	all, err := s.protocol.Faults(strings.Split(string(text), "\n"))
	if err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	if len(all) == 0 {
		problem(w, http.StatusBadRequest, errors.New("the body is empty; want a fault such as lost-answer,nth=1"))
		return
	}
	for _, f := range all {
		if err := s.Log().Set(f); err != nil { // there are too many
			problem(w, http.StatusConflict, err)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) serveEffects(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	for name, values := range q {
		switch {
		case s.protocol.Filters[name] == nil:
			err = fmt.Errorf("%q is unknown; want one of %q", name, slices.Sorted(maps.Keys(s.protocol.Filters)))
		case len(values) > 1:
			err = fmt.Errorf("%q has the values %q; want one", name, values)
		}
	}
	if err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	log := s.Log()
	if !log.Settle() {
		problem(w, http.StatusConflict, fmt.Errorf("a request has been in flight for %v and may still have an effect; end what makes it first", Grace))
		return
	}
	match := func(c Call) bool {
		for name := range q {
			if s.protocol.Filters[name](c) != q.Get(name) {
				return false
			}
		}
		return true
	}
	e := Effects{Unmet: []string{}, Log: []string{}}
	happened, unharmed := map[fault.Kind]bool{}, map[fault.Kind]string{}
	for _, c := range log.Calls() {
		if c.Unharmed == "" {
			happened[c.Fault] = true
		} else {
			unharmed[c.Fault] = c.Unharmed
		}
		if !match(c) {
			continue
		}
		if c.Write && slices.ContainsFunc(c.Arrivals, func(a Arrival) bool { return a.Unknown }) {
			problem(w, http.StatusConflict, fmt.Errorf("the target got a write and did not answer, so that it may have had an effect; count the effects at the target: %s", log.line(c)))
			return
		}
		if c.Write {
			e.Sends++
		}
		e.Effects += c.Effects()
		e.Log = append(e.Log, log.line(c))
	}
	for f := range log.Unmet {
		e.Unmet = append(e.Unmet, f.String())
	}
	for _, k := range slices.Sorted(maps.Keys(unharmed)) {
		if !happened[k] {
			e.Unmet = append(e.Unmet, string(k)+": "+unharmed[k])
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(e) // the client may be gone
}

func problem(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // the client may be gone
}

// parse reads and checks a fault. Its op is read, write, or a method and a path.
func parse(s string) (fault.Fault, error) {
	f, err := fault.Parse(s)
	if err != nil {
		return f, err
	}
	for _, op := range f.Ops {
		if _, path, _ := strings.Cut(string(op), " "); op != fault.Read && op != fault.Write && !strings.HasPrefix(path, "/") {
			return f, fmt.Errorf("%w %s: op is %q; want read, write, or a method and a path such as POST /charges", fault.ErrInvalid, f.Kind, op)
		}
	}
	return f, Check(f)
}

// KeyAt returns an Options.Key: the value at a JSON pointer in the request's JSON body, or, where
// that has none, the form field or query parameter with the pointer's last name; else "".
func KeyAt(at string) func(*http.Request) string {
	p := jsontext.Pointer(at)
	return func(r *http.Request) string {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return ""
		}
		if found, ok := valueAtJSON(body, p); ok {
			return found
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return r.FormValue(p.LastToken())
	}
}

// valueAtJSON is the scalar at a place of a JSON document, as text.
func valueAtJSON(text []byte, at jsontext.Pointer) (string, bool) {
	var doc any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a key is compared as it is written
	if d.Decode(&doc) != nil {
		return "", false
	}
	found, ok := valueAt(doc, at)
	return fmt.Sprint(found), ok
}

func valueAt(doc any, at jsontext.Pointer) (any, bool) {
	for name := range at.Tokens() {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(v) {
				return nil, false
			}
			doc = v[n]
		default:
			return nil, false
		}
	}
	switch doc.(type) {
	case string, json.Number, bool:
		return doc, true
	}
	return nil, false
}
