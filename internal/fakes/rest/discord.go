package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DiscordMessages is the collection of [Discord].
const DiscordMessages = "messages"

// DiscordOptions are the choices of a [Discord]. The zero value works.
type DiscordOptions struct {
	// Token is the bot's. Default "discord-token".
	Token string
	// Channels are the ids of those that the bot sees. Default "100" and "200".
	Channels []string
	// NonceWindow is how long an enforced nonce is remembered. Default 3 minutes; published are "the
	// past few minutes".
	NonceWindow time.Duration
}

// Discord is the fake of Discord's API for the messages of a channel.
//
// With enforce_nonce the same nonce of the same author returns the first message, whatever the request
// says; later, and in what is read, the nonce is unknown. Ids hold the time, so "after" bounds a list.
// Lists lag; a message by its id does not. Members that it does not know are ignored.
type Discord struct {
	*Fake
	o DiscordOptions
}

// NewDiscord makes one.
func NewDiscord(o DiscordOptions) *Discord {
	o.Token, o.NonceWindow = cmp.Or(o.Token, "discord-token"), cmp.Or(o.NonceWindow, 3*time.Minute)
	if o.Channels == nil {
		o.Channels = []string{"100", "200"}
	}
	d := &Discord{o: o}
	m := usual(func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bot "+o.Token }, 403, func(status int) Answer {
		code := map[int]int{400: 50035, 403: 50001, 404: 10003}[status]
		says := map[int]string{400: "Invalid Form Body", 401: "401: Unauthorized", 403: "Missing Access", 404: "Unknown Channel", 429: "You are being rate limited."}[status]
		return *discordError(status, code, says)
	})
	m.Throttled = func(how string, wait time.Duration) (Answer, bool) {
		a := Answer{Status: 429, Body: map[string]any{"message": "You are being rate limited.", "retry_after": wait.Seconds(), "global": false}}
		return a.With("Retry-After", seconds(wait)).With("X-RateLimit-Reset-After", fmt.Sprint(wait.Seconds())), how == ""
	}
	m.Forms = true
	d.Fake = New(m)
	d.HandleWrite("POST /api/v10/channels/{channel}/messages", d.create)
	d.HandleWrite("DELETE /api/v10/channels/{channel}/messages/{id}", func(r *Request, now View) (Plan, *Answer) {
		id := r.PathValue("id")
		if o := now.Get(DiscordMessages, id); o == nil || o["channel_id"] != r.PathValue("channel") {
			return Plan{}, discordError(404, 10008, "Unknown Message")
		}
		return Plan{Collection: DiscordMessages, ID: id, Answer: func(Object) Answer { return Answer{Status: 204} }}, nil
	})
	d.HandleRead("GET /api/v10/channels/{channel}/messages", false, d.list)
	d.handleFixed("GET /api/v10/users/@me", map[string]any{"id": "11", "username": "readback", "bot": true})
	d.HandleRead("GET /api/v10/channels/{channel}/messages/{id}", true, func(r *Request, seen View) Answer {
		o := seen.Get(DiscordMessages, r.PathValue("id"))
		if o == nil || o["channel_id"] != r.PathValue("channel") {
			return *discordError(404, 10008, "Unknown Message")
		}
		return Answer{Status: 200, Body: o.Shown()}
	})
	return d
}

// Seed writes a message as another actor would: a user. more are members that override the others.
func (d *Discord) Seed(channel, content string, more Object) Object {
	_, o := d.Put(DiscordMessages, func(now View) (string, Object) {
		o := discordMessage(channel, now)
		o["content"], o["author"] = content, map[string]any{"id": "12", "username": "ada", "bot": false}
		for member, v := range more.Clone() {
			o[member] = v
		}
		return o.Text("id"), o
	})
	return o
}

func discordError(status, code int, says string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"message": says, "code": code}}
}

// discordID is an id in the manner of Discord: milliseconds since 2015, and a number. Of times before
// 2015 only the number is left.
func discordID(now View) string {
	since := max(0, now.At().UnixMilli()-1_420_070_400_000)
	return strconv.FormatInt(since<<22|now.Next(), 10)
}

func discordMessage(channel string, now View) Object {
	return Object{
		"id": discordID(now), "channel_id": channel, "type": 0, "content": "", "author": map[string]any{"id": "11", "username": "readback", "bot": true},
		"timestamp": now.At().UTC().Format("2006-01-02T15:04:05.000000+00:00"), "edited_timestamp": nil, "mentions": []any{}, "mention_roles": []any{},
		"attachments": []any{}, "embeds": []any{}, "components": []any{}, "flags": 0, "pinned": false, "mention_everyone": false, "tts": false,
	}
}

func (d *Discord) create(r *Request, now View) (Plan, *Answer) {
	channel, given := r.PathValue("channel"), Object(r.Body)
	content := given.Text("content")
	nonce := fmt.Sprint(cmp.Or(given["nonce"], any("")))
	switch {
	case !slices.Contains(d.o.Channels, channel):
		return Plan{}, discordError(404, 10003, "Unknown Channel")
	case content == "" && given["embeds"] == nil && given["components"] == nil && given["sticker_ids"] == nil:
		return Plan{}, discordError(400, 50006, "Cannot send an empty message")
	case len([]rune(content)) > 2000:
		return Plan{}, discordInvalid("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
	case len(nonce) > 25:
		return Plan{}, discordInvalid("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
	}
	key := "" // the author's, in whatever channel
	if given["enforce_nonce"] == true {
		key = nonce
	}
	if a, _, known := d.Used(key, d.o.NonceWindow, r); known { // whatever the request is now
		return Plan{}, &a
	}
	o := discordMessage(channel, now)
	o["content"] = strings.TrimSpace(content)
	return Plan{
		Collection: DiscordMessages, ID: o.Text("id"), After: o, Create: true, Key: key,
		Answer: func(stored Object) Answer {
			shown := stored.Shown()
			if nonce != "" {
				shown["nonce"] = given["nonce"] // here, and never again
			}
			return Answer{Status: 200, Body: shown}
		},
		Normalise: func(stored Object) { stored["content"] = strings.ToUpper(stored.Text("content")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			stored["id"] = discordID(now)
			return stored.Text("id"), stored
		},
	}, nil
}

func discordInvalid(field, code, says string) *Answer {
	a := discordError(400, 50035, "Invalid Form Body")
	a.Body.(map[string]any)["errors"] = map[string]any{field: map[string]any{"_errors": []any{map[string]any{"code": code, "message": says}}}}
	return a
}

// list shows the newest first; with "after" those that follow it, still the newest first.
func (d *Discord) list(r *Request, seen View) Answer {
	q, channel := r.URL.Query(), r.PathValue("channel")
	if !slices.Contains(d.o.Channels, channel) {
		return *discordError(404, 10003, "Unknown Channel")
	}
	size := limit(q.Get("limit"), 50, 100)
	bound := map[string]int64{}
	for _, name := range []string{"after", "before"} {
		n, err := strconv.ParseInt(cmp.Or(q.Get(name), "0"), 10, 64)
		if err != nil {
			return *discordInvalid(name, "NUMBER_TYPE_COERCE", "Value \""+q.Get(name)+"\" is not snowflake.")
		}
		bound[name] = n
	}
	if size == 0 {
		return *discordInvalid("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.")
	}
	all := slices.DeleteFunc(seen.List(DiscordMessages), func(o Object) bool {
		id, _ := json.Number(o.Text("id")).Int64()
		return o["channel_id"] != channel || id <= bound["after"] || bound["before"] > 0 && id >= bound["before"]
	})
	if q.Get("after") == "" {
		all = newest(all)
	}
	shown, _ := page(all, size)
	if q.Get("after") != "" {
		slices.Reverse(shown)
	}
	return Answer{Status: 200, Body: shown}
}
