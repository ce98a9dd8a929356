package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// SlackMessages is the collection of [Slack]. The id of a message is CHANNEL/TS.
const SlackMessages = "messages"

// SlackOptions are the choices of a [Slack]. The zero value is an application outside the Marketplace.
type SlackOptions struct {
	// Token is the bot's. Default "xoxb-readback".
	Token string
	// Channels are the ids of those that the bot is in. Default C1 and C2.
	Channels []string
	// PageLimit is the most that a read shows. Default 15; in the Marketplace it is 999.
	PageLimit int
	// ReadEvery is the time between two calls of one read method. Default a minute; negative: none.
	ReadEvery time.Duration
}

// Slack is the fake of Slack's Web API for messages: chat.postMessage, chat.update, chat.delete,
// conversations.history, conversations.replies.
//
// All answers but "ratelimited" have status 200. Nothing is unique and no request has a key: a
// message is found by reading a channel, which shows metadata only when asked, replies not at all, and
// the name of the channel never. Text comes back escaped, with links marked. The fault bad-gateway as
// 500 is a fatal_error after the message was posted.
type Slack struct {
	*Fake
	o    SlackOptions
	read map[string]time.Time // when a method was last answered
}

// NewSlack makes one.
func NewSlack(o SlackOptions) *Slack {
	o.Token, o.PageLimit, o.ReadEvery = cmp.Or(o.Token, "xoxb-readback"), cmp.Or(o.PageLimit, 15), cmp.Or(o.ReadEvery, time.Minute)
	if o.Channels == nil {
		o.Channels = []string{"C1", "C2"}
	}
	s := &Slack{o: o, read: map[string]time.Time{}}
	s.Fake = New(Manners{
		Authorized:   bearer(o.Token),
		Unauthorized: func() Answer { return *slackError("invalid_auth") },
		NotFound:     func(*http.Request) Answer { return *slackError("unknown_method") },
		Malformed:    func() Answer { return *slackError("invalid_json") },
		Refused: func(how string) (Answer, bool) {
			how = cmp.Or(how, "channel_not_found")
			return *slackError(how), slices.Contains([]string{"channel_not_found", "not_in_channel", "is_archived", "msg_too_long", "restricted_action"}, how)
		},
		Throttled: func(how string, wait time.Duration) (Answer, bool) { return slackLimited(wait), how == "" },
		Failed:    func() Answer { return *slackError("fatal_error") },
		Forms:     true, RequestID: "X-Slack-Req-Id",
	})
	s.HandleWrite("POST /api/chat.postMessage", s.post)
	s.HandleWrite("POST /api/chat.update", s.change(false))
	s.HandleWrite("POST /api/chat.delete", s.change(true))
	for _, method := range []string{"GET", "POST"} {
		s.HandleRead(method+" /api/conversations.history", false, s.limited(s.history))
		s.HandleRead(method+" /api/conversations.replies", false, s.limited(s.replies))
		s.handleFixed(method+" /api/auth.test", map[string]any{"ok": true, "team_id": "T1", "user_id": "U1", "bot_id": "B1"})
	}
	return s
}

// Seed posts a message as another actor would: a member of the channel. more are members that
// override the others, thread_ts or metadata for example.
func (s *Slack) Seed(channel, text string, more Object) Object {
	_, o := s.Put(SlackMessages, func(now View) (string, Object) {
		o := slackMessage(channel, now)
		delete(o, "bot_id")
		delete(o, "app_id")
		o["user"], o["text"] = "U2", slackText(text)
		for member, v := range more.Clone() {
			o[member] = v
		}
		return channel + "/" + o.Text("ts"), o
	})
	return o
}

func slackError(code string) *Answer {
	return &Answer{Status: 200, Body: map[string]any{"ok": false, "error": code}}
}

func slackLimited(wait time.Duration) Answer {
	a := *slackError("ratelimited")
	a.Status = http.StatusTooManyRequests
	return a.With("Retry-After", seconds(wait))
}

func slackMessage(channel string, now View) Object {
	return Object{
		".channel": channel, "type": "message", "user": "U1", "bot_id": "B1", "app_id": "A1", "team": "T1", "text": "",
		"ts": fmt.Sprintf("%d.%06d", now.At().Unix(), now.Next()),
	}
}

var slackMarkup = regexp.MustCompile(`&(?:amp|lt|gt);|<(?:https?://|[@#!])[^<>]*>|https?://[^\s<>]+|[&<>]`)

// slackText is text as it comes back.
func slackText(text string) string {
	return slackMarkup.ReplaceAllStringFunc(text, func(m string) string {
		switch {
		case strings.HasPrefix(m, "http"):
			return "<" + m + ">"
		case len(m) == 1:
			return map[string]string{"&": "&amp;", "<": "&lt;", ">": "&gt;"}[m]
		}
		return m
	})
}

// param is a parameter of a method, from the query or the body, as text.
func (r *Request) param(name string) string {
	if v, ok := r.Body[name]; ok && v != nil {
		return fmt.Sprint(v)
	}
	return r.URL.Query().Get(name)
}

func (s *Slack) post(r *Request, now View) (Plan, *Answer) {
	channel, text := r.param("channel"), r.param("text")
	if !slices.Contains(s.o.Channels, channel) {
		return Plan{}, slackError("channel_not_found")
	}
	if text == "" && r.Body["blocks"] == nil && r.Body["attachments"] == nil {
		return Plan{}, slackError("no_text")
	}
	o := slackMessage(channel, now)
	o["text"] = slackText(text)
	if given := r.Body["metadata"]; given != nil {
		if text, isText := given.(string); isText { // in a form
			if err := json.Unmarshal([]byte(text), &given); err != nil {
				return Plan{}, slackError("invalid_metadata_format")
			}
		}
		metadata, _ := given.(map[string]any)
		_, named := metadata["event_type"].(string)
		if _, ok := metadata["event_payload"].(map[string]any); !ok || !named {
			return Plan{}, slackError("invalid_metadata_format")
		}
		o["metadata"] = metadata
	}
	if root := r.param("thread_ts"); root != "" {
		if now.Get(SlackMessages, channel+"/"+root) == nil {
			return Plan{}, slackError("thread_not_found")
		}
		o["thread_ts"] = root
		if r.param("reply_broadcast") == "true" {
			o["subtype"] = "thread_broadcast"
		}
	}
	return Plan{
		Collection: SlackMessages, ID: channel + "/" + o.Text("ts"), After: o, Create: true,
		Answer: func(stored Object) Answer {
			return Answer{Status: 200, Body: map[string]any{"ok": true, "channel": channel, "ts": o["ts"], "message": stored.Shown()}}
		},
		Drop:      func(stored Object) { delete(stored, "metadata") },
		Normalise: func(stored Object) { stored["text"] = strings.ToUpper(stored.Text("text")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			stored["ts"] = slackMessage(channel, now)["ts"]
			return channel + "/" + stored.Text("ts"), stored
		},
	}, nil
}

// change is chat.update and chat.delete, of the bot's own messages.
func (s *Slack) change(gone bool) func(*Request, View) (Plan, *Answer) {
	return func(r *Request, now View) (Plan, *Answer) {
		channel, ts := r.param("channel"), r.param("ts")
		o := now.Get(SlackMessages, channel+"/"+ts)
		switch {
		case o == nil:
			return Plan{}, slackError("message_not_found")
		case o["bot_id"] == nil && gone:
			return Plan{}, slackError("cant_delete_message")
		case o["bot_id"] == nil:
			return Plan{}, slackError("cant_update_message")
		}
		o["text"], o["edited"] = slackText(r.param("text")), map[string]any{"user": "U1", "ts": fmt.Sprintf("%d.000000", now.At().Unix())}
		p := Plan{Collection: SlackMessages, ID: channel + "/" + ts, After: o, Answer: func(Object) Answer {
			return Answer{Status: 200, Body: map[string]any{"ok": true, "channel": channel, "ts": ts}}
		}}
		if gone {
			p.After = nil
		}
		return p, nil
	}
}

// limited answers one call of a method in a while.
func (s *Slack) limited(show func(*Request, View) Answer) func(*Request, View) Answer {
	return func(r *Request, seen View) Answer {
		last, before := s.read[r.URL.Path]
		if wait := s.o.ReadEvery - time.Since(last); before && wait > 0 {
			return slackLimited(wait)
		}
		s.read[r.URL.Path] = time.Now()
		if !slices.Contains(s.o.Channels, r.param("channel")) {
			return *slackError("channel_not_found")
		}
		return show(r, seen)
	}
}

// channel is all messages of a channel, the oldest first; those with replies say so.
func (s *Slack) channel(r *Request, seen View) []Object {
	all := slices.DeleteFunc(seen.List(SlackMessages), func(o Object) bool { return o[".channel"] != r.param("channel") })
	slices.SortStableFunc(all, func(a, b Object) int { return strings.Compare(a.Text("ts"), b.Text("ts")) })
	replies := map[string]int{}
	for _, o := range all {
		if root := o.Text("thread_ts"); root != o.Text("ts") {
			replies[root]++
		}
	}
	for _, o := range all {
		if n := replies[o.Text("ts")]; n > 0 {
			o["thread_ts"], o["reply_count"] = o["ts"], n
		}
	}
	return all
}

func isReply(o Object) bool { return o.Text("thread_ts") != "" && o["thread_ts"] != o["ts"] }

func (s *Slack) history(r *Request, seen View) Answer {
	return s.page(r, newest(slices.DeleteFunc(s.channel(r, seen), func(o Object) bool {
		return isReply(o) && o["subtype"] != "thread_broadcast" || s.outside(r, o)
	})))
}

// replies shows a thread, the root always.
func (s *Slack) replies(r *Request, seen View) Answer {
	root := seen.Get(SlackMessages, r.param("channel")+"/"+r.param("ts"))
	if root == nil {
		return *slackError("thread_not_found")
	}
	ts := cmp.Or(root.Text("thread_ts"), root.Text("ts"))
	return s.page(r, slices.DeleteFunc(s.channel(r, seen), func(o Object) bool {
		return o["ts"] != ts && (o["thread_ts"] != ts || s.outside(r, o))
	}))
}

// outside reports whether a message is out of the range that was asked for.
func (s *Slack) outside(r *Request, o Object) bool {
	ts, oldest, latest := o.Text("ts"), r.param("oldest"), r.param("latest")
	inclusive := r.param("inclusive") == "true" || r.param("inclusive") == "1"
	return oldest != "" && slackTime(ts) < slackTime(oldest) || latest != "" && slackTime(ts) > slackTime(latest) ||
		!inclusive && (ts == oldest || ts == latest)
}

// slackTime is a ts in a form in which texts compare like times.
func slackTime(ts string) string {
	whole, part, _ := strings.Cut(ts, ".")
	return fmt.Sprintf("%012s.%-6s", whole, part)
}

func (s *Slack) page(r *Request, all []Object) Answer {
	size := limit(r.param("limit"), min(100, s.o.PageLimit), 1<<30)
	all, known := after(all, "ts", r.param("cursor"))
	if size == 0 || !known {
		return *slackError(map[bool]string{true: "invalid_limit", false: "invalid_cursor"}[known])
	}
	shown, more := page(all, min(size, s.o.PageLimit))
	body := map[string]any{"ok": true, "messages": shown, "has_more": more}
	if more {
		body["response_metadata"] = map[string]any{"next_cursor": shown[len(shown)-1]["ts"]}
	}
	for _, o := range shown {
		if all := r.param("include_all_metadata"); all != "true" && all != "1" {
			delete(o, "metadata")
		}
	}
	return Answer{Status: 200, Body: body}
}
