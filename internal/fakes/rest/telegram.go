package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// TelegramMessages is the collection of [Telegram].
const TelegramMessages = "messages"

// TelegramOptions are the choices of a [Telegram]. The zero value works.
type TelegramOptions struct {
	// Token is the bot's; it is part of the path. Default "1:telegram-token".
	Token string
	// Chats are the ids of those that may be written to. Default "7" and "@channel".
	Chats []string
}

// Telegram is the fake of Telegram's bot API for sendMessage. There is nothing to read, no key, and a
// repeat is a second message. Parameters that it does not know are ignored.
type Telegram struct {
	*Fake
	o TelegramOptions
}

// NewTelegram makes one.
func NewTelegram(o TelegramOptions) *Telegram {
	o.Token = cmp.Or(o.Token, "1:telegram-token")
	if o.Chats == nil {
		o.Chats = []string{"7", "@channel"}
	}
	t := &Telegram{o: o}
	m := usual(func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/bot"+o.Token+"/") }, 400, func(status int) Answer {
		return *telegramError(status, map[int]string{400: "Bad Request: chat not found", 401: "Unauthorized", 403: "Forbidden: bot was blocked by the user", 404: "Not Found"}[status])
	})
	m.Throttled = func(how string, wait time.Duration) (Answer, bool) {
		a := *telegramError(429, "Too Many Requests: retry after "+seconds(wait))
		a.Body.(map[string]any)["parameters"] = map[string]any{"retry_after": Number(int64(max(1, wait.Seconds())))}
		return a, how == ""
	}
	m.Forms = true
	t.Fake = New(m)
	t.HandleWrite("POST /{token}/sendMessage", t.send)
	t.HandleRead("GET /{token}/getMe", true, func(*Request, View) Answer {
		return Answer{Status: 200, Body: map[string]any{"ok": true, "result": map[string]any{"id": 1, "is_bot": true, "first_name": "readback", "username": "readback_bot"}}}
	})
	return t
}

func telegramError(status int, says string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"ok": false, "error_code": status, "description": says}}
}

func (t *Telegram) send(r *Request, now View) (Plan, *Answer) {
	chat, text := r.param("chat_id"), strings.TrimSpace(r.param("text"))
	switch {
	case chat == "":
		return Plan{}, telegramError(400, "Bad Request: chat_id is empty")
	case !slices.Contains(t.o.Chats, chat):
		return Plan{}, telegramError(400, "Bad Request: chat not found")
	case text == "":
		return Plan{}, telegramError(400, "Bad Request: message text is empty")
	case len([]rune(text)) > 4096:
		return Plan{}, telegramError(400, "Bad Request: message is too long")
	}
	id := now.Next()
	o := Object{"message_id": id, "date": now.At().Unix(), "chat": map[string]any{"id": chat, "type": "private"}, "from": map[string]any{"id": 1, "is_bot": true}, "text": text}
	return Plan{
		Collection: TelegramMessages, ID: string(Number(id)), After: o, Create: true,
		Answer: func(stored Object) Answer {
			return Answer{Status: 200, Body: map[string]any{"ok": true, "result": stored.Shown()}}
		},
		Normalise: func(stored Object) { stored["text"] = strings.ToUpper(stored.Text("text")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			id := now.Next()
			stored["message_id"] = id
			return string(Number(id)), stored
		},
	}, nil
}
