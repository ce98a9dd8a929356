package rest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GmailMail is the collection of [Gmail]: drafts and messages. A record's ".raw" is the message, its ".draft"
// the draft's id, "" for what is no draft, ".hidden" means that it was sent and is not in Sent yet.
const GmailMail = "mail"

// GmailOptions are the choices of a [Gmail]. The zero value works.
type GmailOptions struct {
	// Token is the access token. Default "ya29.readback".
	Token string
	// SentAfter is how long after sending the copy appears. Default 1 s.
	SentAfter time.Duration
	// SpentIs400 means that a draft that was sent is answered with 400, otherwise 404.
	SpentIs400 bool
}

// Gmail is the fake of the Gmail API for drafts and messages of one account.
//
// Sending removes the draft at once; the copy in Sent appears later, under a new id. A list finds drafts as
// well, unless q has in:sent; where it finds nothing, it has no messages. It is an index and lags. Nothing
// is unique.
type Gmail struct {
	*Fake
	o GmailOptions
}

// NewGmail makes one.
func NewGmail(o GmailOptions) *Gmail {
	o.Token, o.SentAfter = cmp.Or(o.Token, "ya29.readback"), cmp.Or(o.SentAfter, time.Second)
	g := &Gmail{o: o}
	m := usual(bearer(o.Token), 400, gmailStatus)
	m.Throttled = googleThrottled
	g.Fake = New(m)
	const path = "/gmail/v1/users/me"
	g.HandleRead("GET "+path+"/profile", true, func(*Request, View) Answer {
		return Answer{Status: 200, Body: map[string]any{"emailAddress": "robot@example.com"}}
	})
	g.HandleWrite("POST "+path+"/drafts", g.draft)
	g.HandleWrite("POST "+path+"/drafts/send", g.send)
	g.HandleWrite("DELETE "+path+"/drafts/{id}", func(r *Request, now View) (Plan, *Answer) {
		key, o := gmailBy(now, ".draft", r.PathValue("id"))
		if o == nil {
			a := gmailStatus(404)
			return Plan{}, &a
		}
		return removing(GmailMail, key, Answer{Status: 204}), nil
	})
	g.HandleRead("GET "+path+"/drafts/{id}", true, func(r *Request, seen View) Answer {
		if _, o := gmailBy(seen, ".draft", r.PathValue("id")); o != nil {
			return Answer{Status: 200, Body: map[string]any{"id": o[".draft"], "message": gmailShown(r, o)}}
		}
		return gmailStatus(404)
	})
	g.HandleRead("GET "+path+"/messages/{id}", true, func(r *Request, seen View) Answer {
		if _, o := gmailBy(seen, "id", r.PathValue("id")); o != nil && o[".hidden"] != true {
			return Answer{Status: 200, Body: gmailShown(r, o)}
		}
		return gmailStatus(404)
	})
	g.HandleRead("GET "+path+"/messages", false, g.list)
	return g
}

func gmailStatus(status int) Answer {
	reason := map[int]string{400: "invalidArgument", 401: "authError", 403: "insufficientPermissions", 404: "notFound"}[status]
	says := map[int]string{400: "Invalid value", 401: "Invalid Credentials", 403: "Insufficient Permission", 404: "Requested entity was not found."}[status]
	a := googleError(status, "global", cmp.Or(reason, "backendError"), cmp.Or(says, "Error"))
	a.Body.(map[string]any)["error"].(map[string]any)["status"] = googleStatus(status).Body.(map[string]any)["error"].(map[string]any)["status"]
	return a
}

// Seed stores a message in Sent that another actor sent.
func (g *Gmail) Seed(raw string) Object {
	_, o := g.Put(GmailMail, func(now View) (string, Object) {
		key, o := gmailRecord(now, raw)
		o["labelIds"], o[".draft"] = []any{"SENT"}, ""
		return key, o
	})
	return o
}

func gmailRecord(now View, raw string) (string, Object) {
	n := now.Next()
	id := fmt.Sprintf("18f%013x", n)
	return strconv.FormatInt(n, 10), Object{"id": id, "threadId": id, "labelIds": []any{"DRAFT"}, "internalDate": fmt.Sprint(now.At().UnixMilli()), ".raw": raw, ".draft": fmt.Sprintf("r%d", n), ".hidden": false}
}

// gmailBy finds a record, and its key in the store.
func gmailBy(v View, member, value string) (string, Object) {
	return recordBy(v, GmailMail, member, value)
}

// recordBy finds a record by a member that is not its key.
func recordBy(v View, collection, member, value string) (string, Object) {
	for _, p := range v.store.order {
		if o := v.Get(collection, p.id); p.collection == collection && value != "" && o.Text(member) == value {
			return p.id, o
		}
	}
	return "", nil
}

func gmailHeaders(o Object) []any {
	all := []any{}
	head, _, _ := strings.Cut(strings.ReplaceAll(o.Text(".raw"), "\r\n", "\n"), "\n\n")
	for line := range strings.SplitSeq(head, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			all = append(all, map[string]any{"name": name, "value": strings.TrimSpace(value)})
		}
	}
	return all
}

func gmailShown(r *Request, o Object) Object {
	shown, q := o.Shown(), r.URL.Query()
	if q.Get("format") == "raw" {
		shown["raw"] = base64.URLEncoding.EncodeToString([]byte(o.Text(".raw")))
		return shown
	}
	headers := slices.DeleteFunc(gmailHeaders(o), func(h any) bool {
		return len(q["metadataHeaders"]) > 0 && !slices.ContainsFunc(q["metadataHeaders"], func(name string) bool { return strings.EqualFold(name, textAt(h, "name")) })
	})
	payload := map[string]any{"mimeType": "text/plain", "headers": headers}
	if _, text, _ := strings.Cut(strings.ReplaceAll(o.Text(".raw"), "\r\n", "\n"), "\n\n"); q.Get("format") != "metadata" {
		payload["body"] = map[string]any{"size": len(text), "data": base64.URLEncoding.EncodeToString([]byte(text))}
	}
	shown["payload"] = payload
	return shown
}

// plan stores a record; its subject is what suffers.
func (g *Gmail) plan(key string, before, o Object, a func(Object) Answer) Plan {
	p := storing(GmailMail, key, before, o, "", a)
	p.Create, p.Drop = true, nil // a sent message is new as well
	p.Normalise = func(stored Object) {
		head, rest, _ := strings.Cut(stored.Text(".raw"), "Subject:")
		subject, rest, _ := strings.Cut(rest, "\n")
		stored[".raw"] = head + "Subject:" + strings.ToUpper(subject) + "\n" + rest
	}
	return p.again(func(now View) (string, Object) {
		key, fresh := gmailRecord(now, "")
		if o[".draft"] == "" {
			fresh[".draft"], fresh["labelIds"] = "", []any{"SENT"}
		}
		delete(fresh, ".raw")
		return key, fresh
	})
}

func (g *Gmail) draft(r *Request, now View) (Plan, *Answer) {
	raw, err := base64.URLEncoding.DecodeString(textAt(r.Body, "message", "raw"))
	if err != nil {
		raw, err = base64.RawURLEncoding.DecodeString(textAt(r.Body, "message", "raw"))
	}
	if _, invalid := mail.ReadMessage(strings.NewReader(string(raw))); err != nil || invalid != nil {
		a := googleError(400, "global", "invalidArgument", "Invalid value for ByteString")
		return Plan{}, &a
	}
	key, o := gmailRecord(now, string(raw))
	return g.plan(key, nil, o, func(Object) Answer {
		return Answer{Status: 200, Body: map[string]any{"id": o[".draft"], "message": only(o.Shown(), []string{"id", "threadId", "labelIds"})}}
	}), nil
}

func (g *Gmail) send(r *Request, now View) (Plan, *Answer) {
	key, before := gmailBy(now, ".draft", textAt(r.Body, "id"))
	a := gmailStatus(404)
	switch {
	case before == nil && g.o.SpentIs400:
		a = gmailStatus(400)
		return Plan{}, &a
	case before == nil:
		return Plan{}, &a
	}
	if m, err := mail.ReadMessage(strings.NewReader(before.Text(".raw"))); err != nil || m.Header.Get("To")+m.Header.Get("Cc")+m.Header.Get("Bcc") == "" {
		a = googleError(400, "global", "invalidArgument", "Recipient address required")
		return Plan{}, &a
	}
	o := before.Clone()
	o["id"], o["labelIds"], o[".draft"], o[".hidden"] = fmt.Sprintf("18f%013x", now.Next()), []any{"SENT"}, "", true
	p := g.plan(key, before, o, func(Object) Answer {
		return Answer{Status: 200, Body: only(o.Shown(), []string{"id", "threadId", "labelIds"})}
	})
	p.Later = []Later{{g.o.SentAfter, func(o Object) { o[".hidden"] = false }}}
	return p, nil
}

// list takes rfc822msgid:, subject:, to:, from:, in: and words.
func (g *Gmail) list(r *Request, seen View) Answer {
	q := r.URL.Query()
	found := newest(visible(seen.List(GmailMail), func(o Object) bool {
		for _, part := range strings.Fields(q.Get("q")) {
			name, want, operator := strings.Cut(part, ":")
			holds := strings.Contains(strings.ToLower(o.Text(".raw")), strings.ToLower(part))
			switch {
			case operator && name == "in":
				holds = map[string]bool{"sent": o[".draft"] == "", "drafts": o[".draft"] != "", "anywhere": true}[want]
			case operator:
				header := map[string]string{"rfc822msgid": "Message-ID"}[name]
				holds = slices.ContainsFunc(gmailHeaders(o), func(h any) bool {
					have := strings.ToLower(strings.Trim(textAt(h, "value"), "<>"))
					want := strings.ToLower(strings.Trim(want, `<>"`))
					return strings.EqualFold(textAt(h, "name"), cmp.Or(header, name)) && (have == want || header == "" && strings.Contains(have, want))
				})
			}
			if !holds {
				return false
			}
		}
		return o[".hidden"] != true
	}))
	size, from := cmp.Or(limit(q.Get("maxResults"), 100, 500), 500), limit(q.Get("pageToken"), 0, 1<<30)
	body, messages := map[string]any{"resultSizeEstimate": len(found)}, []any{}
	for _, o := range slice(found, from, size) {
		messages = append(messages, only(o, []string{"id", "threadId"}))
	}
	if len(messages) > 0 {
		body["messages"] = messages
	}
	if from+size < len(found) {
		body["nextPageToken"] = strconv.Itoa(from + size)
	}
	return Answer{Status: 200, Body: body}
}
