package rest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ServiceNowRecords is the collection of [ServiceNow], by sys_id.
const ServiceNowRecords = "records"

// ServiceNowOptions are the choices of a [ServiceNow]. The zero value works.
type ServiceNowOptions struct {
	// User and Password are for basic authorization. Default "robot", "now-password".
	User, Password string
	// Table is the one table. Default "incident".
	Table string
	// NoneIs404 means that a query that finds nothing is 404, as in some releases. Otherwise it is an empty list.
	NoneIs404 bool
	// ReadOnly are fields that the user may not write: they are ignored with 201 or 200.
	ReadOnly []string
}

// ServiceNow is the fake of ServiceNow's Table API for one table.
//
// Only sys_id is unique. All values are strings, and references objects unless the request excludes their
// links. A condition with an unknown field is dropped from a query, so that without others everything comes
// back; unknown fields of a write are ignored. Queries lag.
type ServiceNow struct {
	*Fake
	o      ServiceNowOptions
	fields []string
}

// NewServiceNow makes one.
func NewServiceNow(o ServiceNowOptions) *ServiceNow {
	o.User, o.Password, o.Table = cmp.Or(o.User, "robot"), cmp.Or(o.Password, "now-password"), cmp.Or(o.Table, "incident")
	s := &ServiceNow{o: o, fields: strings.Fields("short_description description correlation_id correlation_display urgency impact priority state category caller_id")}
	s.Fake = New(usual(func(r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		return user == o.User && password == o.Password
	}, 400, func(status int) Answer {
		says := map[int]string{400: "Invalid table", 401: "User Not Authenticated", 403: "Operation Failed", 404: "No Record found", 429: "Rate limit exceeded"}[status]
		detail := map[int]string{401: "Required to provide Auth information", 403: "ACL Exception Insert Failed due to security constraints", 404: "Record doesn't exist or ACL restricts the record retrieval"}[status]
		return *nowError(status, says, detail)
	}))
	for _, path := range []string{"/api/now/table/" + o.Table, "/api/now/v2/table/" + o.Table} {
		s.HandleWrite("POST "+path, s.save)
		s.HandleWrite("PATCH "+path+"/{id}", s.save)
		s.HandleWrite("PUT "+path+"/{id}", s.save)
		s.HandleWrite("DELETE "+path+"/{id}", func(r *Request, now View) (Plan, *Answer) {
			if now.Get(ServiceNowRecords, r.PathValue("id")) == nil {
				return Plan{}, nowMissing()
			}
			return removing(ServiceNowRecords, r.PathValue("id"), Answer{Status: 204}), nil
		})
		s.HandleRead("GET "+path, false, s.list)
		s.HandleRead("GET "+path+"/{id}", true, func(r *Request, seen View) Answer {
			if o := seen.Get(ServiceNowRecords, r.PathValue("id")); o != nil {
				return Answer{Status: 200, Body: map[string]any{"result": nowShown(r, o)}}
			}
			return *nowMissing()
		})
	}
	return s
}

func nowError(status int, message, detail string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"error": map[string]any{"message": message, "detail": detail}, "status": "failure"}}
}

func nowMissing() *Answer {
	return nowError(404, "No Record found", "Record doesn't exist or ACL restricts the record retrieval")
}

// Seed stores a record of another actor.
func (s *ServiceNow) Seed(fields Object) Object {
	_, o := s.Put(ServiceNowRecords, func(now View) (string, Object) {
		o := s.record(now)
		maps.Copy(o, fields)
		return o.Text("sys_id"), o
	})
	return o
}

func (s *ServiceNow) record(now View) Object {
	n, at := now.Next(), now.At().UTC().Format("2006-01-02 15:04:05")
	o := Object{"sys_id": fmt.Sprintf("%032x", n), "number": fmt.Sprintf("INC%07d", n), "sys_created_on": at, "sys_updated_on": at, "sys_created_by": s.o.User, "active": "true", "opened_by": "6816f79cc0a8016401c5a33be04be441"}
	for _, name := range s.fields {
		o[name] = ""
	}
	o["state"], o["urgency"], o["impact"] = "1", "3", "3"
	return o
}

// nowShown has the fields that the request asks for.
func nowShown(r *Request, o Object) Object {
	q := r.URL.Query()
	o = o.Shown()
	for name, v := range o {
		if v == nil {
			o[name] = ""
		}
	}
	for _, name := range []string{"opened_by", "caller_id"} {
		if v := o.Text(name); v != "" && q.Get("sysparm_exclude_reference_link") != "true" {
			o[name] = map[string]any{"link": "https://acme.service-now.com/api/now/table/sys_user/" + v, "value": v}
		}
	}
	if q.Get("sysparm_fields") != "" {
		o = only(o, strings.Split(q.Get("sysparm_fields"), ","))
	}
	return o
}

func (s *ServiceNow) save(r *Request, now View) (Plan, *Answer) {
	before := now.Get(ServiceNowRecords, r.PathValue("id"))
	o, status := before.Clone(), 200
	switch {
	case r.PathValue("id") != "" && o == nil:
		return Plan{}, nowMissing()
	case r.Body == nil:
		return Plan{}, nowError(400, "Exception while reading request", "The payload is not valid JSON.")
	case o == nil:
		o, status = s.record(now), 201
	}
	for _, name := range s.fields {
		if v, given := r.Body[name]; given && !slices.Contains(s.o.ReadOnly, name) {
			o[name] = ""
			if v != nil {
				o[name] = fmt.Sprint(v)
			}
		}
	}
	if text := o.Text("short_description"); len(text) > 160 {
		o["short_description"] = text[:160] // cut, not refused
	}
	o["sys_updated_on"] = now.At().UTC().Format("2006-01-02 15:04:05")
	p := storing(ServiceNowRecords, o.Text("sys_id"), before, o, "description", func(stored Object) Answer {
		a := Answer{Status: status, Body: map[string]any{"result": nowShown(r, stored)}}
		if status == 201 {
			a = a.With("Location", "https://acme.service-now.com"+r.URL.Path+"/"+o.Text("sys_id"))
		}
		return a
	})
	return p.again(func(now View) (string, Object) {
		fresh := s.record(now)
		return fresh.Text("sys_id"), only(fresh, []string{"sys_id", "number"})
	}), nil
}

func (s *ServiceNow) list(r *Request, seen View) Answer {
	q := r.URL.Query()
	found := visible(seen.List(ServiceNowRecords), func(o Object) bool {
		for part := range strings.SplitSeq(q.Get("sysparm_query"), "^") {
			name, list, in := strings.Cut(part, "IN")
			if strings.Contains(name, "=") {
				in = false
			}
			field, want, _ := strings.Cut(part, "=")
			have, known := o[field]
			switch {
			case in && o[name] != nil && !slices.Contains(strings.Split(list, ","), o.Text(name)),
				!in && known && !same(have, want):
				return false
			}
		}
		return true
	})
	size, err := strconv.Atoi(cmp.Or(q.Get("sysparm_limit"), "10000"))
	from, _ := strconv.Atoi(q.Get("sysparm_offset"))
	if err != nil {
		size = 10000
	}
	if len(found) == 0 && s.o.NoneIs404 {
		return *nowMissing()
	}
	all := []Object{}
	for _, o := range slice(found, from, size) {
		all = append(all, nowShown(r, o))
	}
	return Answer{Status: 200, Body: map[string]any{"result": all}}.With("X-Total-Count", strconv.Itoa(len(found)))
}
