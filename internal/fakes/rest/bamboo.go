package rest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// BambooEmployees is the collection of [BambooHR].
const BambooEmployees = "employees"

// BambooOptions are the choices of a [BambooHR]. The zero value works.
type BambooOptions struct {
	// Key is the API key. Default "bamboo-key".
	Key string
	// Unique means that employee numbers are unique: a taken one is 409.
	Unique bool
}

// BambooHR is the fake of BambooHR's API for employees.
//
// The answer to a create is 201 without a body; the id is in Location. An update is 200 without a body, and
// unknown members and photos are ignored. Errors have no body: the reason is a header. A record shows the
// fields that the request names. The list has filters of equality and pages with a cursor; it and the
// directory, which has no employee numbers, lag.
type BambooHR struct {
	*Fake
	o BambooOptions
}

var bambooFields = strings.Fields("firstName lastName employeeNumber workEmail jobTitle department hireDate status")

// NewBambooHR makes one.
func NewBambooHR(o BambooOptions) *BambooHR {
	o.Key = cmp.Or(o.Key, "bamboo-key")
	b := &BambooHR{o: o}
	m := usual(func(r *http.Request) bool {
		key, _, _ := r.BasicAuth()
		return key == o.Key
	}, 400, func(status int) Answer { return *bambooError(status, http.StatusText(status)) })
	m.Throttled = func(how string, wait time.Duration) (Answer, bool) {
		return bambooError(429, "Too many requests").With("Retry-After", seconds(wait)), how == ""
	}
	b.Fake = New(m)
	b.HandleWrite("POST /api/v1/employees", b.save)
	b.HandleWrite("POST /api/v1/employees/{id}", b.save)
	b.HandleRead("GET /api/v1/employees/{id}", true, func(r *Request, seen View) Answer {
		o := seen.Get(BambooEmployees, r.PathValue("id"))
		if o == nil {
			return *bambooError(404, "Employee not found")
		}
		return Answer{Status: 200, Body: only(o.Shown(), append(strings.Split(r.URL.Query().Get("fields"), ","), "id"))}
	})
	b.HandleRead("GET /api/v1/employees/directory", false, func(_ *Request, seen View) Answer {
		public := strings.Fields("firstName lastName workEmail jobTitle department")
		fields, employees := []any{}, visible(seen.List(BambooEmployees), func(o Object) bool { return o["status"] != "Inactive" })
		for _, name := range public {
			fields = append(fields, map[string]any{"id": name, "type": "text", "name": name})
		}
		for _, o := range employees {
			only(o, append(public, "id"))
		}
		return Answer{Status: 200, Body: map[string]any{"fields": fields, "employees": employees}}
	})
	b.HandleRead("GET /api/v1/employees", false, b.list)
	return b
}

// list has the id as employeeId. A filter or a field that is not known is refused.
func (b *BambooHR) list(r *Request, seen View) Answer {
	q, filters := r.URL.Query(), map[string]string{}
	asked := append(strings.FieldsFunc(q.Get("fields"), func(c rune) bool { return c == ',' }), "firstName", "lastName", "status", "employeeId")
	for name := range q {
		if filter, ok := strings.CutPrefix(name, "filter["); ok {
			filters[strings.TrimSuffix(filter, "]")] = q.Get(name)
		}
	}
	for _, name := range append(slices.Collect(maps.Keys(filters)), asked...) {
		if !slices.Contains(bambooFields, name) && name != "employeeId" {
			return *bambooError(400, "Unknown field "+name)
		}
	}
	all := visible(seen.List(BambooEmployees), func(o Object) bool {
		o["employeeId"] = o["id"]
		for name, want := range filters {
			if !same(o[name], want) {
				return false
			}
		}
		return true
	})
	size := limit(q.Get("page[limit]"), 250, 2500)
	rest, known := after(all, "employeeId", q.Get("page[after]"))
	if size == 0 || !known {
		return *bambooError(400, "Invalid page")
	}
	found, more := page(rest, size)
	next := any(nil)
	if more {
		next = found[len(found)-1]["employeeId"]
	}
	for _, o := range found {
		only(o, asked)
	}
	return Answer{Status: 200, Body: map[string]any{"data": found, "meta": map[string]any{"page": map[string]any{"nextCursor": next}}}}
}

func bambooError(status int, reason string) *Answer {
	a := Answer{Status: status}.With("X-BambooHR-Error-Message", reason)
	return &a
}

// Seed stores an employee as another actor would.
func (b *BambooHR) Seed(fields Object) Object {
	_, o := b.Put(BambooEmployees, func(now View) (string, Object) {
		id := numbered(now)
		o := bambooRecord(id)
		maps.Copy(o, fields)
		return id, o
	})
	return o
}

func bambooRecord(id string) Object {
	o := Object{"id": id}
	for _, name := range bambooFields {
		o[name] = nil
	}
	o["status"] = "Active"
	return o
}

func (b *BambooHR) save(r *Request, now View) (Plan, *Answer) {
	id := r.PathValue("id")
	before := now.Get(BambooEmployees, id)
	o, answer := before.Clone(), Answer{Status: 200}
	switch {
	case r.Body == nil:
		return Plan{}, bambooError(400, "Malformed JSON")
	case id != "" && o == nil:
		return Plan{}, bambooError(404, "Employee not found")
	case id == "":
		id = numbered(now)
		o, answer = bambooRecord(id), Answer{Status: 201}.With("Location", "https://acme.bamboohr.com/api/v1/employees/"+id)
	}
	for _, name := range bambooFields {
		if v, given := r.Body[name]; given {
			o[name] = nil
			if v != nil && v != "" {
				o[name] = strings.TrimSpace(fmt.Sprint(v))
			}
		}
	}
	number := o["employeeNumber"]
	switch {
	case o["firstName"] == nil || o["lastName"] == nil:
		return Plan{}, bambooError(400, "firstName and lastName are required")
	case b.o.Unique && number != nil && slices.ContainsFunc(now.List(BambooEmployees), func(other Object) bool {
		return other["employeeNumber"] == number && other["id"] != id
	}):
		return Plan{}, bambooError(409, "Duplicate employee number")
	}
	p := storing(BambooEmployees, id, before, o, "jobTitle", func(Object) Answer { return answer })
	if !b.o.Unique {
		p = p.again(func(now View) (string, Object) {
			id := numbered(now)
			return id, Object{"id": id}
		})
	}
	return p, nil
}
