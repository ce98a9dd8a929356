package rest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TrytonOptions are the choices of a [Tryton]. The zero value works.
type TrytonOptions struct {
	// Database is the path, Session the header Authorization after "Session ". Default "db", "cm9ib3Q6MTp0b2tlbg==".
	Database, Session string
	// Model is the collection, and Fields are its fields. Default "sale.sale" with reference, party, description, total.
	Model  string
	Fields []string
	// Unique is a field whose values are unique. Default none.
	Unique string
}

// Tryton is a fake of Tryton's JSON-RPC for the records of one model.
//
// All requests are POST to one path, anything else is 405. Every error is 200: a refusal, a login that is
// not valid, an internal error. A record that is not there is an error of read, and an empty list of
// search and search_read. Searches hide what is not active, unless their domain has a clause about that.
type Tryton struct {
	*Fake
	o TrytonOptions
}

// NewTryton makes one.
func NewTryton(o TrytonOptions) *Tryton {
	o.Database, o.Session, o.Model = cmp.Or(o.Database, "db"), cmp.Or(o.Session, "cm9ib3Q6MTp0b2tlbg=="), cmp.Or(o.Model, "sale.sale")
	if o.Fields == nil {
		o.Fields = []string{"reference", "party", "description", "total"}
	}
	t := &Tryton{o: o}
	m := usual(func(r *http.Request) bool {
		return r.Method != http.MethodPost || r.Header.Get("Authorization") == "Session "+o.Session
	}, 400, func(int) Answer { return *trytonError(nil, "UserError", []any{"The request is not valid.", ""}) })
	m.Unauthorized = func() Answer { return *trytonError(nil, "NotLogged") }
	m.NotFound = func(r *http.Request) Answer {
		if r.Method != http.MethodPost {
			return Answer{Status: http.StatusMethodNotAllowed, Text: "<title>405 Method Not Allowed</title>", Type: "text/html"}.With("Allow", "POST")
		}
		return *trytonError(nil, "Database not found", "Traceback (most recent call last):")
	}
	m.Throttled = func(how string, _ time.Duration) (Answer, bool) {
		return *trytonError(nil, "RateLimitException"), how == ""
	}
	m.Failed = func() Answer {
		return *trytonError(nil, "'NoneType' object has no attribute 'id'", "Traceback (most recent call last):")
	}
	t.Fake = New(m)
	t.HandleBoth("POST /"+o.Database+"/{$}", func(raw []byte) bool {
		body, _ := object(raw) // what is no object is no write
		method := textAt(body, "method")
		return slices.Contains([]string{"create", "write", "delete"}, method[strings.LastIndex(method, ".")+1:])
	}, t.save, func(*Request) bool { return false }, t.query)
	return t
}

func trytonError(r *Request, args ...any) *Answer {
	a := trytonResult(r, nil)
	body := a.Body.(map[string]any)
	delete(body, "result")
	body["error"] = args
	return &a
}

func trytonResult(r *Request, result any) Answer {
	body := map[string]any{"id": nil, "result": result}
	if r != nil {
		body["id"] = r.Body["id"]
	}
	return Answer{Status: http.StatusOK, Body: body}
}

// called is the function of the model that a request calls, "" for another model's.
func (t *Tryton) called(r *Request) string {
	function, _ := strings.CutPrefix(textAt(r.Body, "method"), "model."+t.o.Model+".")
	if strings.Contains(function, ".") {
		return ""
	}
	return function
}

// wrong answers values with a field that the model does not have, or that is taken.
func (t *Tryton) wrong(r *Request, values map[string]any, now View, id string) *Answer {
	if name := unknown(values, strings.Join(t.o.Fields, " ")+" active"); name != "" || values == nil {
		return trytonError(r, "'"+name+"'", "Traceback (most recent call last):\nKeyError: '"+name+"'")
	}
	for _, o := range now.List(t.o.Model) {
		if v := values[t.o.Unique]; v != nil && same(o[t.o.Unique], v) && fmt.Sprint(o["id"]) != id {
			return trytonError(r, "UserError", []any{"The " + t.o.Unique + " must be unique.", ""})
		}
	}
	return nil
}

func (t *Tryton) save(r *Request, now View) (Plan, *Answer) {
	function, first := t.called(r), at(r.Body, "params", 0)
	ids, n := strs(listAt(first)), now.Next()
	if function == "" || len(ids) != 1 {
		return Plan{}, trytonError(r, "this fake writes one record of "+t.o.Model, "Traceback (most recent call last):")
	}
	id, values := ids[0], objectAt(r.Body, "params", 1)
	before := now.Get(t.o.Model, id)
	if function == "create" {
		id, values, before = strconv.FormatInt(n, 10), objectAt(first, 0), nil
	} else if before == nil {
		return Plan{}, trytonError(r, "UserError", []any{"You are trying to use records that no longer exist.", ""})
	}
	if function == "delete" {
		return removing(t.o.Model, id, trytonResult(r, nil)), nil
	}
	if wrong := t.wrong(r, values, now, id); wrong != nil {
		return Plan{}, wrong
	}
	after := before.Clone()
	if after == nil {
		after = Object{"id": Number(n), "rec_name": id, "active": true, "create_date": trytonTime(now.At())}
	}
	for _, name := range t.o.Fields {
		if _, had := after[name]; !had {
			after[name] = nil
		}
	}
	maps.Copy(after, values)
	p := storing(t.o.Model, id, before, after, t.o.Fields[len(t.o.Fields)-2], func(Object) Answer {
		if function == "create" {
			return trytonResult(r, []any{Number(n)})
		}
		return trytonResult(r, nil)
	})
	if t.o.Unique == "" {
		p = p.again(func(now View) (string, Object) {
			n := now.Next()
			return strconv.FormatInt(n, 10), Object{"id": Number(n)}
		})
	}
	return p, nil
}

func trytonTime(at time.Time) map[string]any {
	at = at.UTC()
	return map[string]any{"__class__": "datetime", "year": at.Year(), "month": int(at.Month()), "day": at.Day(),
		"hour": at.Hour(), "minute": at.Minute(), "second": at.Second(), "microsecond": 0}
}

func (t *Tryton) query(r *Request, seen View) Answer {
	params := listAt(r.Body, "params")
	function := t.called(r)
	var found []Object
	switch {
	case function == "read" && len(params) >= 2:
		for _, id := range strs(listAt(params, 0)) {
			o := seen.Get(t.o.Model, id)
			if o == nil {
				return *trytonError(r, "UserError", []any{"You are trying to read records that no longer exist.", ""})
			}
			found = append(found, only(o, append(strs(listAt(params, 1)), "id")))
		}
		return trytonResult(r, visible(found, nil))
	case function != "search" && function != "search_read" || len(params) < 4:
		return *trytonError(r, "'"+function+"'", "Traceback (most recent call last):")
	}
	for _, c := range listAt(params, 0) {
		if name := textAt(c, 0); unknown(map[string]bool{name: true}, strings.Join(t.o.Fields, " ")+" id active") != "" {
			return *trytonError(r, "'"+name+"'", "Traceback (most recent call last):\nKeyError: '"+name+"'")
		}
	}
	asks := slices.ContainsFunc(listAt(params, 0), func(c any) bool { return textAt(c, 0) == "active" })
	found = visible(seen.List(t.o.Model), func(o Object) bool {
		return (asks || o["active"] != false) && trytonHolds(o, listAt(params, 0))
	})
	from, _ := strconv.Atoi(fmt.Sprint(params[1]))
	most, err := strconv.Atoi(fmt.Sprint(params[2]))
	if err != nil {
		most = len(found) // null: all
	}
	found = slice(found, from, most)
	if function == "search_read" {
		for i := range found {
			found[i] = only(found[i], append(strs(listAt(params, 4)), "id"))
		}
		return trytonResult(r, found)
	}
	ids := []any{}
	for _, o := range found {
		ids = append(ids, o["id"])
	}
	return trytonResult(r, ids)
}

// trytonHolds reports whether a record is in a domain: clauses that must all hold.
func trytonHolds(o Object, domain []any) bool {
	for _, c := range domain {
		have, op, want := o[textAt(c, 0)], textAt(c, 1), at(c, 2)
		equal := (have == nil) == (want == nil) && same(have, want)
		holds := map[string]bool{"=": equal, "!=": !equal, "in": slices.Contains(strs(listAt(want)), fmt.Sprint(have))}
		if !holds[op] {
			return false
		}
	}
	return true
}
