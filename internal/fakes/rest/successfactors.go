package rest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// SuccessFactorsUsers is the collection of [SuccessFactors], by userId.
const SuccessFactorsUsers = "User"

// SuccessFactorsOptions are the choices of a [SuccessFactors]. The zero value works.
type SuccessFactorsOptions struct {
	// Token is the access token. Default "sf-readback".
	Token string
}

// SuccessFactors is the fake of SAP SuccessFactors' OData API, version 2, for the entity User.
//
// An upsert is by userId. It answers 200, and what became of the record is in the body: status OK or
// ERROR, with an httpCode of its own. It merges: what the request leaves out stays, and so does what it
// gives as null or as empty text; with purgeType=record all of that is cleared. An inactive user is not
// written without processInactiveEmployees. User names are unique, and letter case counts. A status is
// kept as a letter, a date as /Date(milliseconds)/. A filter that does not name the status finds active
// users alone; the key finds each. Without $format=json an answer is Atom. A token that is refused is
// 403. After the form 500 of bad-gateway the record is an ERROR, and may have been stored.
//
// Where nothing is published: empty text is null, blanks around texts are removed, and all reads lag.
// This fake takes one record in a request.
type SuccessFactors struct{ *Fake }

var (
	sfTexts    = strings.Fields("userId username firstName lastName email title department division location jobCode custom01 custom02")
	sfFields   = append([]string{"status", "hireDate", "lastModifiedDateTime"}, sfTexts...)
	sfStatuses = map[string]string{"active": "t", "inactive": "f", "active_external": "T", "inactive_external": "F",
		"active_external_suite": "e", "inactive_external_suite": "d"}
	sfUser   = regexp.MustCompile(`^User\('((?:[^']|'')*)'\)$`)
	sfDate   = regexp.MustCompile(`^/Date\(-?[0-9]+\)/$`)
	sfClause = regexp.MustCompile(`^(\w+) +(?:eq +('[^']*')|in +('[^']*'(?: *, *'[^']*')*))$`)
)

// NewSuccessFactors makes one.
func NewSuccessFactors(o SuccessFactorsOptions) *SuccessFactors {
	s := &SuccessFactors{}
	m := usual(bearer(cmp.Or(o.Token, "sf-readback")), 400, func(status int) Answer {
		switch status {
		case 401:
			return *sfError(403, "LGN0007", "Invalid OAuth token. Please validate the value for your OAuth token.")
		case 403:
			return *sfError(403, "COE_UNAUTHORIZED", "[COE0020]No permission to access the entity: User.")
		case 404:
			return *sfError(404, "COE_ENTITY_NOT_FOUND", "[COE0017]Invalid entity (or function) name.")
		}
		return *sfError(status, "BadRequestException", "The post data are in the bad JSON format")
	})
	usually := m.Refused
	m.Refused = func(how string) (Answer, bool) {
		if how == "" {
			return sfResult("", "Failed to add/update user: a rule of the company does not allow it"), true
		}
		return usually(how)
	}
	m.Failed = func() Answer { return sfResult("", "Exception caught when saving user: the transaction timed out") }
	s.Fake = New(m)
	s.HandleWrite("POST /odata/v2/upsert", s.upsert)
	s.HandleWrite("POST /odata/v2/{entity}", s.merge)
	s.HandleRead("GET /odata/v2/{entity}", false, func(r *Request, seen View) Answer { return sfAtom(r, s.read(r, seen)) })
	return s
}

func sfError(status int, code, message string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"error": map[string]any{"code": code, "message": map[string]any{"lang": "en-US", "value": message}}}}
}

// sfResult is what became of the record of an upsert: an ERROR if there is a message.
func sfResult(id, message string) Answer {
	result := map[string]any{"key": nil, "status": "ERROR", "editStatus": nil, "message": message + ". with the index 0", "index": 0, "httpCode": 500, "inlineResults": nil}
	if message == "" {
		result = map[string]any{"key": "User/userId=" + id, "status": "OK", "editStatus": "UPSERTED", "message": nil, "index": 0, "httpCode": 200, "inlineResults": nil}
	}
	return Answer{Status: 200, Body: map[string]any{"d": []any{result}}}
}

// sfAtom is an answer in the format that was asked for.
func sfAtom(r *Request, a Answer) Answer {
	if r.URL.Query().Get("$format") == "json" || a.Status != 200 {
		return a
	}
	return Answer{Status: 200, Text: `<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"></feed>`, Type: "application/atom+xml"}
}

// Seed stores a user as another actor would.
func (s *SuccessFactors) Seed(fields Object) Object {
	_, o := s.Put(SuccessFactorsUsers, func(now View) (string, Object) {
		o := sfRecord(now)
		for name, v := range fields {
			o[name] = v
		}
		return o.Text("userId"), o
	})
	return o
}

func sfRecord(now View) Object {
	o := Object{}
	for _, name := range sfFields {
		o[name] = nil
	}
	o["status"] = "t"
	return sfTouched(o, now)
}

func sfTouched(o Object, now View) Object {
	o["lastModifiedDateTime"] = fmt.Sprintf("/Date(%d+0000)/", now.At().UnixMilli())
	return o
}

func (s *SuccessFactors) upsert(r *Request, now View) (Plan, *Answer) {
	q, uri := r.URL.Query(), textAt(r.Body, "__metadata", "uri")
	id := textAt(r.Body, "userId")
	if m := sfUser.FindStringSubmatch(uri); m != nil {
		id = strings.ReplaceAll(m[1], "''", "'")
	} else if uri != "User" {
		return Plan{}, sfError(400, "COE_ENTITY_NOT_FOUND", "[COE0017]Invalid entity (or function) name: "+uri)
	}
	purge := q.Get("purgeType")
	if !slices.Contains([]string{"", "incremental", "full", "record"}, purge) {
		return Plan{}, sfError(400, "COE_GENERAL_BAD_REQUEST", "[COE0018]Invalid value of purgeType")
	}
	before := now.Get(SuccessFactorsUsers, id)
	o := before.Clone()
	if o == nil || purge == "record" {
		o = sfRecord(now)
		o["userId"] = id
	}
	if wrong := sfSet(o, r.Body, purge == "record"); wrong != nil {
		return Plan{}, wrong
	}
	message := ""
	switch {
	case id == "":
		message = "userId is required"
	case textAt(r.Body, "userId") != "" && textAt(r.Body, "userId") != id:
		message = "userId is not that of the uri"
	case before == nil && (o["username"] == nil || r.Body["status"] == nil):
		message = "A required field is missing: username, status"
	case !strings.ContainsAny(o.Text("status"), "tT") && !sfInactive(q.Get("processInactiveEmployees")),
		before != nil && !strings.ContainsAny(before.Text("status"), "tT") && !sfInactive(q.Get("processInactiveEmployees")):
		message = "Cannot upsert an inactive user."
	default:
		message = sfTaken(o, now)
	}
	if message != "" {
		a := sfAtom(r, sfResult("", message))
		return Plan{}, &a
	}
	return storing(SuccessFactorsUsers, id, before, sfTouched(o, now), "title", func(Object) Answer { return sfAtom(r, sfResult(id, "")) }), nil
}

func sfInactive(given string) bool { return given == "true" }

// sfTaken is the message about a user name that another user has.
func sfTaken(o Object, now View) string {
	if slices.ContainsFunc(now.List(SuccessFactorsUsers), func(other Object) bool {
		return other["username"] == o["username"] && other["userId"] != o["userId"]
	}) {
		return fmt.Sprintf(`DUPLICATE_USERNAME : Failed to add/update user [%s] "" (N/A;N/A;N/A): Duplicate Username - "%s"`, o["userId"], o["username"])
	}
	return ""
}

// sfSet sets what a body gives. Null and empty text stay what they were, unless they clear.
func sfSet(o Object, body map[string]any, clears bool) *Answer {
	for name, v := range body {
		text, isText := v.(string)
		switch {
		case name == "__metadata" || name == "lastModifiedDateTime":
			continue
		case !slices.Contains(sfFields, name):
			return sfError(400, "COE_PROPERTY_NOT_FOUND", "[COE0021]Invalid property names: User/"+name)
		case v != nil && !isText:
			return sfError(400, "COE_GENERAL_BAD_REQUEST", "[COE0019]Invalid property value. Property name:"+name)
		}
		text = strings.TrimSpace(text)
		switch {
		case text == "" && !clears:
		case text == "":
			o[name] = nil
		case name == "status":
			letter := cmp.Or(sfStatuses[text], text)
			if !slices.Contains([]string{"t", "f", "T", "F"}, letter) {
				return sfError(500, "COE_GENERAL_SERVER_FAILURE", "[COE0019]Invalid property value. Property name:status. Property value:"+text+". with the index 0")
			}
			o[name] = letter
		case name == "hireDate" && !sfDate.MatchString(text):
			return sfError(400, "COE_GENERAL_BAD_REQUEST", "[COE0019]Invalid property value. Property name:hireDate. Property value:"+text)
		default:
			o[name] = text
		}
	}
	return nil
}

// merge is a MERGE of one user, as a POST: in it null clears. Its answer has no body.
func (s *SuccessFactors) merge(r *Request, now View) (Plan, *Answer) {
	m := sfUser.FindStringSubmatch(r.PathValue("entity"))
	if m == nil || r.Header.Get("X-HTTP-METHOD") != "MERGE" {
		return Plan{}, sfError(405, "MethodNotAllowedException", "The method is not allowed")
	}
	id := strings.ReplaceAll(m[1], "''", "'")
	before := now.Get(SuccessFactorsUsers, id)
	switch {
	case before == nil:
		return Plan{}, sfError(404, "NotFoundException", "The requested entity could not be found.")
	case !strings.ContainsAny(before.Text("status"), "tT") && !sfInactive(r.URL.Query().Get("processInactiveEmployees")):
		return Plan{}, sfError(500, "COE_GENERAL_SERVER_FAILURE", "Cannot update an inactive user.")
	}
	o := before.Clone()
	if wrong := sfSet(o, r.Body, true); wrong != nil {
		return Plan{}, wrong
	}
	if taken := sfTaken(o, now); taken != "" {
		return Plan{}, sfError(500, "COE_GENERAL_SERVER_FAILURE", taken)
	}
	return storing(SuccessFactorsUsers, id, before, sfTouched(o, now), "title", func(Object) Answer { return Answer{Status: 200} }), nil
}

func sfShown(o Object, names []string) Object {
	id := o.Text("userId")
	if names != nil {
		only(o, names)
	}
	uri := "https://api4.successfactors.com/odata/v2/User('" + strings.ReplaceAll(id, "'", "''") + "')"
	o["__metadata"] = map[string]any{"uri": uri, "type": "SFOData.User"}
	return o
}

// read is a query, or one user by its key.
func (s *SuccessFactors) read(r *Request, seen View) Answer {
	q, entity := r.URL.Query(), r.PathValue("entity")
	var names []string
	if selected := q.Get("$select"); selected != "" {
		names = strings.Split(selected, ",")
	}
	for _, name := range names {
		if !slices.Contains(sfFields, name) {
			return *sfError(400, "COE_PROPERTY_NOT_FOUND", "[COE0021]Invalid property names: User/"+name)
		}
	}
	if m := sfUser.FindStringSubmatch(entity); m != nil {
		o := seen.Get(SuccessFactorsUsers, strings.ReplaceAll(m[1], "''", "'"))
		if o == nil {
			return *sfError(404, "NotFoundException", "The requested entity could not be found.")
		}
		return Answer{Status: 200, Body: map[string]any{"d": sfShown(o.Shown(), names)}}
	}
	if entity != "User" {
		return *sfError(404, "COE_ENTITY_NOT_FOUND", "[COE0017]Invalid entity (or function) name: "+entity)
	}
	wanted, wrong := sfFilter(q.Get("$filter"))
	if wrong != nil {
		return *wrong
	}
	found := visible(seen.List(SuccessFactorsUsers), func(o Object) bool {
		for name, values := range wanted {
			if !slices.Contains(values, o.Text(name)) {
				return false
			}
		}
		return true
	})
	top, skip := limit(q.Get("$top"), 1000, 1000), 0
	if given := q.Get("$skip"); given != "" {
		skip, _ = strconv.Atoi(given)
	}
	body := map[string]any{}
	if skip+top < len(found) && q.Get("$top") == "" {
		body["__next"] = "https://api4.successfactors.com/odata/v2/User?$format=json&$filter=" + strings.ReplaceAll(q.Get("$filter"), " ", "%20") + "&$skip=" + strconv.Itoa(skip+top)
	}
	found = slice(found, skip, top)
	for i := range found {
		found[i] = sfShown(found[i], names)
	}
	body["results"] = found
	return Answer{Status: 200, Body: map[string]any{"d": body}}
}

// sfFilter reads conditions that are joined by "and": name eq 'x', name in 'x','y'.
func sfFilter(text string) (map[string][]string, *Answer) {
	wanted := map[string][]string{"status": {"t", "T"}} // unless it says otherwise
	for _, part := range strings.Split(text, " and ") {
		if text == "" {
			break
		}
		m := sfClause.FindStringSubmatch(strings.TrimSpace(part))
		switch {
		case m == nil:
			return nil, sfError(400, "COE_GENERAL_BAD_REQUEST", "[COE0018]Invalid filter: "+part)
		case !slices.Contains(sfFields, m[1]):
			return nil, sfError(400, "COE_PROPERTY_NOT_FOUND", "[COE0021]Invalid property names: User/"+m[1])
		}
		var values []string
		for _, v := range strings.Split(m[2]+m[3], ",") {
			v = strings.Trim(strings.TrimSpace(v), "'")
			if m[1] == "status" {
				v = cmp.Or(sfStatuses[v], v)
			}
			values = append(values, v)
		}
		wanted[m[1]] = values
	}
	return wanted, nil
}
