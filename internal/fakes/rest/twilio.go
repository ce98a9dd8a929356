package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TwilioMessages is the collection of [Twilio].
const TwilioMessages = "messages"

// TwilioOptions are the choices of a [Twilio]. The zero value works.
type TwilioOptions struct {
	// Account and Token are the credentials. Default "AC1", "twilio-token".
	Account, Token string
	// SentAfter is how long a message is queued, without date_sent. Default 2 s.
	SentAfter time.Duration
	// Undelivered is how long after its creation a message becomes undelivered. Default 0: it is
	// delivered a second after it was sent.
	Undelivered time.Duration
}

// Twilio is the fake of Twilio's API of 2010 for messages.
//
// Nothing is unique, no header makes a repeat harmless, and a record has no member for the client. The
// filter DateSent knows whole days of GMT, and hides what is not sent yet. Parameters that it does not
// know are ignored. Lists lag; a message by its sid does not.
type Twilio struct {
	*Fake
	o TwilioOptions
}

// NewTwilio makes one.
func NewTwilio(o TwilioOptions) *Twilio {
	o.Account, o.Token, o.SentAfter = cmp.Or(o.Account, "AC1"), cmp.Or(o.Token, "twilio-token"), cmp.Or(o.SentAfter, 2*time.Second)
	t := &Twilio{o: o}
	m := usual(func(r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		return user == o.Account && password == o.Token
	}, 400, func(status int) Answer {
		code := map[int]int{400: 21610, 401: 20003, 403: 20003, 404: 20404, 429: 20429, 500: 20500}[status]
		says := map[int]string{400: "Attempt to send to unsubscribed recipient", 401: "Authenticate", 403: "Permission Denied",
			404: "The requested resource was not found", 429: "Too Many Requests", 500: "An internal server error has occurred"}[status]
		return *twilioError(status, code, says)
	})
	m.Forms, m.RequestID = true, "Twilio-Request-Id"
	m.Failed = func() Answer { return *twilioError(500, 20500, "An internal server error has occurred") }
	t.Fake = New(m)
	path := "/2010-04-01/Accounts/" + o.Account + "/Messages"
	t.HandleWrite("POST "+path+".json", t.create)
	t.HandleRead("GET "+path+".json", false, t.list)
	t.HandleRead("GET "+path+"/{sid}", true, func(r *Request, seen View) Answer {
		if o := seen.Get(TwilioMessages, twilioSID(r)); o != nil {
			return Answer{Status: 200, Body: o.Shown()}
		}
		return *twilioMissing(r)
	})
	t.HandleWrite("DELETE "+path+"/{sid}", func(r *Request, now View) (Plan, *Answer) { // the log alone
		if now.Get(TwilioMessages, twilioSID(r)) == nil {
			return Plan{}, twilioMissing(r)
		}
		return Plan{Collection: TwilioMessages, ID: twilioSID(r), Answer: func(Object) Answer { return Answer{Status: 204} }}, nil
	})
	return t
}

// Seed stores a message that another actor sent. more are members that override the others.
func (t *Twilio) Seed(to, from, body string, more Object) Object {
	_, o := t.Put(TwilioMessages, func(now View) (string, Object) {
		o := t.message(now)
		o["to"], o["from"], o["body"], o["status"], o["date_sent"] = to, from, body, "delivered", o["date_created"]
		for member, v := range more.Clone() {
			o[member] = v
		}
		return o.Text("sid"), o
	})
	return o
}

func twilioSID(r *Request) string { return strings.TrimSuffix(r.PathValue("sid"), ".json") }

func twilioError(status, code int, says string) *Answer {
	return &Answer{Status: status, Body: map[string]any{
		"status": status, "code": code, "message": says, "more_info": "https://www.twilio.com/docs/errors/" + strconv.Itoa(code),
	}}
}

func twilioMissing(r *Request) *Answer {
	return twilioError(404, 20404, "The requested resource "+r.URL.Path+" was not found")
}

func twilioTime(at time.Time) string { return at.UTC().Format(time.RFC1123Z) }

func (t *Twilio) message(now View) Object {
	sid, at := fmt.Sprintf("SM%032x", now.Next()), twilioTime(now.At())
	return Object{
		"sid": sid, "account_sid": t.o.Account, "api_version": "2010-04-01", "uri": "/2010-04-01/Accounts/" + t.o.Account + "/Messages/" + sid + ".json",
		"body": "", "to": nil, "from": nil, "messaging_service_sid": nil, "direction": "outbound-api", "status": "queued",
		"date_created": at, "date_updated": at, "date_sent": nil, "error_code": nil, "error_message": nil,
		"num_segments": "1", "num_media": "0", "price": nil, "price_unit": "USD",
	}
}

// twilioPlain is what SmartEncoded makes of text.
var twilioPlain = strings.NewReplacer("“", `"`, "”", `"`, "‘", "'", "’", "'", "–", "-", "—", "-", "…", "...", "\u00a0", " ")

func (t *Twilio) create(r *Request, now View) (Plan, *Answer) {
	given := Object(r.Body)
	o := t.message(now)
	to, from, service, body := given.Text("To"), given.Text("From"), given.Text("MessagingServiceSid"), given.Text("Body")
	switch {
	case to == "":
		return Plan{}, twilioError(400, 21604, "A 'To' phone number is required.")
	case strings.Trim(to, "+0123456789") != "" || len(to) < 8:
		return Plan{}, twilioError(400, 21211, "The 'To' number "+to+" is not a valid phone number.")
	case from == "" && service == "":
		return Plan{}, twilioError(400, 21603, "A 'From' phone number is required.")
	case body == "" && given["MediaUrl"] == nil && given["ContentSid"] == nil:
		return Plan{}, twilioError(400, 21602, "Message body is required.")
	case len([]rune(body)) > 1600:
		return Plan{}, twilioError(400, 21617, "The concatenated message body exceeds the 1600 character limit.")
	}
	if o["to"], o["body"] = to, body; given.Text("SmartEncoded") == "true" {
		o["body"] = twilioPlain.Replace(body)
	}
	if o["from"] = from; from == "" {
		o["from"], o["messaging_service_sid"], o["status"] = nil, service, "accepted"
	}
	change := func(after time.Duration, members Object) Later {
		return Later{after, func(o Object) {
			at := twilioTime(time.Now())
			if o["date_updated"] = at; o["date_sent"] == nil {
				o["date_sent"] = at
			}
			for member, v := range members {
				o[member] = v
			}
		}}
	}
	later := []Later{change(t.o.SentAfter, Object{"status": "sent"}), change(t.o.SentAfter+time.Second, Object{"status": "delivered"})}
	if t.o.Undelivered > 0 {
		later[1] = change(t.o.Undelivered, Object{"status": "undelivered", "error_code": Number(30003), "error_message": "Unreachable destination handset"})
	}
	return Plan{
		Collection: TwilioMessages, ID: o.Text("sid"), After: o, Create: true, Later: later,
		Answer:    func(stored Object) Answer { return Answer{Status: 201, Body: stored.Shown()} },
		Normalise: func(stored Object) { stored["body"] = twilioPlain.Replace(stored.Text("body")) + " " },
		Duplicate: func(stored Object, now View) (string, Object) {
			stored["sid"] = t.message(now)["sid"]
			return stored.Text("sid"), stored
		},
	}, nil
}

// list shows the newest first.
func (t *Twilio) list(r *Request, seen View) Answer {
	q := r.URL.Query()
	day := func(o Object) string {
		at, err := time.Parse(time.RFC1123Z, o.Text("date_sent"))
		if err != nil {
			return ""
		}
		return at.UTC().Format(time.DateOnly)
	}
	for _, name := range []string{"DateSent", "DateSent<", "DateSent>"} {
		if _, err := time.Parse(time.DateOnly, q.Get(name)); q.Get(name) != "" && err != nil {
			return *twilioError(400, 20001, "Invalid date "+q.Get(name))
		}
	}
	all := slices.DeleteFunc(newest(seen.List(TwilioMessages)), func(o Object) bool {
		sent, on, from, to := day(o), q.Get("DateSent"), q.Get("DateSent>"), q.Get("DateSent<")
		return q.Get("To") != "" && o["to"] != q.Get("To") || q.Get("From") != "" && o["from"] != q.Get("From") ||
			on+from+to != "" && sent == "" || on != "" && sent != on || from != "" && sent < from || to != "" && sent > to
	})
	size := cmp.Or(limit(q.Get("PageSize"), 50, 1<<30), 50)
	rest, known := after(all, "sid", strings.TrimPrefix(q.Get("PageToken"), "PA"))
	if !known {
		return *twilioError(400, 20001, "Invalid PageToken")
	}
	shown, more := page(rest, min(size, 1000))
	number, _ := strconv.Atoi(q.Get("Page")) // none is the first
	body := map[string]any{"messages": shown, "page": number, "page_size": size, "uri": r.URL.RequestURI(), "next_page_uri": nil}
	if more {
		next := url.Values{}
		for name, values := range q {
			next[name] = values
		}
		next.Set("Page", strconv.Itoa(number+1))
		next.Set("PageToken", "PA"+shown[len(shown)-1].Text("sid"))
		body["next_page_uri"] = r.URL.Path + "?" + next.Encode()
	}
	return Answer{Status: 200, Body: body}
}
