package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Salesforce is the part of the Salesforce REST API that keeps records of one
// object: rows by id and by external id, describe, SOQL and composite reads.
//
// An external id is not unique for that alone: only a field that is marked as
// unique as well keeps two records from having one value, and then letter case
// does not count unless the field is case-sensitive too.
type Salesforce struct {
	*Fake
	object  string
	fields  map[string]SalesforceField
	page    int
	hidden  bool
	trigger func(o Object)
	cursors map[string][]string
}

// SalesforceField is one field of the object.
type SalesforceField struct {
	Type          string // "string", "double", "datetime", …. Default "string"
	ExternalID    bool
	Unique        bool
	CaseSensitive bool
	ReadOnly      bool
}

const (
	salesforcePath    = "/services/data/{version}"
	salesforcePage    = 2000 // records of one page, and of a composite read
	salesforceAll     = 200  // records that FIELDS(ALL) may give
	salesforceToken   = "00D-session"
	salesforceInstant = "2006-01-02T15:04:05.000-0700"
)

// NewSalesforce makes an org with one object. custom adds to the fields that
// every object has here (Name, Description, Phone, and what the org keeps
// itself). A client gets a session from the token endpoint with the id and
// secret.
func NewSalesforce(clientID, secret, object string, custom map[string]SalesforceField) *Salesforce {
	s := &Salesforce{object: object, page: salesforcePage, cursors: map[string][]string{}, fields: map[string]SalesforceField{
		"Id": {ReadOnly: true}, "OwnerId": {}, "Name": {}, "Description": {}, "Phone": {}, "Rating": {},
		"IsDeleted": {Type: "boolean", ReadOnly: true}, "CreatedDate": {Type: "datetime", ReadOnly: true},
		"LastModifiedDate": {Type: "datetime", ReadOnly: true}, "SystemModstamp": {Type: "datetime", ReadOnly: true},
	}}
	for name, f := range custom {
		s.fields[name] = f
	}
	s.Fake = New(Manners{
		Authorized: func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+salesforceToken },
		Unauthorized: func() Answer {
			return salesforceError(http.StatusUnauthorized, "INVALID_SESSION_ID", "Session expired or invalid")
		},
		NotFound: func(*http.Request) Answer { return *rowMissing() },
		Malformed: func() Answer {
			return salesforceError(http.StatusBadRequest, "JSON_PARSER_ERROR", "Unexpected character")
		},
		Refused:   salesforceRefused,
		Throttled: salesforceThrottled,
	})
	rows := salesforcePath + "/sobjects/{object}"
	s.HandleOther("POST /services/oauth2/token", func(w http.ResponseWriter, r *http.Request) { s.session(clientID, secret, r).writeTo(w) })
	s.HandleWrite("POST "+rows, s.create)
	s.HandleWrite("PATCH "+rows+"/{id}", s.update)
	s.HandleWrite("PATCH "+rows+"/{field}/{value}", s.upsert)
	s.HandleWrite("DELETE "+rows+"/{id}", s.remove)
	s.HandleRead("GET "+rows+"/{id}", true, s.get)
	s.HandleRead("GET "+rows+"/{field}/{value}", true, s.getByExternalID)
	s.HandleRead("GET "+rows+"/describe", true, s.describe)
	s.HandleRead("GET "+salesforcePath+"/query", true, s.query)
	s.HandleRead("GET "+salesforcePath+"/query/{cursor}", true, s.queryMore)
	s.HandleRead("POST "+salesforcePath+"/composite/sobjects/{object}", true, s.collection)
	return s
}

// SetPage sets how many records an answer to a query has. Default 2000.
func (s *Salesforce) SetPage(records int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = records
}

// Hide removes the client's permission to see the object, or restores it.
func (s *Salesforce) Hide(hidden bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden = hidden
}

// Trigger is run on every record that a request leaves, within the same
// transaction, as triggers and flows are. Default none.
func (s *Salesforce) Trigger(change func(o Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trigger = change
}

func (s *Salesforce) session(clientID, secret string, r *http.Request) Answer {
	id, given, basic := r.BasicAuth()
	if !basic {
		id, given = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if r.PostFormValue("grant_type") != "client_credentials" || id != clientID || given != secret {
		return Answer{Status: http.StatusBadRequest, Body: map[string]any{"error": "invalid_client", "error_description": "invalid client credentials"}}
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{
		"access_token": salesforceToken, "instance_url": "https://" + r.Host, "token_type": "Bearer",
		"id": "https://login.salesforce.com/id/00D/005", "issued_at": strconv.FormatInt(time.Now().UnixMilli(), 10), "signature": "c2ln",
	}}
}

func salesforceError(status int, code, message string, fields ...string) Answer {
	problem := map[string]any{"errorCode": code, "message": message}
	if len(fields) > 0 {
		problem["fields"] = fields
	}
	return Answer{Status: status, Body: []any{problem}}
}

func rowMissing() *Answer {
	a := salesforceError(http.StatusNotFound, "NOT_FOUND", "The requested resource does not exist")
	return &a
}

func salesforceRefused(how string) (Answer, bool) {
	a, ok := map[string]Answer{
		"":                    salesforceError(http.StatusBadRequest, "FIELD_CUSTOM_VALIDATION_EXCEPTION", "The record does not pass a validation rule."),
		"DUPLICATES_DETECTED": salesforceError(http.StatusBadRequest, "DUPLICATES_DETECTED", "Use one of these records?"),
		"INVALID_SESSION_ID":  salesforceError(http.StatusUnauthorized, "INVALID_SESSION_ID", "Session expired or invalid"),
		"403":                 salesforceError(http.StatusForbidden, "INSUFFICIENT_ACCESS_OR_READONLY", "insufficient access rights on object id"),
	}[how]
	return a, ok
}

// salesforceThrottled does not say how long to wait; neither does the vendor.
func salesforceThrottled(how string, _ time.Duration) (Answer, bool) {
	switch how {
	case "", "REQUEST_LIMIT_EXCEEDED":
		return salesforceError(http.StatusForbidden, "REQUEST_LIMIT_EXCEEDED", "TotalRequests Limit exceeded."), true
	case "UNABLE_TO_LOCK_ROW":
		return salesforceError(http.StatusBadRequest, "UNABLE_TO_LOCK_ROW", "unable to obtain exclusive access to this record"), true
	}
	return Answer{}, false
}

// elsewhere answers a request for an object that the org does not have or the client may not see.
func (s *Salesforce) elsewhere(r *Request) *Answer {
	if r.PathValue("object") != s.object || s.hidden {
		return rowMissing()
	}
	return nil
}

// recordID makes an id of 18 characters: three of the object, twelve of the record, and three
// that encode which of the others are capitals.
func recordID(n int64) string {
	id := fmt.Sprintf("001Ws%010d", n)
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
	suffix := ""
	for i := 0; i < 15; i += 5 {
		bits := 0
		for j := range 5 {
			if c := id[i+j]; c >= 'A' && c <= 'Z' {
				bits |= 1 << j
			}
		}
		suffix += string(digits[bits])
	}
	return id + suffix
}

// values reads what a write sets, in the form in which it is kept: text
// without blanks at its ends, nothing for empty text, times in UTC.
func (s *Salesforce) values(body map[string]any, forbidden ...string) (map[string]any, *Answer) {
	values := map[string]any{}
	for name, v := range body {
		f, known := s.fields[name]
		switch {
		case name == "attributes":
			continue
		case slices.Contains(forbidden, name):
			a := salesforceError(http.StatusBadRequest, "INVALID_FIELD", "The "+name+" field should not be specified in the sobject data.")
			return nil, &a
		case !known:
			a := salesforceError(http.StatusBadRequest, "INVALID_FIELD", fmt.Sprintf("No such column '%s' on sobject of type %s", name, s.object))
			return nil, &a
		case f.ReadOnly:
			a := salesforceError(http.StatusBadRequest, "INVALID_FIELD_FOR_INSERT_UPDATE", "Unable to create/update fields: "+name, name)
			return nil, &a
		}
		kept, ok := f.keep(v)
		if !ok {
			a := salesforceError(http.StatusBadRequest, "JSON_PARSER_ERROR", "Cannot deserialize instance of "+f.Type+" from the value of "+name)
			return nil, &a
		}
		values[name] = kept
	}
	return values, nil
}

func (f SalesforceField) keep(v any) (any, bool) {
	text, isText := v.(string)
	switch {
	case v == nil:
		return nil, true
	case f.Type == "datetime":
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t, err = time.Parse(salesforceInstant, text)
		}
		return t.UTC().Format(salesforceInstant), err == nil
	case f.Type == "double":
		return v, !isText
	case f.Type == "boolean":
		_, ok := v.(bool)
		return v, ok
	case !isText:
		return nil, false
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil, true
	}
	return text, true
}

// same reports whether a field's stored value is the value, as the field
// compares.
func (f SalesforceField) same(stored any, value string) bool {
	s, ok := stored.(string)
	if !ok {
		return false
	}
	if f.CaseSensitive {
		return s == value
	}
	return strings.EqualFold(s, value)
}

func (s *Salesforce) matching(v View, field, value string) []Object {
	var found []Object
	for _, o := range v.List(s.object) {
		if s.fields[field].same(o[field], value) {
			found = append(found, o)
		}
	}
	return found
}

// taken answers a write whose unique values another record has.
func (s *Salesforce) taken(v View, id string, values map[string]any) *Answer {
	for name, value := range values {
		text, ok := value.(string)
		if !ok || !s.fields[name].Unique {
			continue
		}
		for _, o := range s.matching(v, name, text) {
			if o.Text("Id") != id {
				a := salesforceError(http.StatusBadRequest, "DUPLICATE_VALUE", fmt.Sprintf("duplicate value found: %s duplicates value on record with id: %s", name, o.Text("Id")[:15]))
				return &a
			}
		}
	}
	return nil
}

// put makes the record that a write leaves, triggers included.
func (s *Salesforce) put(before Object, values map[string]any, now View) Object {
	after := before.Clone()
	stamp := now.At().UTC().Format(salesforceInstant)
	if after == nil {
		after = Object{"Id": recordID(now.Next()), "CreatedDate": stamp, "IsDeleted": false, "OwnerId": recordID(0)}
	}
	for name, v := range values {
		after[name] = v
	}
	after["LastModifiedDate"], after["SystemModstamp"] = stamp, stamp
	if s.trigger != nil {
		s.trigger(after)
	}
	return after
}

// plan is what a write of some values does; the last text among them that is
// no key is the one that suffers when a field does.
func (s *Salesforce) plan(before, after Object, values map[string]any, answer func(Object) Answer) Plan {
	p := Plan{Collection: s.object, ID: after.Text("Id"), After: after, Create: before == nil, Answer: answer}
	victim := ""
	for name, v := range values {
		_, text := v.(string)
		if f := s.fields[name]; text && !f.ExternalID && f.Type == "" && name > victim {
			victim = name
		}
	}
	if victim == "" {
		return p
	}
	p.Drop = func(stored Object) {
		delete(stored, victim)
		if v, had := before[victim]; had {
			stored[victim] = v
		}
	}
	p.Normalise = func(stored Object) { stored[victim] = strings.ToUpper(stored.Text(victim)) }
	keys := slices.ContainsFunc(slicesOfFields(s.fields), func(f SalesforceField) bool { return f.Unique })
	if !keys {
		p.Duplicate = func(stored Object, now View) (string, Object) {
			stored["Id"] = recordID(now.Next())
			return stored.Text("Id"), stored
		}
	}
	return p
}

func slicesOfFields(fields map[string]SalesforceField) []SalesforceField {
	var all []SalesforceField
	for _, f := range fields {
		all = append(all, f)
	}
	return all
}

func (s *Salesforce) create(r *Request, now View) (Plan, *Answer) {
	if wrong := s.elsewhere(r); wrong != nil {
		return Plan{}, wrong
	}
	values, wrong := s.values(r.Body, "Id")
	if wrong == nil {
		wrong = s.taken(now, "", values)
	}
	if wrong != nil {
		return Plan{}, wrong
	}
	return s.plan(nil, s.put(nil, values, now), values, created), nil
}

func created(o Object) Answer {
	return Answer{Status: http.StatusCreated, Body: map[string]any{"id": o.Text("Id"), "success": true, "errors": []any{}}}
}

func (s *Salesforce) update(r *Request, now View) (Plan, *Answer) {
	if wrong := s.elsewhere(r); wrong != nil {
		return Plan{}, wrong
	}
	before := now.Get(s.object, r.PathValue("id"))
	if before == nil {
		a := salesforceError(http.StatusNotFound, "ENTITY_IS_DELETED", "entity is deleted")
		return Plan{}, &a
	}
	if wrong := modified(r, before); wrong != nil {
		return Plan{}, wrong
	}
	values, wrong := s.values(r.Body, "Id")
	if wrong == nil {
		wrong = s.taken(now, before.Text("Id"), values)
	}
	if wrong != nil {
		return Plan{}, wrong
	}
	return s.plan(before, s.put(before, values, now), values, func(Object) Answer {
		return Answer{Status: http.StatusNoContent}
	}), nil
}

// modified answers a condition that does not hold. It compares whole seconds: a change within the
// second of the condition is not detected.
func modified(r *Request, o Object) *Answer {
	header := r.Header.Get("If-Unmodified-Since")
	if header == "" {
		return nil
	}
	since, err := http.ParseTime(header)
	if err != nil {
		a := salesforceError(http.StatusBadRequest, "INVALID_HEADER", "Invalid date")
		return &a
	}
	last, err := time.Parse(salesforceInstant, o.Text("LastModifiedDate"))
	if err == nil && last.Truncate(time.Second).After(since) {
		return &Answer{Status: http.StatusPreconditionFailed}
	}
	return nil
}

func (s *Salesforce) remove(r *Request, now View) (Plan, *Answer) {
	if wrong := s.elsewhere(r); wrong != nil {
		return Plan{}, wrong
	}
	id := r.PathValue("id")
	if now.Get(s.object, id) == nil {
		a := salesforceError(http.StatusNotFound, "ENTITY_IS_DELETED", "entity is deleted")
		return Plan{}, &a
	}
	return Plan{Collection: s.object, ID: id, Answer: func(Object) Answer { return Answer{Status: http.StatusNoContent} }}, nil
}

// byExternalID returns the one record at an address, or an answer that says why there is none.
func (s *Salesforce) byExternalID(r *Request, v View) ([]Object, *Answer) {
	field, value := r.PathValue("field"), r.PathValue("value")
	switch {
	case s.elsewhere(r) != nil:
		return nil, rowMissing()
	case !s.fields[field].ExternalID:
		a := salesforceError(http.StatusNotFound, "NOT_FOUND", "Provided external ID field does not exist or is not accessible: "+field)
		return nil, &a
	case strings.Contains(value, "."):
		return nil, rowMissing() // taken for the name of a file
	}
	found := s.matching(v, field, value)
	if len(found) > 1 {
		var uris []any
		for _, o := range found {
			uris = append(uris, s.uri(o))
		}
		return nil, &Answer{Status: http.StatusMultipleChoices, Body: uris}
	}
	return found, nil
}

func (s *Salesforce) uri(o Object) string {
	return "/services/data/v62.0/sobjects/" + s.object + "/" + o.Text("Id")
}

func (s *Salesforce) upsert(r *Request, now View) (Plan, *Answer) {
	field := r.PathValue("field")
	found, wrong := s.byExternalID(r, now)
	if wrong != nil {
		return Plan{}, wrong
	}
	values, wrong := s.values(r.Body, "Id", field)
	if wrong != nil {
		return Plan{}, wrong
	}
	var before Object
	if len(found) == 1 {
		before = found[0]
	} else {
		values[field] = r.PathValue("value")
	}
	if wrong := s.taken(now, before.Text("Id"), values); wrong != nil {
		return Plan{}, wrong
	}
	return s.plan(before, s.put(before, values, now), values, func(o Object) Answer {
		a := created(o)
		a.Body.(map[string]any)["created"] = before == nil
		if before != nil {
			a.Status = http.StatusOK
		}
		return a
	}), nil
}
