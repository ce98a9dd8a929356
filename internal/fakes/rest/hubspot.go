package rest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HubSpot is the part of HubSpot's CRM that keeps contacts and other objects of the API v3, read and
// written one by one or in batches, and their properties.
//
// E-mail addresses of contacts are unique, and so are the values of properties that were made so for a
// type of objects; both are compared without regard to letter case. Of a batch that writes, one input is
// taken.
type HubSpot struct {
	*Fake
}

// hubSpotType is one type of objects; its collection has its name.
type hubSpotType struct {
	name, id   string // such as contacts, 0-1
	shown      []string
	needed     []string // of a create
	properties map[string]hubSpotProperty
}

type hubSpotProperty struct{ unique bool }

// Collections and names of HubSpot.
const (
	hubSpotContacts = "contacts"
	hubSpotBatch    = 100 // inputs of one batch
)

// stages are in the order in which a contact can only move forwards.
var hubSpotStages = []string{"subscriber", "lead", "marketingqualifiedlead", "salesqualifiedlead", "opportunity", "customer", "evangelist", "other"}

// NewHubSpot makes a portal whose private app has the token. custom lists properties that were
// added to contacts; those in unique have unique values.
func NewHubSpot(token string, custom, unique []string) *HubSpot {
	h := &HubSpot{}
	h.Fake = New(Manners{
		Authorized: func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token },
		Unauthorized: func() Answer {
			return hubSpotError(http.StatusUnauthorized, "INVALID_AUTHENTICATION", "Authentication credentials not found. This API supports OAuth 2.0 authentication.")
		},
		NotFound:  func(*http.Request) Answer { return hubSpotError(http.StatusNotFound, "", "resource not found") },
		Malformed: func() Answer { return hubSpotInvalid("Invalid input JSON on line 1, column 1") },
		Refused:   hubSpotRefused,
		Throttled: hubSpotThrottled,
	})
	h.Type(hubSpotContacts, custom, unique)
	return h
}

// hubSpotTypes are the types that every portal has, with their properties: the first of them are shown
// where a read names none.
var hubSpotTypes = map[string]hubSpotType{
	hubSpotContacts: {id: "0-1", shown: strings.Fields("email firstname lastname phone company jobtitle website city lifecyclestage hs_lead_status annualrevenue hs_additional_emails")},
	"companies":     {id: "0-2", shown: strings.Fields("name domain city industry phone website lifecyclestage description")},
	"deals":         {id: "0-3", shown: strings.Fields("dealname amount closedate pipeline dealstage dealtype description")},
	"notes":         {id: "0-46", shown: strings.Fields("hs_timestamp hs_note_body hubspot_owner_id"), needed: []string{"hs_timestamp"}},
}

// Type adds a type of objects: companies, deals, notes, or another. custom lists properties that were added
// to it; those in unique have unique values.
func (h *HubSpot) Type(name string, custom, unique []string) *HubSpot {
	t := hubSpotTypes[name]
	t.name, t.properties = name, map[string]hubSpotProperty{}
	if t.id == "" {
		t.id = "2-1"
	}
	for _, property := range slices.Concat(custom, t.shown, []string{"hs_object_id", "createdate", "lastmodifieddate"}) {
		t.properties[property] = hubSpotProperty{}
	}
	for _, property := range unique {
		t.properties[property] = hubSpotProperty{unique: true}
	}
	if name == hubSpotContacts {
		t.properties["email"] = hubSpotProperty{unique: true}
	}
	t.shown = t.shown[:min(3, len(t.shown))]
	path := "/crm/v3/objects/" + name
	h.HandleWrite("POST "+path, t.create)
	h.HandleWrite("PATCH "+path+"/{id}", t.update)
	h.HandleWrite("DELETE "+path+"/{id}", t.archive)
	h.HandleWrite("POST "+path+"/batch/upsert", t.upsert)
	h.HandleRead("GET "+path+"/{id}", true, t.get)
	h.HandleRead("POST "+path+"/batch/read", true, t.batchRead)
	h.HandleRead("POST "+path+"/search", false, t.search)
	h.HandleRead("GET /crm/v3/properties/"+name+"/{name}", true, t.property)
	return h
}

func hubSpotError(status int, category, message string) Answer {
	body := map[string]any{"status": "error", "message": message, "correlationId": "aeb5f871-7f07-4993-9211-075dc63e7cbf"}
	if category != "" {
		body["category"] = category
	}
	return Answer{Status: status, Body: body}
}

func hubSpotInvalid(message string) Answer {
	return hubSpotError(http.StatusBadRequest, "VALIDATION_ERROR", message)
}

func hubSpotRefused(how string) (Answer, bool) {
	a, ok := map[string]Answer{
		"":    hubSpotInvalid(`Property values were not valid: [{"isValid":false,"error":"INVALID_OPTION","name":"lifecyclestage"}]`),
		"401": hubSpotError(http.StatusUnauthorized, "EXPIRED_AUTHENTICATION", "The OAuth token used to make this call expired 7 second(s) ago."),
		"403": hubSpotError(http.StatusForbidden, "MISSING_SCOPES", "This app hasn't been granted all required scopes to make this call."),
		"423": hubSpotError(http.StatusLocked, "", "The resource is locked while a large job runs."),
	}[how]
	return a, ok
}

// hubSpotThrottled: the usual form says how long to wait, the others do not.
func hubSpotThrottled(how string, wait time.Duration) (Answer, bool) {
	policy := how
	if how == "" {
		policy = "TEN_SECONDLY_ROLLING"
	}
	a := Answer{Status: http.StatusTooManyRequests, Body: map[string]any{
		"status": "error", "message": "You have reached your " + policy + " limit.", "errorType": "RATE_LIMIT",
		"correlationId": "c033cdaa-2c40-4a64-ae48-b4cec88dad24", "policyName": policy,
	}}
	a = a.With("X-HubSpot-RateLimit-Remaining", "0").With("X-HubSpot-RateLimit-Interval-Milliseconds", "10000")
	switch how {
	case "":
		return a.With("Retry-After", strconv.Itoa(int(wait.Seconds()))), true
	case "TEN_SECONDLY_ROLLING", "DAILY":
		return a, true
	}
	return Answer{}, false
}

// find returns the objects whose property has a value, ignoring letter case.
func (h *hubSpotType) find(v View, property, value string) []Object {
	var found []Object
	for _, o := range v.List(h.name) {
		stored, _ := o["properties"].(map[string]any)
		s, _ := stored[property].(string)
		additional, _ := stored["hs_additional_emails"].(string)
		other := property == "email" && slices.Contains(strings.Split(strings.ToLower(additional), ";"), strings.ToLower(strings.TrimSpace(value)))
		if (s != "" && strings.EqualFold(s, strings.TrimSpace(value))) || (other && value != "") {
			found = append(found, o)
		}
	}
	return found
}

// one finds the contact at an address: an id, or the value of a unique
// property.
func (h *hubSpotType) one(v View, idProperty, id string) (Object, *Answer) {
	if idProperty == "" || idProperty == "hs_object_id" {
		if o := v.Get(h.name, id); o != nil {
			return o, nil
		}
		a := hubSpotError(http.StatusNotFound, "OBJECT_NOT_FOUND", "Object not found.  objectId are usually numeric.")
		return nil, &a
	}
	if !h.properties[idProperty].unique {
		a := hubSpotInvalid("Unable to perform the request by non-unique " + h.id + " property " + idProperty)
		return nil, &a
	}
	if found := h.find(v, idProperty, id); len(found) > 0 {
		return found[0], nil
	}
	a := hubSpotError(http.StatusNotFound, "OBJECT_NOT_FOUND", "Object not found.  objectId are usually numeric.")
	return nil, &a
}

// values reads and normalises the properties of a write.
func (h *hubSpotType) values(v any) (map[string]any, *Answer) {
	given, ok := v.(map[string]any)
	if !ok {
		a := hubSpotInvalid("Invalid input JSON: some required fields were not set: [properties]")
		return nil, &a
	}
	values := map[string]any{}
	for name, v := range given {
		if _, known := h.properties[name]; !known {
			a := hubSpotInvalid(fmt.Sprintf(`Property values were not valid: [{"isValid":false,"message":"Property \"%s\" does not exist","error":"PROPERTY_DOESNT_EXIST","name":"%s"}]`, name, name))
			return nil, &a
		}
		switch v := v.(type) {
		case map[string]any, []any:
			a := hubSpotInvalid("Invalid input JSON: Cannot deserialize value of type `java.lang.String`")
			return nil, &a
		case nil:
			values[name] = nil
		default:
			values[name] = fmt.Sprint(v) // numbers and booleans are strings here
		}
		if values[name] == "" {
			values[name] = nil
		}
	}
	if s, ok := values["email"].(string); ok {
		values["email"] = strings.ToLower(strings.TrimSpace(s))
		if !strings.Contains(s, "@") {
			a := hubSpotInvalid(`Property values were not valid: [{"isValid":false,"error":"INVALID_EMAIL","name":"email"}]`)
			return nil, &a
		}
	}
	return values, nil
}

// taken answers a write whose unique values belong to another contact.
func (h *hubSpotType) taken(v View, id string, values map[string]any) *Answer {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value, ok := values[name].(string)
		if !ok || !h.properties[name].unique {
			continue
		}
		for _, o := range h.find(v, name, value) {
			if o.Text("id") == id {
				continue
			}
			a := hubSpotInvalid(fmt.Sprintf("Cannot set PropertyValueCoordinates{objectTypeId=%s, propertyName=%s, value=%s} on %s. %s already has that value.", h.id, name, value, id, o.Text("id")))
			if name == "email" {
				a = hubSpotError(http.StatusConflict, "CONFLICT", "Contact already exists. Existing ID: "+o.Text("id"))
			}
			return &a
		}
	}
	return nil
}

// put makes the contact that a write leaves.
func (h *hubSpotType) put(before Object, id string, values map[string]any, now time.Time) Object {
	stamp := now.UTC().Format("2006-01-02T15:04:05.000Z")
	after := before.Clone()
	if after == nil {
		after = Object{"id": id, "createdAt": stamp, "archived": false, "properties": map[string]any{"hs_object_id": id, "createdate": stamp}}
	}
	properties, _ := after["properties"].(map[string]any)
	for name, v := range values {
		if name == "lifecyclestage" && backwards(properties[name], v) {
			continue // reported as done, and not done
		}
		properties[name] = v
	}
	properties["lastmodifieddate"], after["updatedAt"] = stamp, stamp
	return after
}

func backwards(old, now any) bool {
	was, _ := old.(string)
	is, _ := now.(string)
	return was != "" && is != "" && slices.Index(hubSpotStages, is) < slices.Index(hubSpotStages, was)
}

// plan is what a write of some values does, with the ways in which it can go
// wrong: the last of the values that are no key is the one that suffers.
func (h *hubSpotType) plan(before, after Object, values map[string]any, answer func(Object) Answer) Plan {
	victim := ""
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !h.properties[name].unique {
			victim = name
		}
	}
	p := Plan{Collection: h.name, ID: after.Text("id"), After: after, Create: before == nil, Answer: answer}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(name string) bool { return h.properties[name].unique }) {
		p = p.again(func(now View) (string, Object) {
			id := strconv.FormatInt(100+now.Next(), 10)
			return id, Object{"id": id}
		})
	}
	if victim == "" {
		return p
	}
	p.Drop = func(stored Object) {
		old, _ := before["properties"].(map[string]any)
		if v, had := old[victim]; had {
			stored["properties"].(map[string]any)[victim] = v
			return
		}
		delete(stored["properties"].(map[string]any), victim)
	}
	p.Normalise = func(stored Object) {
		properties := stored["properties"].(map[string]any)
		properties[victim] = strings.ToUpper(fmt.Sprint(properties[victim]))
	}
	return p
}

func (h *hubSpotType) create(r *Request, now View) (Plan, *Answer) {
	for name := range r.Body {
		if name != "properties" && name != "associations" && name != "objectWriteTraceId" {
			a := hubSpotInvalid("Invalid input JSON on line 1: Unrecognized field \"" + name + "\"")
			return Plan{}, &a
		}
	}
	values, wrong := h.values(r.Body["properties"])
	if wrong == nil {
		wrong = h.taken(now, "", values)
	}
	if wrong != nil {
		return Plan{}, wrong
	}
	for _, name := range h.needed {
		if values[name] == nil {
			a := hubSpotInvalid("Error creating " + strings.ToUpper(h.name) + ". Some required properties were not set. [" + name + "]")
			return Plan{}, &a
		}
	}
	id := strconv.FormatInt(100+now.Next(), 10)
	after := h.put(nil, id, values, now.At())
	after[".associations"] = r.Body["associations"]
	return h.plan(nil, after, values, func(o Object) Answer {
		return Answer{Status: http.StatusCreated, Body: o.Shown()}
	}), nil
}

func (h *hubSpotType) update(r *Request, now View) (Plan, *Answer) {
	before, wrong := h.one(now, r.URL.Query().Get("idProperty"), r.PathValue("id"))
	if wrong != nil {
		return Plan{}, wrong
	}
	values, wrong := h.values(r.Body["properties"])
	if wrong == nil {
		wrong = h.taken(now, before.Text("id"), values)
	}
	if wrong != nil {
		return Plan{}, wrong
	}
	return h.plan(before, h.put(before, "", values, now.At()), values, func(o Object) Answer {
		return Answer{Status: http.StatusOK, Body: o.Shown()}
	}), nil
}

// archive also accepts what is archived already.
func (h *hubSpotType) archive(r *Request, _ View) (Plan, *Answer) {
	return Plan{Collection: h.name, ID: r.PathValue("id"), Answer: func(Object) Answer {
		return Answer{Status: http.StatusNoContent}
	}}, nil
}

func (h *hubSpotType) upsert(r *Request, now View) (Plan, *Answer) {
	inputs, _ := r.Body["inputs"].([]any)
	if len(inputs) != 1 {
		a := hubSpotInvalid("inputs: this fake takes one input in a batch that writes")
		return Plan{}, &a
	}
	input, _ := inputs[0].(map[string]any)
	idProperty, _ := input["idProperty"].(string)
	id, _ := input["id"].(string)
	if !h.properties[idProperty].unique || id == "" {
		a := hubSpotInvalid("Unable to perform update/upsert by non-unique " + h.id + " property " + idProperty)
		return Plan{}, &a
	}
	values, wrong := h.values(input["properties"])
	if wrong == nil {
		key, invalid := h.values(map[string]any{idProperty: id})
		maps.Copy(values, key)
		wrong = invalid
	}
	if wrong != nil {
		return Plan{}, wrong
	}
	before, _ := h.one(now, idProperty, id)
	known := before.Text("id")
	if taken := h.taken(now, known, values); taken != nil {
		return Plan{}, hubSpotMulti(nil, map[string]any{"status": "error", "category": "VALIDATION_ERROR", "message": taken.Body.(map[string]any)["message"], "context": map[string]any{}})
	}
	if before == nil {
		known = strconv.FormatInt(100+now.Next(), 10)
	}
	return h.plan(before, h.put(before, known, values, now.At()), values, func(o Object) Answer {
		shown := o.Shown()
		shown["new"] = before == nil
		return Answer{Status: http.StatusOK, Body: hubSpotBatchBody([]any{shown})}
	}), nil
}

func hubSpotBatchBody(results []any) map[string]any {
	at := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	if results == nil {
		results = []any{}
	}
	return map[string]any{"status": "COMPLETE", "results": results, "startedAt": at, "completedAt": at}
}

// hubSpotMulti is the answer to a batch that was done in part.
func hubSpotMulti(results []any, problems ...any) *Answer {
	body := hubSpotBatchBody(results)
	body["numErrors"], body["errors"] = len(problems), problems
	return &Answer{Status: http.StatusMultiStatus, Body: body}
}

// show is a contact as reads show it: the requested properties, or the default ones, and those
// that are always included.
func (h *hubSpotType) show(o Object, asked []string) Object {
	shown := o.Shown()
	stored, _ := shown["properties"].(map[string]any)
	if len(asked) == 0 {
		asked = h.shown
	}
	properties := map[string]any{}
	for _, name := range slices.Concat(asked, []string{"hs_object_id", "createdate", "lastmodifieddate"}) {
		if _, known := h.properties[name]; known {
			properties[name] = stored[name] // null where it has none
		}
	}
	shown["properties"] = properties
	return shown
}

func hubSpotAsked(q url.Values) []string {
	var asked []string
	for _, v := range q["properties"] {
		asked = append(asked, strings.FieldsFunc(v, func(r rune) bool { return r == ',' })...)
	}
	return asked
}

func (h *hubSpotType) get(r *Request, seen View) Answer {
	q := r.URL.Query()
	for name := range q {
		if !slices.Contains([]string{"properties", "propertiesWithHistory", "associations", "archived", "idProperty"}, name) {
			return hubSpotInvalid("Unknown query parameter " + name)
		}
	}
	o, wrong := h.one(seen, q.Get("idProperty"), r.PathValue("id"))
	if wrong != nil {
		return *wrong
	}
	shown := h.show(o, hubSpotAsked(q))
	if name := q.Get("associations"); name != "" { // types of objects are not told apart here
		linked := []any{}
		for _, a := range listAt(o, ".associations") {
			linked = append(linked, map[string]any{"id": at(a, "to", "id"), "type": "note_to_" + name})
		}
		shown["associations"] = map[string]any{name: map[string]any{"results": linked}}
	}
	return Answer{Status: http.StatusOK, Body: shown}
}

func (h *hubSpotType) batchRead(r *Request, seen View) Answer {
	inputs, _ := r.Body["inputs"].([]any)
	if len(inputs) > hubSpotBatch {
		return hubSpotInvalid("The maximum number of inputs supported in a batch request for property histories is 100")
	}
	idProperty, _ := r.Body["idProperty"].(string)
	if idProperty != "" && !h.properties[idProperty].unique {
		return hubSpotInvalid("Unable to perform the request by non-unique " + h.id + " property " + idProperty)
	}
	var asked []string
	listed, _ := r.Body["properties"].([]any)
	for _, v := range listed {
		asked = append(asked, fmt.Sprint(v))
	}
	var results, missing []any
	for _, in := range inputs {
		id, _ := in.(map[string]any)["id"].(string)
		o, wrong := h.one(seen, idProperty, id)
		if wrong != nil {
			missing = append(missing, id)
			continue
		}
		results = append(results, h.show(o, asked))
	}
	if len(missing) == 0 {
		return Answer{Status: http.StatusOK, Body: hubSpotBatchBody(results)}
	}
	return *hubSpotMulti(results, map[string]any{
		"status": "error", "category": "OBJECT_NOT_FOUND", "context": map[string]any{"ids": missing},
		"message": "Could not get some CONTACT objects, they may be deleted or not exist. Check that ids are valid.",
	})
}

// search is an index: it lags.
func (h *hubSpotType) search(r *Request, seen View) Answer {
	results := []any{}
	groups, _ := r.Body["filterGroups"].([]any)
	for _, g := range groups {
		filters, _ := g.(map[string]any)["filters"].([]any)
		for _, f := range filters {
			f, _ := f.(map[string]any)
			for _, o := range h.find(seen, fmt.Sprint(f["propertyName"]), fmt.Sprint(f["value"])) {
				results = append(results, h.show(o, nil))
			}
		}
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{"total": len(results), "results": results}}
}

func (h *hubSpotType) property(r *Request, _ View) Answer {
	name := r.PathValue("name")
	p, known := h.properties[name]
	if !known {
		return hubSpotError(http.StatusNotFound, "OBJECT_NOT_FOUND", "Property "+name+" does not exist")
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{
		"name": name, "label": name, "type": "string", "fieldType": "text", "groupName": "contactinformation",
		"hasUniqueValue": p.unique, "hidden": false, "archived": false,
	}}
}
