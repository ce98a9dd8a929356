package rest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Pages is the collection of [Notion].
const Pages = "pages"

// NotionOptions are the choices of a [Notion]. The zero value works.
type NotionOptions struct {
	// Token is the integration's secret. Default "notion-token".
	Token string
	// DataSource is the id of the one data source. Default
	// "11111111-2222-4333-8444-555555555555".
	DataSource string
	// Properties are the data source's properties: type by name. Default: Name
	// title, Intent key and Stamp and Notes rich_text, Status select, Amount
	// number, Due date, Done checkbox.
	Properties map[string]string
	// Run is how many characters one run of rich text holds before it is
	// split. Default 12.
	Run int
	// NotShared hides the data source and its pages from the integration: 404.
	NotShared bool
}

// Notion is the fake of Notion's API for pages of a data source, version
// 2025-09-03.
//
// Text comes back in runs, dates in another form, options of a select are made
// as they are named, times are cut to the minute, queries lag and take no
// notice of letter case. There is no deleting, only the trash.
type Notion struct {
	*Fake
	o       NotionOptions
	options map[string]string // id by name of the options of selects
}

// NewNotion makes one.
func NewNotion(o NotionOptions) *Notion {
	if o.Token == "" {
		o.Token = "notion-token"
	}
	if o.DataSource == "" {
		o.DataSource = "11111111-2222-4333-8444-555555555555"
	}
	if o.Properties == nil {
		o.Properties = map[string]string{
			"Name": "title", "Intent key": "rich_text", "Stamp": "rich_text", "Notes": "rich_text",
			"Status": "select", "Amount": "number", "Due": "date", "Done": "checkbox",
		}
	}
	if o.Run == 0 {
		o.Run = 12
	}
	n := &Notion{o: o, options: map[string]string{}}
	n.Fake = New(Manners{
		Authorized:   func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+o.Token },
		Unauthorized: func() Answer { return pageProblem(http.StatusUnauthorized, "unauthorized", "API token is invalid.") },
		NotFound: func(*http.Request) Answer {
			return pageProblem(http.StatusBadRequest, "invalid_request_url", "Invalid request URL.")
		},
		Malformed: func() Answer {
			return pageProblem(http.StatusBadRequest, "invalid_json", "Error parsing JSON body.")
		},
		Refused:   pageRefused,
		Throttled: pageThrottled,
	})
	n.HandleRead("POST /v1/data_sources/{id}/query", false, n.query)
	n.HandleRead("GET /v1/data_sources/{id}", true, n.dataSource)
	n.HandleRead("GET /v1/pages/{id}", true, n.get)
	n.HandleRead("POST /v1/search", false, n.search)
	n.HandleWrite("POST /v1/pages", n.create)
	n.HandleWrite("PATCH /v1/pages/{id}", n.update)
	return n
}

func pageProblem(status int, code, says string) Answer {
	return Answer{Status: status, Body: map[string]any{
		"object": "error", "status": status, "code": code, "message": says, "request_id": "00000000-0000-4000-8000-00000000beef",
	}}
}

func pageInvalid(says string) *Answer {
	a := pageProblem(http.StatusBadRequest, "validation_error", says)
	return &a
}

func pageMissing(what, id string) Answer {
	return pageProblem(http.StatusNotFound, "object_not_found", "Could not find "+what+" with ID: "+id+
		". Make sure the relevant pages and databases are shared with your integration.")
}

func pageRefused(how string) (Answer, bool) {
	switch how {
	case "", "400":
		return *pageInvalid("body failed validation: body.parent should be defined, instead was `undefined`."), true
	case "403":
		return pageProblem(http.StatusForbidden, "restricted_resource", "Insufficient permissions for this endpoint."), true
	case "404":
		return pageMissing("page", "00000000-0000-4000-8000-000000000000"), true
	}
	return Answer{}, false
}

func pageThrottled(how string, wait time.Duration) (Answer, bool) {
	after := strconv.Itoa(max(1, int(wait.Seconds())))
	switch how {
	case "", "429":
		return pageProblem(http.StatusTooManyRequests, "rate_limited", "You have been rate limited. Please try again in a few minutes.").
			With("Retry-After", after), true
	case "529":
		return pageProblem(529, "service_overload", "Notion is temporarily overloaded. Please try again later.").With("Retry-After", after), true
	case "529-bare":
		return pageProblem(529, "service_overload", "Notion is temporarily overloaded. Please try again later."), true
	case "409":
		return pageProblem(http.StatusConflict, "conflict_error", "Conflict occurred while saving. Please try again."), true
	}
	return Answer{}, false
}

// versioned checks the header that every request needs, and that the data
// source is shared.
func (n *Notion) versioned(r *Request) *Answer {
	switch r.Header.Get("Notion-Version") {
	case "2025-09-03":
		return nil
	case "":
		a := pageProblem(http.StatusBadRequest, "missing_version", "Notion-Version header failed validation: Notion-Version header should be defined, instead was `undefined`.")
		return &a
	}
	return pageInvalid("Notion-Version header failed validation.")
}

func (n *Notion) get(r *Request, seen View) Answer {
	if a := n.versioned(r); a != nil {
		return *a
	}
	o := seen.Get(Pages, r.PathValue("id"))
	if o == nil || n.o.NotShared {
		return pageMissing("page", r.PathValue("id"))
	}
	return Answer{Status: http.StatusOK, Body: o.Shown()}
}

func (n *Notion) dataSource(r *Request, _ View) Answer {
	if a := n.versioned(r); a != nil {
		return *a
	}
	if r.PathValue("id") != n.o.DataSource || n.o.NotShared {
		return pageMissing("data_source", r.PathValue("id"))
	}
	properties := map[string]any{}
	for name, kind := range n.o.Properties {
		properties[name] = map[string]any{"id": name, "name": name, "type": kind, kind: map[string]any{}}
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{
		"object": "data_source", "id": n.o.DataSource, "properties": properties, "in_trash": false,
	}}
}

// search exists, knows titles alone and is an index.
func (n *Notion) search(*Request, View) Answer {
	return Answer{Status: http.StatusOK, Body: map[string]any{"object": "list", "results": []any{}, "next_cursor": nil, "has_more": false}}
}

// query shows the pages that are not in the trash, newest last.
func (n *Notion) query(r *Request, seen View) Answer {
	if a := n.versioned(r); a != nil {
		return *a
	}
	if r.PathValue("id") != n.o.DataSource || n.o.NotShared {
		return pageMissing("data_source", r.PathValue("id"))
	}
	for name := range r.Body {
		if name != "filter" && name != "sorts" && name != "start_cursor" && name != "page_size" {
			return *pageInvalid("body failed validation: body." + name + " should be not present.")
		}
	}
	if _, a := n.fits(nil, r.Body["filter"]); a != nil {
		return *a
	}
	found := []Object{}
	for _, o := range seen.List(Pages) {
		fits, a := n.fits(o, r.Body["filter"])
		if a != nil {
			return *a
		}
		if fits && o["in_trash"] != true {
			found = append(found, o.Shown())
		}
	}
	return pagesOf(r, found)
}

// fits judges a filter: and, or, or the equality of a text property. An empty
// store judges nothing, so filters are checked on no object, too.
func (n *Notion) fits(o Object, filter any) (bool, *Answer) {
	f, ok := filter.(map[string]any)
	if !ok {
		if filter == nil {
			return true, nil
		}
		return false, pageInvalid("body failed validation: body.filter should be an object.")
	}
	for _, word := range []string{"and", "or"} {
		if list, ok := f[word].([]any); ok {
			return n.fitsAll(o, list, word == "and")
		}
	}
	name, _ := f["property"].(string)
	kind := n.o.Properties[name]
	if kind == "" {
		return false, pageInvalid("Could not find property with name or id: " + name)
	}
	condition, _ := f[kind].(map[string]any)
	want, ok := condition["equals"].(string)
	if !ok || len(condition) != 1 {
		return false, pageInvalid("body failed validation: body.filter." + kind + " should be defined.")
	}
	return strings.EqualFold(PageText(o, name), want), nil
}

func (n *Notion) fitsAll(o Object, list []any, all bool) (bool, *Answer) {
	result := all
	for _, one := range list {
		fits, a := n.fits(o, one)
		if a != nil {
			return false, a
		}
		if fits != all {
			result = !all
		}
	}
	return result, nil
}

// PageText is the plain text of a title or rich text property.
func PageText(o Object, name string) string {
	properties, _ := o["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	kind, _ := property["type"].(string)
	runs, _ := property[kind].([]any)
	var b strings.Builder
	for _, run := range runs {
		r, _ := run.(map[string]any)
		text, _ := r["plain_text"].(string)
		b.WriteString(text)
	}
	return b.String()
}

func pagesOf(r *Request, all []Object) Answer {
	size, from := 100, 0
	if v, ok := r.Body["page_size"]; ok {
		n, err := strconv.Atoi(fmt.Sprint(v))
		if err != nil || n < 1 || n > 100 {
			return *pageInvalid("body failed validation: body.page_size should be ≤ `100`.")
		}
		size = n
	}
	if v, ok := r.Body["start_cursor"]; ok {
		cursor, _ := v.(string)
		n, err := strconv.Atoi(strings.TrimPrefix(cursor, "cursor-"))
		if err != nil || n < 0 || n > len(all) {
			return *pageInvalid("The start_cursor provided is invalid: " + cursor)
		}
		from = n
	}
	to, next := min(from+size, len(all)), any(nil)
	if to < len(all) {
		next = "cursor-" + strconv.Itoa(to)
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{
		"object": "list", "results": all[from:to], "next_cursor": next, "has_more": next != nil,
		"type": "page_or_data_source", "page_or_data_source": map[string]any{},
	}}
}

// SeedPage creates a page as another actor would. given are properties in the form of a request.
// An error says why Notion would refuse them.
func (n *Notion) SeedPage(given map[string]any) (Object, error) {
	var refused error
	_, o := n.Put(Pages, func(now View) (string, Object) {
		id, o := n.page(now)
		if refused = n.set(o, given); refused != nil {
			return id, nil
		}
		return id, o
	})
	return o, refused
}

// EditPage changes properties of a page as another actor would. given and the error are as for
// [Notion.SeedPage].
func (n *Notion) EditPage(id string, given map[string]any) error {
	var refused error
	n.Edit(Pages, id, func(o Object) {
		was := o.Clone()
		if refused = n.set(o, given); refused != nil {
			maps.Copy(o, was)
			return
		}
		o["last_edited_time"] = time.Now().Add(time.Minute).UTC().Truncate(time.Minute).Format("2006-01-02T15:04:05.000Z")
	})
	return refused
}

func (n *Notion) set(o Object, given map[string]any) error {
	if a := n.fill(o, map[string]any{"properties": given}); a != nil {
		return errors.New("Notion refuses it: " + a.text())
	}
	return nil
}
