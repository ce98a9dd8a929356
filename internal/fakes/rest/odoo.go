package rest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OdooOrders is the collection of [Odoo], a model.
const OdooOrders = "x_order"

// odooFields are the fields of the model.
const odooFields = "x_ref x_subject x_amount x_stamp"

// Odoo is a fake of Odoo's JSON-RPC for the records of one model. Its user is "robot", with the password
// "odoo-hunter2", of the database "acme".
//
// Every answer is 200: a refusal, an ended session, a login that is refused, which sets the cookie of a
// session all the same. What has no value is false.
type Odoo struct {
	*Fake
	Sessions
}

// NewOdoo makes one.
func NewOdoo() *Odoo {
	o := &Odoo{}
	m := usual(func(r *http.Request) bool {
		c, err := r.Cookie("session_id")
		return err == nil && o.has(c.Value)
	}, 400, func(int) Answer {
		return odooError(200, "odoo.exceptions.ValidationError", "The subject is not valid.")
	})
	m.Unauthorized = func() Answer {
		return odooError(100, "odoo.http.SessionExpiredException", "Session expired")
	}
	m.NotFound = func(*http.Request) Answer {
		return Answer{Status: http.StatusNotFound, Text: "<title>404 Not Found</title>", Type: "text/html"}
	}
	m.Throttled = func(how string, wait time.Duration) (Answer, bool) {
		return Answer{Status: http.StatusTooManyRequests, Text: "<title>429</title>", Type: "text/html"}.With("Retry-After", seconds(wait)), how == ""
	}
	m.Failed = func() Answer { return odooError(200, "builtins.TypeError", "'NoneType' object is not subscriptable") }
	o.Fake = New(m)
	o.HandleOther("POST /web/session/authenticate", o.login)
	o.HandleBoth("POST /web/dataset/call_kw", func(raw []byte) bool {
		body, _ := object(raw)
		return slices.Contains([]string{"create", "write", "unlink"}, textAt(body, "params", "method"))
	}, o.create, func(*Request) bool { return false }, o.search)
	return o
}

func odooError(code int, name, message string) Answer {
	return Answer{Status: http.StatusOK, Body: map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": "Odoo Server Error",
		"data": map[string]any{"name": name, "message": message, "debug": "Traceback (most recent call last):"}}}}
}

func odooResult(result any) Answer {
	return Answer{Status: http.StatusOK, Body: map[string]any{"jsonrpc": "2.0", "id": nil, "result": result}}
}

func (o *Odoo) login(w http.ResponseWriter, r *http.Request) {
	p := objectAt(loginBody(w, r), "params")
	id := o.opened(p["db"] == "acme" && p["login"] == "robot" && p["password"] == "odoo-hunter2")
	a := odooResult(map[string]any{"uid": 7, "db": "acme", "username": p["login"]})
	if id == "" {
		id, a = "anonymous", odooError(200, "odoo.exceptions.AccessDenied", "Access Denied")
	}
	http.SetCookie(w, &http.Cookie{Name: "session_id", Value: id, Path: "/", HttpOnly: true, MaxAge: 604800})
	a.writeTo(w)
}

func (o *Odoo) create(r *Request, now View) (Plan, *Answer) {
	values := objectAt(r.Body, "params", "args", 0)
	if textAt(r.Body, "params", "method") != "create" || textAt(r.Body, "params", "model") != OdooOrders || values == nil || unknown(values, odooFields) != "" {
		a := odooError(200, "builtins.ValueError", "Invalid field on model")
		return Plan{}, &a
	}
	n := now.Next()
	after := Object{"id": Number(n), "create_date": instant(now.At())}
	for _, name := range strings.Fields(odooFields) {
		after[name] = false
	}
	maps.Copy(after, values)
	p := storing(OdooOrders, strconv.FormatInt(n, 10), nil, after, "x_subject", func(Object) Answer { return odooResult(Number(n)) })
	return p.again(func(now View) (string, Object) {
		n := now.Next()
		return strconv.FormatInt(n, 10), Object{"id": Number(n)}
	}), nil
}

// search is search_read by a domain of clauses that must all hold.
func (o *Odoo) search(r *Request, seen View) Answer {
	if textAt(r.Body, "params", "method") != "search_read" || textAt(r.Body, "params", "model") != OdooOrders {
		return odooError(200, "builtins.AttributeError", "The method does not exist")
	}
	domain := listAt(r.Body, "params", "kwargs", "domain")
	return odooResult(visible(seen.List(OdooOrders), func(x Object) bool {
		return !slices.ContainsFunc(domain, func(c any) bool { return textAt(c, 1) != "=" || !same(x[textAt(c, 0)], at(c, 2)) })
	}))
}
