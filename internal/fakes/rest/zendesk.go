package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tickets is the collection of [Zendesk].
const Tickets = "tickets"

// ZendeskOptions are the choices of a [Zendesk]. The zero value works.
type ZendeskOptions struct {
	// Email and Token are the credentials, sent as email/token:TOKEN. Default
	// "agent@example.com", "zendesk-token".
	Email, Token string
	// Window is how long an idempotency key is remembered. Default 2 hours.
	Window time.Duration
	// TriggerTag is a tag that a trigger adds to new tickets. Default none.
	TriggerTag string
	// TriggerAfter is how long after the create it does. Default 2 s.
	TriggerAfter time.Duration
}

// Zendesk is the fake of Zendesk's ticketing API for tickets.
//
// Creating a ticket honours Idempotency-Key; nothing else does. external_id is
// not unique. Tags become lower-case words without blanks, in order. Lists lag;
// a ticket by its id does not.
type Zendesk struct {
	*Fake
	o ZendeskOptions
}

// NewZendesk makes one.
func NewZendesk(o ZendeskOptions) *Zendesk {
	if o.Email == "" {
		o.Email = "agent@example.com"
	}
	if o.Token == "" {
		o.Token = "zendesk-token"
	}
	if o.Window == 0 {
		o.Window = 2 * time.Hour
	}
	if o.TriggerAfter == 0 {
		o.TriggerAfter = 2 * time.Second
	}
	z := &Zendesk{o: o}
	z.Fake = New(Manners{
		Authorized: func(r *http.Request) bool {
			user, password, ok := r.BasicAuth()
			return ok && user == o.Email+"/token" && password == o.Token
		},
		Unauthorized: func() Answer {
			return Answer{Status: http.StatusUnauthorized, Body: map[string]any{"error": "Couldn't authenticate you"}}
		},
		NotFound: func(*http.Request) Answer { return zendeskProblem(http.StatusNotFound, "InvalidEndpoint", "Not found") },
		Malformed: func() Answer {
			return zendeskProblem(http.StatusBadRequest, "Unprocessable", "Server could not parse JSON")
		},
		Refused:   zendeskRefused,
		Throttled: zendeskThrottled,
	})
	for _, form := range []string{"", ".json"} {
		z.HandleRead("GET /api/v2/tickets"+form, false, z.list)
		z.HandleRead("GET /api/v2/tickets/show_many"+form, true, z.showMany)
		z.HandleRead("GET /api/v2/search"+form, false, z.search)
		z.HandleWrite("POST /api/v2/tickets"+form, z.create)
	}
	z.HandleRead("GET /api/v2/users/me.json", true, z.me)
	z.HandleRead("GET /api/v2/tickets/{id}", true, z.get)
	z.HandleWrite("PUT /api/v2/tickets/{id}", z.update)
	z.HandleWrite("DELETE /api/v2/tickets/{id}", z.delete)
	return z
}

func zendeskProblem(status int, code, says string) Answer {
	return Answer{Status: status, Body: map[string]any{"error": code, "description": says}}
}

func zendeskInvalid(field, code, says string) *Answer {
	return &Answer{Status: http.StatusUnprocessableEntity, Body: map[string]any{
		"error": "RecordInvalid", "description": "Record validation errors",
		"details": map[string]any{field: []any{map[string]any{"description": says, "error": code}}},
	}}
}

func zendeskRefused(how string) (Answer, bool) {
	switch how {
	case "", "422":
		return *zendeskInvalid("base", "BlankValue", "Description: cannot be blank"), true
	case "403":
		return Answer{Status: http.StatusForbidden, Body: map[string]any{"error": map[string]any{
			"title": "Forbidden", "message": "You do not have access to this page. Please contact the account owner of this help desk for further help.",
		}}}, true
	case "404":
		return zendeskProblem(http.StatusNotFound, "RecordNotFound", "Not found"), true
	}
	return Answer{}, false
}

func zendeskThrottled(how string, wait time.Duration) (Answer, bool) {
	after := strconv.Itoa(max(1, int(wait.Seconds())))
	switch how {
	case "", "429":
		return Answer{Status: http.StatusTooManyRequests, Body: map[string]any{
			"error": "APIRateLimitExceeded", "description": "Number of allowed API requests per minute exceeded",
		}}.With("Retry-After", after).With("X-Rate-Limit", "700").With("X-Rate-Limit-Remaining", "0"), true
	case "ticket": // too many updates of one ticket
		return Answer{Status: http.StatusTooManyRequests, Body: map[string]any{"error": "TooManyUpdates",
			"description": "The ticket was updated too many times"}}.With("Retry-After", after), true
	}
	return Answer{}, false
}

func (z *Zendesk) me(*Request, View) Answer {
	return Answer{Status: http.StatusOK, Body: map[string]any{"user": map[string]any{
		"id": 9001, "email": z.o.Email, "name": "Agent", "role": "agent", "verified": true,
	}}}
}

// ticketID is the id of a path, which may end in .json.
func ticketID(r *Request) string { return strings.TrimSuffix(r.PathValue("id"), ".json") }

func (z *Zendesk) get(r *Request, seen View) Answer {
	o := seen.Get(Tickets, ticketID(r))
	if o == nil {
		return zendeskProblem(http.StatusNotFound, "RecordNotFound", "Not found")
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{"ticket": o.Shown()}}
}

// list filters by external_id alone, which takes several with commas; the API has
// no other filter for tickets.
func (z *Zendesk) list(r *Request, seen View) Answer {
	filtered := r.URL.Query().Has("external_id")
	want := strings.Split(r.URL.Query().Get("external_id"), ",")
	found := []Object{}
	for _, o := range seen.List(Tickets) {
		if !filtered || (o.Text("external_id") != "" && slices.Contains(want, o.Text("external_id"))) {
			found = append(found, o.Shown())
		}
	}
	return zendeskPage(r, found)
}

func zendeskPage(r *Request, all []Object) Answer {
	q := r.URL.Query()
	size, err := strconv.Atoi(q.Get("per_page"))
	if err != nil || size < 1 || size > 100 {
		size = 100
	}
	page, err := strconv.Atoi(q.Get("page"))
	if err != nil || page < 1 {
		page = 1
	}
	link := func(n int) any {
		if n < 1 || (n-1)*size >= len(all) {
			return nil
		}
		q.Set("page", strconv.Itoa(n))
		return fmt.Sprintf("https://%s%s?%s", r.Host, r.URL.Path, q.Encode())
	}
	from, to := min((page-1)*size, len(all)), min(page*size, len(all))
	return Answer{Status: http.StatusOK, Body: map[string]any{
		"tickets": all[from:to], "next_page": link(page + 1), "previous_page": link(page - 1), "count": len(all),
	}}
}

// showMany leaves out missing tickets.
func (z *Zendesk) showMany(r *Request, seen View) Answer {
	ids := strings.Split(r.URL.Query().Get("ids"), ",")
	if len(ids) > 100 {
		return zendeskProblem(http.StatusBadRequest, "TooManyValues", "The number of ids exceeds 100")
	}
	found := []Object{}
	for _, id := range ids {
		if o := seen.Get(Tickets, id); o != nil {
			found = append(found, o.Shown())
		}
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{"tickets": found, "next_page": nil, "previous_page": nil, "count": len(found)}}
}

// search exists, and is an index without any entries yet.
func (z *Zendesk) search(*Request, View) Answer {
	return Answer{Status: http.StatusOK, Body: map[string]any{"results": []any{}, "next_page": nil, "previous_page": nil, "count": 0}}
}

// Tags are tags as the API keeps them: lower-case, blanks as underscores, in
// order, each once.
func Tags(given []string) []any {
	words := make([]string, 0, len(given))
	for _, tag := range given {
		if tag = strings.Join(strings.Fields(strings.ToLower(tag)), "_"); tag != "" {
			words = append(words, tag)
		}
	}
	slices.Sort(words)
	tags := []any{}
	for _, tag := range slices.Compact(words) {
		tags = append(tags, tag)
	}
	return tags
}
