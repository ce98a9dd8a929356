package rest

import (
	"net/http"
)

// DeskTickets is the collection of [Desk].
const DeskTickets = "tickets"

// Desk is a fake of a help desk that no vendor sells, with what is hard about logins by a token: a login
// that is refused is 200 with an error, an ended session is 403, as is what the user may not do, and the
// login answers with a token that a header carries. Its user is "robot", with the password "desk-hunter2".
type Desk struct {
	*Fake
	Sessions
}

// NewDesk makes one.
func NewDesk() *Desk {
	d := &Desk{}
	problem := func(status int) Answer {
		return Answer{Status: status, Body: map[string]any{"error": map[string]any{"code": "forbidden", "message": "not allowed"}}}
	}
	m := usual(func(r *http.Request) bool { return d.has(r.Header.Get("X-Desk-Session")) }, 422, problem)
	m.Unauthorized = func() Answer {
		return Answer{Status: http.StatusForbidden, Body: map[string]any{"error": map[string]any{"code": "session_expired", "message": "log in again"}}}
	}
	d.Fake = New(m)
	d.HandleOther("POST /session", func(w http.ResponseWriter, r *http.Request) {
		body := loginBody(w, r)
		a := Answer{Status: http.StatusOK, Body: map[string]any{"error": "invalid credentials"}}
		if id := d.opened(body["user"] == "robot" && body["password"] == "desk-hunter2"); id != "" {
			a.Body = map[string]any{"session": map[string]any{"value": id, "user": body["user"]}}
		}
		a.writeTo(w)
	})
	d.HandleWrite("POST /tickets", func(r *Request, now View) (Plan, *Answer) {
		id := numbered(now)
		after := Object(r.Body).Clone()
		after["id"] = id
		return storing(DeskTickets, id, nil, after, "subject", shows(http.StatusCreated)).again(func(now View) (string, Object) {
			id := numbered(now)
			return id, Object{"id": id}
		}), nil
	})
	d.HandleRead("GET /tickets", false, func(r *Request, seen View) Answer {
		return Answer{Status: http.StatusOK, Body: map[string]any{"tickets": visible(seen.List(DeskTickets), func(o Object) bool { return same(o["order"], r.URL.Query().Get("order")) })}}
	})
	d.HandleRead("GET /tickets/{id}", true, func(r *Request, seen View) Answer {
		if o := seen.Get(DeskTickets, r.PathValue("id")); o != nil {
			return Answer{Status: http.StatusOK, Body: o.Shown()}
		}
		return Answer{Status: http.StatusNotFound, Body: map[string]any{"error": map[string]any{"code": "not_found"}}}
	})
	d.handleFixed("GET /me", map[string]any{"user": "robot"})
	return d
}
