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

// Collections of [Graph]. The key of a message in the store is not its id. Extended properties are
// ".properties", as they were written; a message that was sent and has no copy yet is ".hidden".
const (
	GraphMessages = "messages"
	GraphEvents   = "events"
)

// GraphOptions are the choices of a [Graph]. The zero value works.
type GraphOptions struct {
	// Token is the access token. Default "graph-token".
	Token string
	// CopyAfter is how long after sending the copy appears. Default 0; 4 s were seen.
	CopyAfter time.Duration
	// Changes means that an id changes on sending even if the client prefers immutable ones.
	Changes bool
}

// Graph is the fake of Microsoft Graph, version 1.0, for the mail and the events of one user.
//
// A message gets a new id when it is sent, unless the draft was made with the preference for immutable ids. The answer
// to sending is 202 without a body. Extended properties are shown only where the request expands them. An
// event whose transactionId is known is not created again: the first one is the answer, with 201. Lists lag,
// and filters that are not known are refused.
type Graph struct {
	*Fake
	o GraphOptions
}

// NewGraph makes one.
func NewGraph(o GraphOptions) *Graph {
	o.Token = cmp.Or(o.Token, "graph-token")
	g := &Graph{o: o}
	m := usual(bearer(o.Token), 400, func(status int) Answer {
		code := map[int]string{400: "ErrorInvalidRecipients", 401: "InvalidAuthenticationToken", 403: "ErrorAccessDenied", 404: "ErrorItemNotFound", 429: "ApplicationThrottled"}[status]
		return *graphError(status, cmp.Or(code, "ErrorInvalidRequest"), http.StatusText(status))
	})
	m.RequestID = "request-id"
	g.Fake = New(m)
	g.HandleWrite("POST /v1.0/me/messages", g.draft)
	g.HandleWrite("POST /v1.0/me/messages/{id}/send", g.send)
	g.HandleWrite("POST /v1.0/me/events", g.event)
	g.HandleWrite("PATCH /v1.0/me/events/{id}", g.event)
	for path, collection := range map[string]string{"messages": GraphMessages, "events": GraphEvents} {
		g.HandleWrite("DELETE /v1.0/me/"+path+"/{id}", func(r *Request, now View) (Plan, *Answer) {
			key, o := recordBy(now, collection, "id", r.PathValue("id"))
			if o == nil || o[".hidden"] == true {
				return Plan{}, graphMissing()
			}
			return removing(collection, key, Answer{Status: 204}), nil
		})
		g.HandleRead("GET /v1.0/me/"+path+"/{id}", true, func(r *Request, seen View) Answer {
			if _, o := recordBy(seen, collection, "id", r.PathValue("id")); o != nil && o[".hidden"] != true {
				return Answer{Status: 200, Body: graphShown(r, o)}
			}
			return *graphMissing()
		})
		g.HandleRead("GET /v1.0/me/"+path, false, func(r *Request, seen View) Answer { return g.list(r, seen, collection, "") })
	}
	g.HandleRead("GET /v1.0/me/mailFolders/{folder}/messages", false, func(r *Request, seen View) Answer {
		return g.list(r, seen, GraphMessages, strings.ToLower(r.PathValue("folder")))
	})
	return g
}

func graphError(status int, code, message string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"error": map[string]any{"code": code, "message": message, "innerError": map[string]any{"request-id": "f3b1", "date": instant(time.Now())}}}}
}

func graphMissing() *Answer {
	return graphError(404, "ErrorItemNotFound", "The specified object was not found in the store.")
}

// Seed stores a message in SentItems, or an event, as another actor would.
func (g *Graph) Seed(collection string, more Object) Object {
	_, o := g.Put(collection, func(now View) (string, Object) {
		key, o := graphRecord(now, collection)
		o["isDraft"], o["parentFolderId"] = false, "sentitems"
		maps.Copy(o, more)
		return key, o
	})
	return o
}

func graphRecord(now View, collection string) (string, Object) {
	n, at := now.Next(), instant(now.At())
	o := Object{"id": fmt.Sprintf("AAMk%08d=", n), "subject": "", "body": nil, "createdDateTime": at, "lastModifiedDateTime": at, ".properties": []any{}}
	if collection == GraphMessages {
		o["isDraft"], o["parentFolderId"], o["internetMessageId"], o["toRecipients"], o[".hidden"] = true, "drafts", fmt.Sprintf("<%d@example.com>", n), []any{}, false
	}
	return strconv.FormatInt(n, 10), o
}

func graphShown(r *Request, o Object) Object {
	shown := o.Shown()
	if properties := listAt(o, ".properties"); strings.Contains(r.URL.Query().Get("$expand"), "singleValueExtendedProperties") && len(properties) > 0 {
		shown["singleValueExtendedProperties"] = properties
	}
	return shown
}

// fill takes the members that the API has, and refuses others.
func graphFill(o Object, r *Request, members string) *Answer {
	if name := unknown(r.Body, members+" singleValueExtendedProperties"); name != "" || r.Body == nil {
		return graphError(400, "RequestBodyRead", "The property '"+name+"' does not exist on type 'microsoft.graph'.")
	}
	maps.Copy(o, Object(r.Body).Clone())
	if given, ok := o["singleValueExtendedProperties"]; ok {
		o[".properties"] = given
		delete(o, "singleValueExtendedProperties")
	}
	return nil
}

func (g *Graph) draft(r *Request, now View) (Plan, *Answer) {
	key, o := graphRecord(now, GraphMessages)
	if a := graphFill(o, r, "subject body toRecipients ccRecipients bccRecipients importance internetMessageHeaders internetMessageId"); a != nil {
		return Plan{}, a
	}
	o[".immutable"] = strings.Contains(r.Header.Get("Prefer"), "ImmutableId") && !g.o.Changes
	return storing(GraphMessages, key, nil, o, "subject", shows(201)).again(func(now View) (string, Object) {
		key, fresh := graphRecord(now, GraphMessages)
		return key, only(fresh, []string{"id", "internetMessageId"})
	}), nil
}

// send of a message that is no draft any more sends it again: whether it would is not published.
func (g *Graph) send(r *Request, now View) (Plan, *Answer) {
	key, before := recordBy(now, GraphMessages, "id", r.PathValue("id"))
	switch {
	case before == nil || before[".hidden"] == true:
		return Plan{}, graphMissing()
	case len(listAt(before, "toRecipients")) == 0:
		return Plan{}, graphError(400, "ErrorInvalidRecipients", "At least one recipient is not valid.")
	}
	o := before.Clone()
	fresh, copied := graphRecord(now, GraphMessages)
	if o["isDraft"] == false {
		key = fresh
	}
	if o[".immutable"] != true || o["isDraft"] == false {
		o["id"] = copied["id"]
	}
	o["isDraft"], o["parentFolderId"], o["sentDateTime"], o[".hidden"] = false, "sentitems", instant(now.At()), true
	p := storing(GraphMessages, key, before, o, "subject", func(Object) Answer { return Answer{Status: 202} }).again(func(now View) (string, Object) {
		key, fresh := graphRecord(now, GraphMessages)
		fresh[".hidden"] = false
		return key, only(fresh, []string{"id", "internetMessageId", ".hidden"})
	})
	p.Create, p.Drop = true, nil
	p.Later = []Later{{g.o.CopyAfter, func(o Object) { o[".hidden"] = false }}}
	return p, nil
}

func (g *Graph) event(r *Request, now View) (Plan, *Answer) {
	key, o := graphRecord(now, GraphEvents)
	status, before := 201, Object(nil)
	if id := r.PathValue("id"); id != "" {
		if key, before = recordBy(now, GraphEvents, "id", id); before == nil {
			return Plan{}, graphMissing()
		}
		o, status = before.Clone(), 200
	} else if _, first := recordBy(now, GraphEvents, "transactionId", textAt(r.Body, "transactionId")); first != nil {
		return Plan{}, &Answer{Status: 201, Body: graphShown(r, first)}
	}
	if a := graphFill(o, r, "subject body start end location attendees transactionId isAllDay showAs allowNewTimeProposals"); a != nil {
		return Plan{}, a
	}
	if textAt(o, "start", "dateTime") == "" || textAt(o, "end", "dateTime") == "" {
		return Plan{}, graphError(400, "ErrorPropertyValidationFailure", "At least one property failed validation.")
	}
	p := storing(GraphEvents, key, before, o, "subject", shows(status))
	if o.Text("transactionId") == "" {
		p = p.again(func(now View) (string, Object) {
			key, fresh := graphRecord(now, GraphEvents)
			return key, only(fresh, []string{"id"})
		})
	}
	return p, nil
}

var (
	graphEquals   = regexp.MustCompile(`^(internetMessageId|subject) eq ('(?:[^']|'')*')$`)
	graphProperty = regexp.MustCompile(`^singleValueExtendedProperties/[Aa]ny\(\s*(\w+):\s*\w+/id eq '([^']*)' and \w+/value eq '((?:[^']|'')*)'\s*\)$`)
)

// list takes one condition as its filter.
func (g *Graph) list(r *Request, seen View, collection, folder string) Answer {
	q := r.URL.Query()
	for name := range q {
		if !slices.Contains([]string{"$filter", "$expand", "$top", "$skip", "$select", "$orderby"}, name) {
			return *graphError(400, "BadRequest", "Unknown query option "+name)
		}
	}
	filter := strings.TrimSpace(q.Get("$filter"))
	equals, property := graphEquals.FindStringSubmatch(filter), graphProperty.FindStringSubmatch(filter)
	if filter != "" && equals == nil && property == nil {
		return *graphError(400, "ErrorInvalidUrlQueryFilter", "The query filter contains one or more invalid nodes.")
	}
	all := []Object{}
	for _, o := range newest(seen.List(collection)) {
		holds := o[".hidden"] != true && (folder == "" || o.Text("parentFolderId") == folder)
		if equals != nil {
			holds = holds && o.Text(equals[1]) == strings.ReplaceAll(strings.Trim(equals[2], "'"), "''", "'")
		}
		if property != nil {
			holds = holds && slices.ContainsFunc(listAt(o, ".properties"), func(p any) bool {
				return strings.EqualFold(textAt(p, "id"), property[2]) && textAt(p, "value") == strings.ReplaceAll(property[3], "''", "'")
			})
		}
		if holds {
			all = append(all, graphShown(r, o))
		}
	}
	size, from := cmp.Or(limit(q.Get("$top"), 10, 1000), 1000), limit(q.Get("$skip"), 0, 1<<30)
	body := map[string]any{"@odata.context": "https://graph.microsoft.com/v1.0/$metadata", "value": slice(all, from, size)}
	if from+size < len(all) {
		q.Set("$skip", strconv.Itoa(from+size))
		body["@odata.nextLink"] = "https://" + r.Host + r.URL.Path + "?" + q.Encode()
	}
	return Answer{Status: 200, Body: body}
}
