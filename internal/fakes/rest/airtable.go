package rest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AirtableRecords is the collection of [Airtable]: {"id", "createdTime", "fields": {…}}.
const AirtableRecords = "records"

// AirtableOptions are the choices of an [Airtable]. The zero value works.
type AirtableOptions struct {
	// Token is the personal access token. Default "patReadback".
	Token string
	// Base and Table are the path. Default "appReadback", "Orders".
	Base, Table string
	// Fields of the table. Default "Key", "Name", "Amount", "Done".
	Fields []string
	// Race is how long a new record is not seen by upserts, as by those at the same time. Default 0.
	Race time.Duration
	// PerSecond is how many requests may come in a second; more, and all are refused for 30 seconds.
	// Airtable has 5. Default 0: any number.
	PerSecond int
}

// Airtable is the fake of Airtable's web API for the records of one table.
//
// Nothing is unique. An upsert creates where nothing matches, updates what matches, and fails where several
// do. Empty fields are omitted. Error is an object, or a bare string for what is not found. Lists lag. This
// fake writes one record in a request.
type Airtable struct {
	*Fake
	o       AirtableOptions
	came    []time.Time
	blocked time.Time
}

// NewAirtable makes one.
func NewAirtable(o AirtableOptions) *Airtable {
	o.Token, o.Base, o.Table = cmp.Or(o.Token, "patReadback"), cmp.Or(o.Base, "appReadback"), cmp.Or(o.Table, "Orders")
	if o.Fields == nil {
		o.Fields = []string{"Key", "Name", "Amount", "Done"}
	}
	a := &Airtable{o: o}
	m := usual(bearer(o.Token), 422, func(status int) Answer {
		switch status {
		case 401:
			return *airtableError(401, "AUTHENTICATION_REQUIRED", "Authentication required")
		case 404:
			return Answer{Status: 404, Body: map[string]any{"error": "NOT_FOUND"}}
		case 403:
			return *airtableError(403, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND", "Invalid permissions, or the requested model was not found.")
		}
		return *airtableError(status, "INVALID_REQUEST_UNKNOWN", "Invalid request: parameter validation failed. Check your request data.")
	})
	m.Throttled = func(how string, _ time.Duration) (Answer, bool) { return *airtableBusy(), how == "" }
	a.Fake = New(m)
	path := "/v0/" + o.Base + "/" + o.Table
	a.HandleRead("GET "+path, false, a.list)
	a.HandleRead("GET "+path+"/{id}", true, func(r *Request, seen View) Answer {
		if busy := a.busy(); busy != nil {
			return *busy
		}
		if o := seen.Get(AirtableRecords, r.PathValue("id")); o != nil {
			return Answer{Status: 200, Body: o.Shown()}
		}
		return Answer{Status: 404, Body: map[string]any{"error": "NOT_FOUND"}}
	})
	for _, pattern := range []string{"POST " + path, "PATCH " + path, "PUT " + path, "PATCH " + path + "/{id}", "PUT " + path + "/{id}", "DELETE " + path + "/{id}"} {
		a.HandleWrite(pattern, a.save)
	}
	return a
}

func airtableError(status int, kind, message string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"error": map[string]any{"type": kind, "message": message}}}
}

func airtableBusy() *Answer {
	return &Answer{Status: 429, Body: map[string]any{"errors": []any{map[string]any{"error": "RATE_LIMIT_REACHED", "message": "Rate limit exceeded. Please try again later"}}}}
}

// busy answers a request that comes too soon. The lock must be held.
func (a *Airtable) busy() *Answer {
	now := time.Now()
	a.came = slices.DeleteFunc(append(a.came, now), func(at time.Time) bool { return now.Sub(at) >= time.Second })
	if a.o.PerSecond > 0 && len(a.came) > a.o.PerSecond {
		a.blocked = now.Add(30 * time.Second)
	}
	if now.Before(a.blocked) {
		return airtableBusy()
	}
	return nil
}

// Seed stores a record of another actor.
func (a *Airtable) Seed(fields Object) Object {
	_, o := a.Put(AirtableRecords, func(now View) (string, Object) {
		o := airtableRecord(now)
		o["fields"] = map[string]any(fields)
		return o.Text("id"), o
	})
	return o
}

func airtableRecord(now View) Object {
	return Object{"id": fmt.Sprintf("rec%014d", now.Next()), "createdTime": now.At().UTC().Format("2006-01-02T15:04:05.000Z"), "fields": map[string]any{}}
}

func (a *Airtable) save(r *Request, now View) (Plan, *Answer) {
	if busy := a.busy(); busy != nil {
		return Plan{}, busy
	}
	id, given, whole := r.PathValue("id"), r.Body, "record"
	if records := listAt(r.Body, "records"); records != nil && id == "" {
		if given, whole = objectAt(records, 0), "records"; len(records) != 1 {
			return Plan{}, airtableError(422, "INVALID_RECORDS", "this fake writes one record in a request")
		}
	}
	fields, merge := objectAt(given, "fields"), strs(listAt(r.Body, "performUpsert", "fieldsToMergeOn"))
	for _, name := range append(slices.Sorted(maps.Keys(fields)), merge...) {
		if !slices.Contains(a.o.Fields, name) {
			return Plan{}, airtableError(422, "UNKNOWN_FIELD_NAME", `Unknown field name: "`+name+`"`)
		}
	}
	if id == "" && r.Method != http.MethodPost {
		id = textAt(given, "id")
	}
	switch {
	case id == "" && len(merge) > 0:
		past := View{now.store, now.At().Add(-a.o.Race)}
		matches := visible(now.List(AirtableRecords), func(o Object) bool {
			old := past.Get(AirtableRecords, o.Text("id")) != nil
			return old && !slices.ContainsFunc(merge, func(name string) bool { return !same(at(o, "fields", name), fields[name]) })
		})
		if len(matches) > 1 {
			return Plan{}, airtableError(422, "INVALID_REQUEST_UNKNOWN", "Cannot upsert: more than one record matches the fields to merge on")
		}
		if len(matches) == 1 {
			id = matches[0].Text("id")
		}
	case id == "" && r.Method != http.MethodPost:
		return Plan{}, airtableError(422, "INVALID_RECORDS", "You must provide an id for each record, or performUpsert")
	}
	before := now.Get(AirtableRecords, id)
	switch {
	case id != "" && before == nil:
		return Plan{}, airtableError(404, "MODEL_ID_NOT_FOUND", "Record not found")
	case r.Method == http.MethodDelete:
		return removing(AirtableRecords, id, Answer{Status: 200, Body: map[string]any{"id": id, "deleted": true}}), nil
	}
	o := before.Clone()
	if o == nil {
		o = airtableRecord(now)
	}
	old := objectAt(o, "fields")
	if r.Method == http.MethodPut {
		old = map[string]any{}
	}
	last := "Key"
	for _, name := range a.o.Fields {
		v, ok := fields[name]
		switch {
		case ok && (v == nil || v == "" || v == false): // empty fields are not kept
			delete(old, name)
		case ok:
			old[name] = v
			if !slices.Contains(merge, name) {
				last = name
			}
		}
	}
	o["fields"] = old
	p := storing(AirtableRecords, o.Text("id"), before, o, "fields."+last, func(stored Object) Answer {
		if whole == "record" {
			return shows(200)(stored)
		}
		body := map[string]any{"records": []any{stored.Shown()}}
		if len(merge) > 0 {
			made, kept := []any{}, []any{o["id"]}
			if before == nil {
				made, kept = kept, made
			}
			body["createdRecords"], body["updatedRecords"] = made, kept
		}
		return Answer{Status: 200, Body: body}
	})
	drop := p.Drop
	p.Drop = func(stored Object) {
		drop(stored)
		maps.DeleteFunc(objectAt(stored, "fields"), func(_ string, v any) bool { return v == nil })
	}
	return p.again(func(now View) (string, Object) {
		fresh := airtableRecord(now)
		return fresh.Text("id"), only(fresh, []string{"id", "createdTime"})
	}), nil
}

var airtableClause = regexp.MustCompile(`^\s*\{([^}]+)\}\s*=\s*(` + queryValue + `)\s*$`)

// list takes formulas of equalities: {Name}='x', or several in OR() or AND().
func (a *Airtable) list(r *Request, seen View) Answer {
	if busy := a.busy(); busy != nil {
		return *busy
	}
	q := r.URL.Query()
	formula, all := strings.TrimSpace(q.Get("filterByFormula")), false
	parts := []string{}
	if inner, ok := strings.CutPrefix(formula, "AND("); ok {
		all, formula = true, "OR("+inner
	}
	if inner, ok := strings.CutPrefix(formula, "OR("); ok {
		parts = regexp.MustCompile(`\{[^}]+\}\s*=\s*(?:`+queryValue+`)`).FindAllString(inner, -1)
	} else if formula != "" {
		parts = []string{formula}
	}
	var clauses []clause
	for _, part := range parts {
		m := airtableClause.FindStringSubmatch(part)
		if m == nil || !slices.Contains(a.o.Fields, m[1]) {
			return *airtableError(422, "INVALID_FILTER_BY_FORMULA", "The formula for filtering records is invalid: Unknown field names or an error in the formula")
		}
		found, _ := conditions("x = " + m[2])
		clauses = append(clauses, clause{field: m[1], op: "=", values: found[0].values})
	}
	records := visible(seen.List(AirtableRecords), func(o Object) bool {
		hits := 0
		for _, c := range clauses {
			if c.holds(at(o, "fields", c.field)) {
				hits++
			}
		}
		return len(clauses) == 0 || hits == len(clauses) || !all && hits > 0
	})
	size := limit(q.Get("pageSize"), 100, 100)
	from, err := strconv.Atoi(cmp.Or(strings.TrimPrefix(q.Get("offset"), "itr/"), "0"))
	if size == 0 || err != nil {
		return *airtableError(422, "INVALID_REQUEST_UNKNOWN", "Invalid request: parameter validation failed. Check your request data.")
	}
	body := map[string]any{"records": slice(records, from, size)}
	if from+size < len(records) {
		body["offset"] = "itr/" + strconv.Itoa(from+size)
	}
	return Answer{Status: 200, Body: body}
}
