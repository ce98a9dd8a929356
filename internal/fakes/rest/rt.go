package rest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// RTTickets is the collection of [RT].
const RTTickets = "tickets"

// RTOptions are the choices of an [RT]. The zero value works.
type RTOptions struct {
	// Token is the authentication token. Default "rt-token".
	Token string
	// Queue is the one queue. Default "General".
	Queue string
	// Fields are the names of custom fields, whose ids count from 1. Names may occur twice, as in RT.
	// Default "Readback", "Order", "Amount".
	Fields []string
	// Seed decides about the order in which custom fields are shown.
	Seed uint64
}

// RT is the fake of Request Tracker's REST API, version 2.0, for tickets.
//
// Custom fields are [{id, name, values}], at each read in another order. Those that the queue does not have
// are ignored by writes. A search shows references, and of a record what fields asks for; it lags and hides
// deleted tickets, which can still be read.
type RT struct {
	*Fake
	o      RTOptions
	random *rand.Rand
}

// NewRT makes one.
func NewRT(o RTOptions) *RT {
	o.Token, o.Queue = cmp.Or(o.Token, "rt-token"), cmp.Or(o.Queue, "General")
	if o.Fields == nil {
		o.Fields = []string{"Readback", "Order", "Amount"}
	}
	t := &RT{o: o, random: rand.New(rand.NewPCG(o.Seed, 1))}
	t.Fake = New(usual(func(r *http.Request) bool { return r.Header.Get("Authorization") == "token "+o.Token }, 400, func(status int) Answer {
		return *rtError(status, http.StatusText(status))
	}))
	t.HandleWrite("POST /REST/2.0/ticket", t.save)
	t.HandleWrite("PUT /REST/2.0/ticket/{id}", t.save)
	t.HandleWrite("DELETE /REST/2.0/ticket/{id}", func(r *Request, now View) (Plan, *Answer) {
		o := now.Get(RTTickets, r.PathValue("id"))
		if o == nil {
			return Plan{}, rtError(404, "Not Found")
		}
		o["Status"] = "deleted"
		return Plan{Collection: RTTickets, ID: r.PathValue("id"), After: o, Answer: func(Object) Answer { return Answer{Status: 204} }}, nil
	})
	t.HandleRead("GET /REST/2.0/ticket/{id}", true, func(r *Request, seen View) Answer {
		if o := seen.Get(RTTickets, r.PathValue("id")); o != nil {
			return Answer{Status: 200, Body: t.show(o)}
		}
		return *rtError(404, "Not Found")
	})
	t.HandleRead("GET /REST/2.0/tickets", false, t.search)
	return t
}

func rtError(status int, message string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"message": message}}
}

func rtRef(kind, id string) Object {
	return Object{"type": kind, "id": id, "_url": "https://rt.example.com/REST/2.0/" + kind + "/" + id}
}

// show has the custom fields in an order of chance.
func (t *RT) show(o Object) Object {
	o = o.Shown()
	fields := listAt(o, "CustomFields")
	t.random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return o
}

func (t *RT) save(r *Request, now View) (Plan, *Answer) {
	id := r.PathValue("id")
	before := now.Get(RTTickets, id)
	o := before.Clone()
	switch {
	case id != "" && o == nil:
		return Plan{}, rtError(404, "Not Found")
	case id == "" && r.Body["Queue"] == nil:
		return Plan{}, rtError(400, "Could not create ticket. Queue not set")
	case r.Body["Queue"] != nil && !same(r.Body["Queue"], t.o.Queue):
		return Plan{}, rtError(400, "Unable to find queue")
	case id == "":
		n := now.Next()
		id = strconv.FormatInt(n, 10)
		o = Object{"id": Number(n), "type": "ticket", "Subject": "", "Status": "new", "Created": instant(now.At()), "Queue": rtRef("queue", "1")}
		fields := []any{}
		for i, name := range t.o.Fields {
			f := rtRef("customfield", strconv.Itoa(i+1))
			f["name"], f["values"] = name, []any{}
			fields = append(fields, map[string]any(f))
		}
		o["CustomFields"] = fields
	}
	for _, name := range []string{"Subject", "Status"} {
		if v, ok := r.Body[name].(string); ok {
			o[name] = v
		}
	}
	o["LastUpdated"] = instant(now.At())
	given := objectAt(r.Body, "CustomFields")
	for _, f := range listAt(o, "CustomFields") {
		f := f.(map[string]any)
		for _, by := range []any{f["name"], f["id"]} {
			if v, ok := given[by.(string)].([]any); ok {
				f["values"] = v
			} else if v := given[by.(string)]; v != nil {
				f["values"] = []any{v}
			}
		}
	}
	p := storing(RTTickets, id, before, o, "Subject", func(Object) Answer {
		if before != nil {
			return Answer{Status: 200, Body: []any{"Ticket " + id + ": updated"}}
		}
		ref := rtRef("ticket", id)
		return Answer{Status: 201, Body: ref}.With("Location", ref.Text("_url"))
	})
	return p.again(func(now View) (string, Object) {
		n := now.Next()
		return strconv.FormatInt(n, 10), Object{"id": Number(n)}
	}), nil
}

// search takes the conditions of TicketSQL that are joined by AND.
func (t *RT) search(r *Request, seen View) Answer {
	q := r.URL.Query()
	all, rest := conditions(strings.NewReplacer("'CF.{", "CF['", "}'", "']", "CF.{", "CF['", "}", "']").Replace(q.Get("query")))
	size := limit(q.Get("per_page"), 20, 100)
	number := limit(q.Get("page"), 1, 1<<30)
	if rest != "" || len(all) == 0 || size == 0 || number == 0 {
		return *rtError(400, "The query could not be parsed")
	}
	found := visible(seen.List(RTTickets), func(o Object) bool {
		return o["Status"] != "deleted" && !slices.ContainsFunc(all, func(c clause) bool { return !rtHolds(o, c) })
	})
	items := []Object{}
	for _, o := range slice(found, (number-1)*size, size) {
		item := rtRef("ticket", fmt.Sprint(o["id"]))
		for name := range strings.SplitSeq(q.Get("fields"), ",") {
			if v, ok := t.show(o)[name]; ok && name != "id" {
				item[name] = v
			}
		}
		items = append(items, item)
	}
	return Answer{Status: 200, Body: map[string]any{"count": len(items), "page": number, "pages": (len(found) + size - 1) / size, "per_page": size, "total": len(found), "items": items}}
}

func rtHolds(o Object, c clause) bool {
	name, custom := strings.CutPrefix(c.field, "CF['")
	if !custom {
		return c.holds(o[c.field])
	}
	name = strings.TrimSuffix(name, "']")
	return slices.ContainsFunc(listAt(o, "CustomFields"), func(f any) bool {
		return (same(at(f, "name"), name) || same(at(f, "id"), name)) && slices.ContainsFunc(listAt(f, "values"), c.holds)
	})
}
