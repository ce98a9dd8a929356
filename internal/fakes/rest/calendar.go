package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Calendar is the part of Google Calendar that stores the events of one calendar.
//
// A deleted event keeps its id: it can still be read, as cancelled, and no other can be made with
// that id. Creating an event checks whether the id exists already, but [Calendar.Overlook] shows
// what happens when that check comes too early.
type Calendar struct {
	*Fake
	id       string
	zone     *time.Location
	overlook int
}

const (
	calendarEvents   = "events"
	calendarPage     = 250  // events of a page
	longestPrivate   = 1024 // of a value in extendedProperties
	calendarTimeForm = "2006-01-02T15:04:05Z07:00"
)

var eventID = regexp.MustCompile(`^[a-v0-9]+$`) // and 5 to 1024 of them

// NewCalendar makes a calendar in a time zone that the token may read and
// write. Any other calendar is not found.
func NewCalendar(token, id string, zone *time.Location) *Calendar {
	c := &Calendar{id: id, zone: zone}
	c.Fake = New(Manners{
		Authorized: func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token },
		Unauthorized: func() Answer {
			return googleError(http.StatusUnauthorized, "global", "authError", "Invalid Credentials")
		},
		NotFound:  func(*http.Request) Answer { return *eventMissing() },
		Malformed: func() Answer { return googleError(http.StatusBadRequest, "global", "parseError", "Parse Error") },
		Refused: func(how string) (Answer, bool) {
			a, ok := map[string]Answer{
				"":    googleError(http.StatusBadRequest, "calendar", "timeRangeEmpty", "The specified time range is empty."),
				"403": googleError(http.StatusForbidden, "global", "forbidden", "Forbidden"),
				"401": googleError(http.StatusUnauthorized, "global", "authError", "Invalid Credentials"),
				"404": *eventMissing(),
			}[how]
			return a, ok
		},
		Throttled: googleThrottled,
	})
	c.HandleWrite("POST /calendar/v3/calendars/{calendar}/events", c.insert)
	c.HandleWrite("PATCH /calendar/v3/calendars/{calendar}/events/{id}", c.patch)
	c.HandleWrite("DELETE /calendar/v3/calendars/{calendar}/events/{id}", c.remove)
	c.HandleRead("GET /calendar/v3/calendars/{calendar}/events/{id}", true, c.get)
	c.HandleRead("GET /calendar/v3/calendars/{calendar}/events", false, c.list)
	c.HandleRead("GET /calendar/v3/calendars/{calendar}", true, c.itself)
	return c
}

// Overlook makes the next n inserts not see that their id exists, as two at
// the same time may. There still is one event under the id: the later one.
func (c *Calendar) Overlook(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.overlook = n
}

func googleError(status int, domain, reason, message string) Answer {
	return Answer{Status: status, Body: map[string]any{"error": map[string]any{
		"errors": []any{map[string]any{"domain": domain, "reason": reason, "message": message}},
		"code":   status, "message": message,
	}}}
}

// googleThrottled: the usual form is a 429 that says how long to wait, which is not promised; the
// others differ from refusals only in their reason.
func googleThrottled(how string, wait time.Duration) (Answer, bool) {
	switch how {
	case "":
		a := googleError(http.StatusTooManyRequests, "usageLimits", "rateLimitExceeded", "Rate Limit Exceeded")
		return a.With("Retry-After", strconv.Itoa(int(wait.Seconds()))), true
	case "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded":
		return googleError(http.StatusForbidden, "usageLimits", how, "Limit Exceeded"), true
	}
	return Answer{}, false
}

func eventMissing() *Answer {
	a := googleError(http.StatusNotFound, "global", "notFound", "Not Found")
	return &a
}

// bad answers a request with unknown parameters or for another calendar.
func (c *Calendar) bad(r *Request, known ...string) *Answer {
	if r.PathValue("calendar") != c.id {
		return eventMissing()
	}
	for name := range r.URL.Query() {
		if !slices.Contains(known, name) {
			a := googleError(http.StatusBadRequest, "global", "badRequest", "Invalid JSON payload received. Unknown name \""+name+"\"")
			return &a
		}
	}
	return nil
}

func invalidEvent(reason, message string) *Answer {
	a := googleError(http.StatusBadRequest, "global", reason, message)
	return &a
}

// changed answers a condition that does not hold.
func changed(r *Request, o Object) *Answer {
	want := r.Header.Get("If-Match")
	if want == "" || want == "*" || want == o.Text("etag") {
		return nil
	}
	a := googleError(http.StatusPreconditionFailed, "global", "conditionNotMet", "Precondition Failed")
	return &a
}

func (c *Calendar) insert(r *Request, now View) (Plan, *Answer) {
	if wrong := c.bad(r, "sendUpdates", "conferenceDataVersion", "maxAttendees", "supportsAttachments"); wrong != nil {
		return Plan{}, wrong
	}
	id, given := r.Body["id"].(string)
	switch {
	case !given:
		id = fmt.Sprintf("srv%022d", now.Next())
	case !eventID.MatchString(id) || len(id) < 5 || len(id) > 1024:
		return Plan{}, invalidEvent("invalid", "Invalid resource id value.")
	}
	before := now.Get(calendarEvents, id)
	if before != nil && c.overlook == 0 {
		a := googleError(http.StatusConflict, "global", "duplicate", "The requested identifier already exists.")
		return Plan{}, &a
	}
	c.overlook = max(0, c.overlook-1)
	stamp := now.At().UTC().Format("2006-01-02T15:04:05.000Z")
	after := Object{
		"kind": "calendar#event", "id": id, "status": "confirmed", "created": stamp, "eventType": "default",
		"htmlLink": "https://www.google.com/calendar/event?eid=" + id, "iCalUID": id + "@google.com", "sequence": Number(0),
		"creator": map[string]any{"email": c.id}, "organizer": map[string]any{"email": c.id, "self": true},
		"reminders": map[string]any{"useDefault": true},
	}
	wrong := c.merge(after, r.Body, now)
	if wrong != nil {
		return Plan{}, wrong
	}
	return c.plan(before, after, r.Body, http.StatusOK), nil
}

func (c *Calendar) patch(r *Request, now View) (Plan, *Answer) {
	if wrong := c.bad(r, "sendUpdates", "conferenceDataVersion", "maxAttendees", "supportsAttachments"); wrong != nil {
		return Plan{}, wrong
	}
	before := now.Get(calendarEvents, r.PathValue("id"))
	switch {
	case before == nil:
		return Plan{}, eventMissing()
	case before.Text("status") == "cancelled" && r.Body["status"] == nil:
		a := googleError(http.StatusForbidden, "global", "forbidden", "Forbidden")
		return Plan{}, &a
	}
	if wrong := changed(r, before); wrong != nil {
		return Plan{}, wrong
	}
	after := before.Clone()
	if wrong := c.merge(after, r.Body, now); wrong != nil {
		return Plan{}, wrong
	}
	return c.plan(before, after, r.Body, http.StatusOK), nil
}

func (c *Calendar) remove(r *Request, now View) (Plan, *Answer) {
	if wrong := c.bad(r, "sendUpdates"); wrong != nil {
		return Plan{}, wrong
	}
	o := now.Get(calendarEvents, r.PathValue("id"))
	switch {
	case o == nil:
		return Plan{}, eventMissing()
	case o.Text("status") == "cancelled":
		a := googleError(http.StatusGone, "global", "deleted", "Resource has been deleted")
		return Plan{}, &a
	}
	if wrong := changed(r, o); wrong != nil {
		return Plan{}, wrong
	}
	after := o.Clone()
	after["status"] = "cancelled"
	c.touch(after, now)
	return Plan{Collection: calendarEvents, ID: o.Text("id"), After: after, Answer: func(Object) Answer {
		return Answer{Status: http.StatusNoContent}
	}}, nil
}

// writable are the members of an event that a client sets; others that it
// sends are ignored.
var writable = []string{
	"summary", "description", "location", "start", "end", "attendees", "reminders", "extendedProperties",
	"status", "transparency", "visibility", "colorId", "source", "guestsCanModify", "recurrence",
}

// merge applies a request to an event, in its stored form: members that are objects are merged,
// others are replaced.
func (c *Calendar) merge(o Object, body map[string]any, now View) *Answer {
	for name, v := range body {
		if !slices.Contains(writable, name) {
			continue
		}
		old, wasObject := o[name].(map[string]any)
		given, isObject := v.(map[string]any)
		switch {
		case v == nil:
			delete(o, name)
		case wasObject && isObject && name != "reminders":
			o[name] = mergeObject(old, given)
		default:
			o[name] = v
		}
	}
	for _, name := range []string{"start", "end"} {
		at, ok := o[name].(map[string]any)
		if !ok {
			return invalidEvent("required", "Missing "+name+" time.")
		}
		if wrong := c.inZone(at); wrong != nil {
			return wrong
		}
	}
	if wrong := eventTexts(o); wrong != nil {
		return wrong
	}
	if wrong := invite(o); wrong != nil {
		return wrong
	}
	c.touch(o, now)
	return nil
}

func mergeObject(old, given map[string]any) map[string]any {
	all := maps.Clone(old)
	for name, v := range given {
		a, okA := old[name].(map[string]any)
		b, okB := v.(map[string]any)
		switch {
		case v == nil:
			delete(all, name)
		case okA && okB:
			all[name] = mergeObject(a, b)
		default:
			all[name] = v
		}
	}
	return all
}

// inZone writes a time as the calendar shows it: in its own zone.
func (c *Calendar) inZone(at map[string]any) *Answer {
	text, ok := at["dateTime"].(string)
	if !ok {
		if _, day := at["date"].(string); day {
			return nil
		}
		return invalidEvent("required", "Missing time.")
	}
	zone, _ := at["timeZone"].(string)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		local, errZone := time.LoadLocation(zone)
		if errZone != nil || zone == "" {
			return invalidEvent("invalid", "Invalid value for: Invalid format: \""+text+"\"")
		}
		if t, err = time.ParseInLocation("2006-01-02T15:04:05", text, local); err != nil {
			return invalidEvent("invalid", "Invalid value for: Invalid format: \""+text+"\"")
		}
	}
	at["dateTime"] = t.In(c.zone).Truncate(time.Second).Format(calendarTimeForm)
	if zone == "" {
		at["timeZone"] = c.zone.String()
	}
	return nil
}

var unsafeMarkup = regexp.MustCompile(`(?is)<script.*?</script>|\s(on\w+|style|class)="[^"]*"`)

func eventTexts(o Object) *Answer {
	for _, name := range []string{"summary", "description", "location"} {
		if _, ok := o[name].(string); !ok && o[name] != nil {
			return invalidEvent("invalid", "Invalid value for: "+name)
		}
	}
	if s, ok := o["description"].(string); ok {
		o["description"] = strings.TrimSpace(unsafeMarkup.ReplaceAllString(s, ""))
	}
	extended, _ := o["extendedProperties"].(map[string]any)
	private, _ := extended["private"].(map[string]any)
	for name, v := range private {
		if s, ok := v.(string); !ok || len(s) > longestPrivate || len(name) > 44 {
			return invalidEvent("invalid", "Invalid extended property "+name)
		}
	}
	return nil
}

// invite keeps attendees in lower case, in an order of its own, each with a
// response.
func invite(o Object) *Answer {
	listed, _ := o["attendees"].([]any)
	for i, a := range listed {
		attendee, ok := a.(map[string]any)
		email, _ := attendee["email"].(string)
		if !ok || !strings.Contains(email, "@") {
			return invalidEvent("invalid", "Invalid attendee email.")
		}
		kept := maps.Clone(attendee)
		kept["email"] = strings.ToLower(email)
		if kept["responseStatus"] == nil {
			kept["responseStatus"] = "needsAction"
		}
		listed[i] = kept
	}
	slices.SortStableFunc(listed, func(a, b any) int {
		return cmp.Compare(fmt.Sprint(a.(map[string]any)["email"]), fmt.Sprint(b.(map[string]any)["email"]))
	})
	return nil
}

// touch gives an event its next version.
func (c *Calendar) touch(o Object, now View) {
	o["updated"] = now.At().UTC().Format("2006-01-02T15:04:05.000Z")
	o["etag"] = fmt.Sprintf(`"%d"`, 3181161784712000+now.Next())
	if n, ok := o["sequence"].(json.Number); ok {
		old, _ := n.Int64()
		o["sequence"] = Number(old + 1)
	}
}

// plan is what a write of an event does; the last of its texts is the one that
// suffers when a field does.
func (c *Calendar) plan(before, after Object, body map[string]any, status int) Plan {
	p := Plan{
		Collection: calendarEvents, ID: after.Text("id"), After: after, Create: before == nil,
		Answer: func(o Object) Answer {
			return Answer{Status: status, Body: o.Shown()}.With("ETag", o.Text("etag"))
		},
	}
	for _, name := range []string{"summary", "location"} {
		if _, asked := body[name].(string); !asked {
			continue
		}
		p.Drop = func(stored Object) {
			delete(stored, name)
			if v, had := before[name]; had {
				stored[name] = v
			}
		}
		p.Normalise = func(stored Object) { stored[name] = strings.ToUpper(stored.Text(name)) }
	}
	return p
}

func (c *Calendar) get(r *Request, seen View) Answer {
	if wrong := c.bad(r, "timeZone", "maxAttendees"); wrong != nil {
		return *wrong
	}
	o := seen.Get(calendarEvents, r.PathValue("id"))
	if o == nil {
		return *eventMissing()
	}
	return Answer{Status: http.StatusOK, Body: o.Shown()}.With("ETag", o.Text("etag"))
}

// itself shows the calendar.
func (c *Calendar) itself(r *Request, _ View) Answer {
	if wrong := c.bad(r); wrong != nil {
		return *wrong
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{
		"kind": "calendar#calendar", "etag": `"c1"`, "id": c.id, "summary": c.id, "timeZone": c.zone.String(),
	}}
}

// list shows, by pages, the events that are not cancelled and have every requested private
// property.
func (c *Calendar) list(r *Request, seen View) Answer {
	if wrong := c.bad(r, "privateExtendedProperty", "showDeleted", "maxResults", "pageToken", "singleEvents"); wrong != nil {
		return *wrong
	}
	q := r.URL.Query()
	size, err := strconv.Atoi(q.Get("maxResults"))
	if err != nil || size < 1 {
		size = calendarPage
	}
	found := []any{}
	for _, o := range seen.List(calendarEvents) {
		if (o.Text("status") != "cancelled" || q.Get("showDeleted") == "true") && hasPrivate(o, q) {
			found = append(found, o.Shown())
		}
	}
	from := 0
	if token := q.Get("pageToken"); token != "" {
		if from, err = strconv.Atoi(strings.TrimPrefix(token, "page-")); err != nil {
			return *invalidEvent("invalid", "Invalid pageToken")
		}
	}
	from = min(from, len(found))
	to := min(len(found), from+size)
	body := map[string]any{
		"kind": "calendar#events", "summary": c.id, "timeZone": c.zone.String(), "accessRole": "owner",
		"defaultReminders": []any{}, "items": found[from:to],
	}
	if to < len(found) {
		body["nextPageToken"] = fmt.Sprintf("page-%d", to)
	}
	return Answer{Status: http.StatusOK, Body: body}
}

func hasPrivate(o Object, q url.Values) bool {
	extended, _ := o["extendedProperties"].(map[string]any)
	private, _ := extended["private"].(map[string]any)
	for _, wanted := range q["privateExtendedProperty"] {
		name, value, _ := strings.Cut(wanted, "=")
		if private[name] != value {
			return false
		}
	}
	return true
}
